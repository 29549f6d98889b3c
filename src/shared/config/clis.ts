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

/** Kinds of model CLIs that belong together, as the configuration sees them. */
export interface CliFamily {
  /** Values of MODEL_API_CLI, which are also kinds in MODEL_API_CLIS. */
  readonly kinds: readonly string[];
  /** Further values that are kinds, such as paths of files. `summary` is for the help of the command. */
  readonly form?: { readonly pattern: RegExp; readonly text: string; readonly summary: string };
  /** Kinds without a default program. */
  readonly commandNeeded?: readonly string[];
  /** Entry of MODEL_API_CLIS, for error messages. */
  readonly example?: string;
  /** Command line of the login, by kind. The programs print a link, and read a code from the terminal. */
  readonly logins?: Readonly<Record<string, string>>;
  /** Returns contradictions between the variables. Ignores variables that could not be read. */
  findFaults?(values: Partial<Values>): readonly string[];
}

/** Model CLI of the core, which is the default. */
export const claudeFamily = {
  kinds: ['claude'],
  example: 'claude',
  logins: { claude: 'claude auth login' },
} as const satisfies CliFamily;

interface FeatureWithClis {
  readonly clis?: CliFamily;
}

/** Returns the families of model CLIs of the core and of these features. */
export function cliFamiliesOf(features: readonly FeatureWithClis[]): readonly CliFamily[] {
  return [claudeFamily, ...features.flatMap(({ clis }) => clis ?? [])];
}

/** Returns the values of MODEL_API_CLI that are words. */
export function cliKindsOf(families: readonly CliFamily[]): readonly string[] {
  return ['auto', ...families.flatMap(({ kinds }) => kinds)];
}

/** Returns the family with this kind; undefined if there is none. */
export function familyOf<Family extends CliFamily>(kind: string, families: readonly Family[]): Family | undefined {
  return families.find(({ kinds, form }) => kinds.includes(kind) || form?.pattern.test(kind) === true);
}

/** Returns the schemas of the variables that name kinds of model CLIs. */
export function cliSchemas(families: readonly CliFamily[]) {
  return { MODEL_API_CLI: cliKind(families), MODEL_API_CLIS: cliList(families) } as const;
}

function cliKind(families: readonly CliFamily[]): z.ZodType<string> {
  const kinds = cliKindsOf(families);
  const forms = families.flatMap(({ form }) => (form === undefined ? [] : [form]));
  return z.string().transform((value, context) => {
    if (kinds.includes(value) || forms.some(({ pattern }) => pattern.test(value))) return value;
    const listed = `${kinds.slice(0, -1).join(', ')} or ${kinds.at(-1)}`;
    const close = nearest(value, kinds);
    const advice = close === null ? '' : `. Did you mean ${close}?`;
    context.addIssue(`must be ${listed}${forms.map(({ text }) => `, or ${text}`).join('')}${advice}`);
    return z.NEVER;
  });
}

/** Entry of MODEL_API_CLIS. */
export interface ListedCli {
  /** Name of the CLI, which is also the prefix of its models' names. */
  readonly name: string;
  readonly kind: string;
  /** Maximum number of running jobs; null if only the slots limit them. */
  readonly maxRunning: number | null;
  /** Program and its arguments; null selects the default of the kind. */
  readonly command: readonly [program: string, ...args: string[]] | null;
}

/** Limit of entries, because each CLI has its own processes, metrics and label. */
const maxClis = 8;
const namePattern = /^[a-z0-9][a-z0-9_-]{0,31}$/;
/** Pattern of the parts between commas. Commas within quotes belong to a command. */
const betweenCommas = /(?:[^,'"\\]|\\[\s\S]|'[^']*'|"(?:[^"\\]|\\[\s\S])*"|['"\\])+/g;

/** Returns the schema of MODEL_API_CLIS. The first CLI is the default one. */
function cliList(families: readonly CliFamily[]): z.ZodType<readonly ListedCli[]> {
  const form = families.flatMap(({ example }) => example ?? []).join(', ');
  return z.string().transform((value, context) => {
    const listed: ListedCli[] = [];
    for (const part of (value.match(betweenCommas) ?? []).map((text) => text.trim()).filter((text) => text !== '')) {
      const found = listedCli(part, families, form);
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
function listedCli(part: string, families: readonly CliFamily[], form: string): ListedCli | string {
  const { entry, maxRunning } = withoutLimit(part);
  if (maxRunning !== null && !(maxRunning >= 1 && maxRunning <= 1024)) {
    return `must limit the running jobs to 1 to 1024, as in ${form}: ${part}`;
  }
  const [, prefix, kind = '', words] = /^(?:([^=:/]*)=)?([^:]*)(?::([\s\S]*))?$/.exec(entry) ?? [];
  const name = prefix ?? kind.replace(/^.*\/|\.[cm]?js$/g, '');
  if (familyOf(kind, families) === undefined) {
    const kinds = families.flatMap((family) => family.kinds);
    return `must be CLIs such as ${form}; ${part} is not one of ${kinds.join(', ')}`;
  }
  if (!namePattern.test(name)) return `must give names of small letters, digits, - and _, as in ${form}`;
  try {
    const [program, ...args] = words === undefined ? [] : shellWords(words);
    if (words !== undefined && program === undefined) return `must name a program after ${name}:`;
    return { name, kind, maxRunning, command: program === undefined ? null : [program, ...args] };
  } catch (error) {
    return `has ${(error as Error).message} in the command of ${name}`;
  }
}

/** Separates the limit of running jobs from an entry, such as 2 from `claude*2` and 1 from `fast*1=claude:/opt/claude`. */
function withoutLimit(part: string): { readonly entry: string; readonly maxRunning: number | null } {
  const [, name = '', limit, rest = ''] = /^([^=:*]*)\*([^=:]*)([=:][\s\S]*)?$/.exec(part) ?? [];
  if (limit === undefined) return { entry: part, maxRunning: null };
  return { entry: name + rest, maxRunning: /^\d{1,9}$/.test(limit) ? Number(limit) : Number.NaN };
}

/** Returns the maximum number of running jobs of each CLI that has a limit, by its name. */
export function cliLimits(clis: readonly ListedCli[]): Readonly<Record<string, number>> {
  return Object.fromEntries(clis.flatMap(({ name, maxRunning }) => (maxRunning === null ? [] : [[name, maxRunning]])));
}

/** Returns the faults of the variables about model CLIs. Ignores variables that could not be read. */
export function clisFaults(values: Partial<Values>, families: readonly CliFamily[]): string[] {
  const { MODEL_API_CLIS: clis = [] } = values;
  return [
    ...(clis.length === 0 ? [] : besides(values)),
    ...clis.flatMap((cli) => commandFaults(cli, families)),
    ...families.flatMap((family) => family.findFaults?.(values) ?? []),
  ];
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

/** Whether a model CLI of this kind has no default program. */
export function needsCommand(kind: string, families: readonly CliFamily[]): boolean {
  return families.some(({ commandNeeded = [] }) => commandNeeded.includes(kind));
}

function commandFaults({ name, kind, command }: ListedCli, families: readonly CliFamily[]): string[] {
  return needsCommand(kind, families) && command === null
    ? [`MODEL_API_CLIS: ${name} needs its command, as in ${name}=${kind}:program --flag`]
    : [];
}
