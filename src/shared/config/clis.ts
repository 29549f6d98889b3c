import { z } from 'zod';
import { nearest } from '../text/nearest.js';
import type { Values } from './variables.js';

/**
 * Splits a line into words like a POSIX shell: blanks and newlines separate, single quotes preserve everything, and a
 * backslash preserves the next character; in double quotes only before `"`, `\`, `$` and a backtick. Expands nothing.
 * Throws if a quote is not closed.
 */
export function shellWords(line: string): string[] {
  const words: string[] = [];
  const token = /[ \t\n]+|'([^']*)'|"((?:[^"\\]|\\[\s\S])*)"|\\([\s\S])|([^ \t\n'"\\]+)/gy;
  let word: string | undefined;
  while (token.lastIndex < line.length) {
    const at = token.lastIndex;
    const match = token.exec(line);
    if (match === null) throw new Error(`an open quote or a lone backslash at character ${at + 1}`);
    const [whole, single, double, escaped, plain] = match;
    if (/^[ \t\n]/.test(whole)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else {
      word = (word ?? '') + (single ?? double?.replace(/\\(["\\$`])/g, '$1') ?? escaped ?? plain ?? '');
    }
  }
  if (word !== undefined) words.push(word);
  return words;
}

/** Absolute path of a JavaScript file with an adapter. */
export type AdapterFile = `/${string}`;

const pattern = /^\/.*\.[cm]?js$/;

export function isAdapterFile(text: string): text is AdapterFile {
  return pattern.test(text);
}

/** Schema of a kind of model CLI, or of a file with an adapter. */
export function kindOrFile<Kind extends string>(kinds: readonly Kind[]) {
  return z.string().transform((value, context): Kind | AdapterFile => {
    const kind = kinds.find((known) => known === value);
    if (kind !== undefined) return kind;
    if (isAdapterFile(value)) return value;
    const listed = `${kinds.slice(0, -1).join(', ')} or ${kinds.at(-1)}`;
    const close = nearest(value, kinds);
    const advice = close === null ? '' : `. Did you mean ${close}?`;
    context.addIssue(`must be ${listed}, or the absolute path of an adapter (.js, .cjs, .mjs)${advice}`);
    return z.NEVER;
  });
}

/** Entry of MODEL_API_CLIS. */
export interface ListedCli<Kind extends string> {
  /** Name of the CLI, which is also the prefix of its models' names. */
  readonly name: string;
  readonly kind: Kind | AdapterFile;
  /** Maximum number of running jobs; null if only the slots limit them. */
  readonly maxRunning: number | null;
  /** Program and its arguments; null selects the default of the kind. */
  readonly command: readonly [program: string, ...args: string[]] | null;
}

/** Limit of entries, because each CLI has its own processes, metrics and label. */
const maxClis = 8;
const form = 'claude, codex*2, local=command:ollama run {model}';
const namePattern = /^[a-z0-9][a-z0-9_-]{0,31}$/;
/** Pattern of the parts between commas. Commas within quotes belong to a command. */
const betweenCommas = /(?:[^,'"\\]|\\[\s\S]|'[^']*'|"(?:[^"\\]|\\[\s\S])*"|['"\\])+/g;

/** Schema of MODEL_API_CLIS. The first CLI is the default one. */
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
    if (listed.length > maxClis) context.addIssue(`must name at most ${maxClis} CLIs`);
    return listed;
  });
}

/** Parses one entry. Returns a sentence about the fault if it is invalid. */
function listedCli<Kind extends string>(part: string, kinds: readonly Kind[]): ListedCli<Kind> | string {
  const { entry, maxRunning } = withoutLimit(part);
  if (maxRunning !== null && !(maxRunning >= 1 && maxRunning <= 1024)) {
    return `must limit the running jobs to 1 to 1024, as in ${form}: ${part}`;
  }
  const [, prefix, named = '', words] = /^(?:([^=:/]*)=)?([^:]*)(?::([\s\S]*))?$/.exec(entry) ?? [];
  const kind = isAdapterFile(named) ? named : kinds.find((known) => known === named);
  const name = prefix ?? named.replace(/^.*\/|\.[cm]?js$/g, '');
  if (kind === undefined) return `must be CLIs such as ${form}; ${part} is not one of ${kinds.join(', ')}`;
  if (!namePattern.test(name)) return `must give names of small letters, digits, - and _, as in ${form}`;
  try {
    const [program, ...args] = words === undefined ? [] : shellWords(words);
    if (words !== undefined && program === undefined) return `must name a program after ${name}:`;
    return { name, kind, maxRunning, command: program === undefined ? null : [program, ...args] };
  } catch (error) {
    return `has ${(error as Error).message} in the command of ${name}`;
  }
}

/** Separates the limit of running jobs from an entry, such as 2 from `claude*2` and 1 from `local*1=command:llm`. */
function withoutLimit(part: string): { readonly entry: string; readonly maxRunning: number | null } {
  const [, name = '', limit, rest = ''] = /^([^=:*]*)\*([^=:]*)([=:][\s\S]*)?$/.exec(part) ?? [];
  if (limit === undefined) return { entry: part, maxRunning: null };
  return { entry: name + rest, maxRunning: /^\d{1,9}$/.test(limit) ? Number(limit) : Number.NaN };
}

/** Returns the maximum number of running jobs of each CLI that has a limit, by its name. */
export function cliLimits(clis: readonly ListedCli<string>[]): Readonly<Record<string, number>> {
  return Object.fromEntries(clis.flatMap(({ name, maxRunning }) => (maxRunning === null ? [] : [[name, maxRunning]])));
}

/**
 * Returns how a program of `command` handles models. `takesModel` is whether its arguments contain `{model}`; if not,
 * it has a single model, whatever a request names. `ownName` is the model of a request that names none.
 */
export function commandModel(
  [program, ...args]: readonly [program: string, ...args: string[]],
  extraArgs: readonly string[],
  defaultModel: string | null,
) {
  return {
    takesModel: [...args, ...extraArgs].some((word) => word.includes('{model}')),
    ownName: defaultModel ?? program.split('/').at(-1) ?? program,
  };
}

/** Returns the faults of the variables about several CLIs. Ignores variables that could not be read. */
export function clisFaults(values: Partial<Values>): string[] {
  const { MODEL_API_CLIS: clis } = values;
  if (clis === undefined || clis.length === 0) return [];
  return [...besides(values), ...clis.flatMap(commandFaults), ...defaultFaults(values)];
}

/** Returns faults for variables about a single CLI, which are ambiguous in addition to a list. */
function besides(values: Partial<Values>): string[] {
  const { MODEL_API_CLI: cli, MODEL_API_CLI_COMMAND: command, MODEL_API_CLI_ARGS: args } = values;
  const stand = [
    ['MODEL_API_CLI', cli !== undefined && cli !== 'auto'],
    ['MODEL_API_CLI_COMMAND', command !== undefined && command !== null],
    ['MODEL_API_CLI_ARGS', args !== undefined && args.length > 0],
  ] as const;
  const wrong = stand.filter(([, isSet]) => isSet);
  return wrong.map(
    ([name]) => `${name}: must not be set together with MODEL_API_CLIS, which contains the kinds and commands`,
  );
}

type NamedEntry = Values['MODEL_API_CLIS'][number];

function commandFaults({ name, kind, command }: NamedEntry): string[] {
  return (kind === 'command' || kind === 'acp') && command === null
    ? [`MODEL_API_CLIS: ${name} needs its command, as in ${name}=${kind}:program --flag`]
    : [];
}

/** Returns a fault if a request without a model would find none. */
function defaultFaults(values: Partial<Values>): string[] {
  const {
    MODEL_API_CLIS: [first] = [],
    MODEL_API_DEFAULT_MODEL: model,
    MODEL_API_ALLOWED_MODELS: allowed = [],
  } = values;
  if (allowed.length > 0) return []; // the first allowed model is the default
  if (first?.kind !== 'command' || first.command === null || model !== null) return [];
  return commandModel(first.command, [], null).takesModel
    ? [`MODEL_API_DEFAULT_MODEL: must be set when the command of the first CLI, ${first.name}, contains {model}`]
    : [];
}
