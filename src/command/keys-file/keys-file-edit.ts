import type { Clock } from '../../shared/clock.js';
import { digestOf, isTooShort, minKeyLength, readApiKeys, readClearKeys } from '../../shared/config/api-keys.js';
import { readKeysFile } from '../../shared/config/keys-file.js';
import { CommandError, exitCodes } from '../base/errors.js';
import { editLines, type LineFile, refused, withLines } from '../base/line-file.js';
import { keyOptions } from './key-options.js';

const keysFile: LineFile = { command: 'keys', mode: 0o600, faultsOf: (text) => readKeysFile(text, keyOptions).faults };

/** Edits a keys file, see `editLines`. */
export function editKeysFile(
  path: string,
  clock: Clock,
  mayMake: boolean,
  edit: (text: string) => string,
): Promise<readonly string[]> {
  return editLines(keysFile, path, clock, mayMake, edit);
}

/** Throws a CommandError if a key has this name already. */
export function withNewKey(text: string, name: string, line: string): string {
  if (!readKeysFile(text, keyOptions).keys.some((key) => key.name === name)) return withLines(text, [line]);
  throw refused('keys', `the file already has a key of ${name}: "prompt-relay keys rotate ${name}" changes its value`);
}

/** Removes each line of a key, also with a fault. Throws a CommandError if no key has this name. */
export function withoutKey(text: string, name: string): string {
  let rest = withKeyLine(text, name, () => []);
  while (lineOfKey(rest.split('\n'), name) >= 0) rest = withKeyLine(rest, name, () => []);
  return rest;
}

/** Returns the names of other keys with a digest that a removed line of the key had: they work with the same key. */
export function namesWithSameKey(before: string, after: string, name: string): string[] {
  const lines = before.split('\n').filter((line) => isLineOfKey(line, name));
  const digests = lines.flatMap((line) => line.match(/\b[0-9a-f]{64}\b/gi) ?? []).map((digest) => digest.toLowerCase());
  const twins = after.split('\n').filter((line) => digests.some((digest) => line.toLowerCase().includes(digest)));
  return twins.flatMap((line) => /^\s*([^\s:#]+):/.exec(line)?.[1] ?? []);
}

/**
 * Replaces the digest of a key, and preserves its options. If `oldUntil` is set, the old key remains valid up to that
 * day.
 */
export function withDigest(text: string, name: string, digest: string, oldUntil: string | undefined): string {
  return withKeyLine(text, name, (line) => {
    const { begin, digest: old, options, end } = partsOf(line, name);
    const others = options.filter((option) => !option.startsWith('previous='));
    const all = [...others, ...(oldUntil === undefined ? [] : [`previous=${old}/${oldUntil}`])];
    return [lineWith(`${begin}${digest}`, all, end)];
  });
}

/**
 * New values of the options of a budget, such as `100/day`, by their names, such as `cost` or `opus:cost`. Null removes an
 * option; options that are not named stay.
 */
export type BudgetChange = Readonly<Record<string, string | null>>;

/**
 * Changes the budget of a key, or with `@group` and `@*` of a group and of the whole service. A shared budget gets a
 * line if it has none, and loses its line with its last option.
 */
export function withBudget(text: string, subject: string, change: BudgetChange): string {
  if (subject.startsWith('@')) return withSharedBudget(text, subject, change);
  return withKeyLine(text, subject, (line) => {
    const { begin, digest, options, end } = partsOf(line, subject);
    return [lineWith(`${begin}${digest}`, changed(options, change), end)];
  });
}

function withSharedBudget(text: string, subject: string, change: BudgetChange): string {
  const lines = text.split('\n');
  const at = lines.findIndex((line) => line.replace(/^\uFEFF/, '').split(/\s/, 1)[0] === subject);
  const options =
    at < 0
      ? []
      : (lines[at] ?? '')
          .trimEnd()
          .split(/[\s,]+/)
          .slice(1);
  const all = changed(options, change);
  const line = all.length === 0 ? [] : [`${subject} ${all.join(',')}`];
  return at < 0 ? withLines(text, line) : lines.toSpliced(at, 1, ...line).join('\n');
}

function changed(options: readonly string[], change: BudgetChange): string[] {
  const names = Object.keys(change).map((name) => `${name}=`);
  const others = options.filter((option) => !names.some((name) => option.startsWith(name)));
  const added = Object.entries(change).flatMap(([name, value]) => (value === null ? [] : [`${name}=${value}`]));
  return [...others, ...added];
}

/** Splits the line of a key. Throws a CommandError if it has no digest in the right place. */
function partsOf(line: string, name: string) {
  const found = /^(.*?:sha256:)([0-9a-f]{64}):?(.*?)(\s*)$/i.exec(line);
  if (found === null) throw refused('keys', `the line of ${name} has a fault: "prompt-relay keys check" shows it`);
  const [, begin = '', digest = '', options = '', end = ''] = found;
  return { begin, digest, options: options.split(',').filter((option) => option !== ''), end };
}

function lineWith(begin: string, options: readonly string[], end: string): string {
  return `${begin}${options.length > 0 ? ':' : ''}${options.join(',')}${end}`;
}

function lineOfKey(lines: readonly string[], name: string): number {
  return lines.findIndex((line) => isLineOfKey(line, name));
}

function isLineOfKey(line: string, name: string): boolean {
  return (
    line
      .replace(/^\uFEFF/, '')
      .trimStart()
      .startsWith(`${name}:`) && !/^sso:(?!sha256:)/.test(line)
  );
}

function withKeyLine(text: string, name: string, change: (line: string) => readonly string[]): string {
  const lines = text.split('\n');
  const at = lineOfKey(lines, name);
  if (at < 0) throw new CommandError(exitCodes.usage, `keys: the file has no key named ${name}`);
  return lines.toSpliced(at, 1, ...change(lines[at] ?? '')).join('\n');
}

/**
 * Returns the lines of another keys file, or hashes a file with keys in clear text, whose lines get `options`.
 * `options` have the format of a keys file. Throws an error whose message never contains a key.
 */
export function importedLines(text: string, options: readonly string[]): string[] {
  if (!/^\uFEFF?[^\s:#]+:sha256:/m.test(text)) return hashedLines(text, options);
  if (options.length > 0) throw new Error('lines of a keys file already contain their options');
  const [fault] = readKeysFile(text, keyOptions).faults;
  if (fault !== undefined) throw new Error(fault);
  const lines = text.replace(/^\uFEFF/, '').split('\n');
  return lines.map((line) => line.trimEnd()).filter((line) => !/^\s*(#|$)/.test(line));
}

function hashedLines(text: string, options: readonly string[]): string[] {
  const names = readApiKeys(text).map(({ name }) => name);
  return readClearKeys(text).map((key, index) => {
    const name = names[index] ?? '';
    if (isTooShort(key)) throw new Error(`the key of ${name} has fewer than ${minKeyLength} characters`);
    return [name, 'sha256', digestOf(key), ...options].join(':');
  });
}
