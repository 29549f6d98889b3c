import { z } from 'zod';
import { type AdapterFile, isAdapterFile } from './adapter-file.js';
import { shellWords } from './shell-words.js';

/** One of several model CLIs, as the configuration names it. */
export interface ListedCli<Kind extends string> {
  /** What stands before the names of its models. */
  readonly name: string;
  readonly kind: Kind | AdapterFile;
  /** The program and its arguments; null: the usual one of its kind. */
  readonly command: readonly [program: string, ...args: string[]] | null;
}

/** Each has processes, figures and a label of its own. */
const maxClis = 8;
const form = 'claude, codex, local=command:ollama run {model}';
const namePattern = /^[a-z0-9][a-z0-9_-]{0,31}$/;
/** Commas within quotes belong to a command. */
const betweenCommas = /(?:[^,'"\\]|\\[\s\S]|'[^']*'|"(?:[^"\\]|\\[\s\S])*"|['"\\])+/g;

/** Several model CLIs, the first one the default: each a kind, with a name and a command where it needs them. */
export function cliList<Kind extends string>(kinds: readonly Kind[]) {
  return z.string().transform((value, context): readonly ListedCli<Kind>[] => {
    const listed: ListedCli<Kind>[] = [];
    for (const part of (value.match(betweenCommas) ?? []).map((text) => text.trim()).filter((text) => text !== '')) {
      const found = listedCli(part, kinds);
      const isTwice = typeof found !== 'string' && listed.some(({ name }) => name === found.name);
      const fault = isTwice ? `must not name a CLI twice: ${part}` : found;
      if (typeof fault !== 'string') listed.push(fault);
      else {
        context.addIssue(fault);
        return z.NEVER;
      }
    }
    if (listed.length === 0 && value.trim() !== '') context.addIssue(`must be CLIs such as ${form}`);
    if (listed.length > maxClis) context.addIssue(`must name ${maxClis} CLIs at most`);
    return listed;
  });
}

/** A sentence says what is wrong. */
function listedCli<Kind extends string>(part: string, kinds: readonly Kind[]): ListedCli<Kind> | string {
  const [, given, named = '', words] = /^(?:([^=:/]*)=)?([^:]*)(?::([\s\S]*))?$/.exec(part) ?? [];
  const kind = isAdapterFile(named) ? named : kinds.find((known) => known === named);
  const name = given ?? named.replace(/^.*\/|\.[cm]?js$/g, '');
  if (kind === undefined) return `must be CLIs such as ${form}; ${part} is none of ${kinds.join(', ')}`;
  if (!namePattern.test(name)) return `must give names of small letters, digits, - and _, as in ${form}`;
  try {
    const [program, ...args] = words === undefined ? [] : shellWords(words);
    if (words !== undefined && program === undefined) return `must name a program after ${name}:`;
    return { name, kind, command: program === undefined ? null : [program, ...args] };
  } catch (error) {
    return `has ${(error as Error).message} in the command of ${name}`;
  }
}

const limitsForm = 'must be limits such as local:1,codex:4';

/** How many jobs of a CLI may run at once, by its name. */
export const cliLimits = z.string().transform((value, context): Readonly<Record<string, number>> => {
  const limits: Record<string, number> = {};
  for (const part of value.split(',').map((item) => item.trim())) {
    if (part === '') continue;
    const [, name = '', limit = '0'] = /^([a-z0-9][a-z0-9_-]*):([1-9]\d{0,3})$/.exec(part) ?? [];
    if (name === '' || Object.hasOwn(limits, name)) {
      context.addIssue(limitsForm);
      return z.NEVER;
    }
    limits[name] = Number(limit);
  }
  return limits;
});
