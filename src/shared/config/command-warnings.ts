import type { Values } from './variables.js';

/** Programs whose only purpose is to start another program. */
const starters = new Set(['env', 'exec', 'ionice', 'nice', 'nohup', 'time', 'timeout']);
/** Programs that make the next program flush each line, if it uses the buffers of the C library. */
const flushers = new Set(['stdbuf', 'unbuffer']);
const shells = /^(ba|da|z|a)?sh$/;

type SeenVariables = Readonly<Record<string, string | undefined>>;

interface BufferedProgram {
  readonly program: RegExp;
  /** Whether the arguments or variables make the program flush its output at once. */
  readonly isFlushing: (words: readonly string[], variables: SeenVariables) => boolean;
  readonly cure: string;
}

const some = (pattern: RegExp) => (words: readonly string[]) => words.some((word) => pattern.test(word));

const known: readonly BufferedProgram[] = [
  {
    program: /^(python|pypy)[\d.]*$/,
    isFlushing: (words, given) => Boolean(given.PYTHONUNBUFFERED) || /^-[A-Za-z]*u/.test(words.find(isDecisive) ?? ''),
    cure: 'add -u, or set PYTHONUNBUFFERED=1 and name it in MODEL_API_CLI_ENV',
  },
  { program: /^g?sed$/, isFlushing: some(/^(-[nErsz]*u|--unbuffered)/), cure: 'add -u' },
  { program: /^([ef]?grep|rg)$/, isFlushing: some(/^--line-buffered$/), cure: 'add --line-buffered' },
  { program: /^jq$/, isFlushing: some(/^--unbuffered$/), cure: 'add --unbuffered' },
  {
    program: /^([gmn]|original-)?awk$/,
    isFlushing: some(/fflush|^interactive$/),
    cure: 'call fflush() after each print',
  },
  { program: /^(cut|fold|nl|paste|rev|tr|uniq)$/, isFlushing: () => false, cure: 'put stdbuf -oL in front' },
];

/** Whether a word is the option -u, or the first word without a dash: the script. */
function isDecisive(word: string): boolean {
  return /^-[A-Za-z]*u/.test(word) || !word.startsWith('-');
}

/**
 * Returns a sentence with a remedy for each program of a command line that buffers its output to a pipe until it exits.
 * `given` are the environment variables of the program.
 */
export function bufferedPrograms(words: readonly string[], variables: SeenVariables): string[] {
  const seen = { ...variables };
  let isFlushed = false;
  for (const [index, word] of words.entries()) {
    const [, variable, value] = /^([A-Za-z_]\w*)=(.*)$/s.exec(word) ?? [];
    if (variable !== undefined) seen[variable] = value ?? '';
    const name = word.split('/').at(-1) ?? '';
    isFlushed ||= flushers.has(name);
    const isBefore =
      variable !== undefined || starters.has(name) || flushers.has(name) || /^(-|\d+[smhd]?$)/.test(word);
    if (!isBefore) return warningsOf(name, words.slice(index + 1), seen, isFlushed);
  }
  return [];
}

function warningsOf(name: string, words: readonly string[], variables: SeenVariables, isFlushed: boolean): string[] {
  if (shells.test(name)) return inScript(words, variables);
  const found = known.find(({ program }) => program.test(name));
  const isByLibrary = found !== known[0]; // Python has its own buffers
  if (found === undefined || (isFlushed && isByLibrary) || found.isFlushing(words, variables)) return [];
  return [`${name} buffers its output to a pipe until it ends, so answers would not be streamed: ${found.cure}`];
}

/** Checks a script such as `sh -c 'model | sed s/a/b/'`, without full knowledge of shell syntax. */
function inScript(words: readonly string[], variables: SeenVariables): string[] {
  const at = words.findIndex((word) => /^-[a-z]*c$/.test(word));
  const script = at < 0 ? '' : (words[at + 1] ?? '');
  const parts = script.split(/\|\|?|&&?|;|\n/);
  return [...new Set(parts.flatMap((part) => bufferedPrograms(part.trim().split(/\s+/), variables)))];
}

/** Syntax outside of quotes that a shell would interpret. */
const shellSigns = /\|\|?|&&?|;|\d?>>?(?:&\d)?|<<?|`|\$\w+|\$[({]|(?<=^|\s)~|\*|\{[^{}\s]*,[^{}\s]*\}/g;
/** Assignment to a variable in capitals. Names of model CLIs, in small letters, also precede an equals sign. */
const assignment = /^\s*([A-Z_][A-Z0-9_]*)=/;

type CommandVariables = Readonly<Record<string, string | undefined>>;

/**
 * Returns warnings about probable mistakes in the command lines of model CLIs. The warnings show names of programs and
 * variables, and shell syntax, but no other arguments, which may contain a key.
 */
export function commandWarnings(env: CommandVariables, values: Values): string[] {
  const { MODEL_API_CLI_COMMAND: command, MODEL_API_CLIS: clis, MODEL_API_CLI_ARGS: extraArgs } = values;
  const givenVariables = Object.fromEntries(values.MODEL_API_CLI_ENV.map((name) => [name, env[name]]));
  const commands = [command, ...clis.map((cli) => cli.command)].filter((each) => each !== null);
  if (commands.length === 0) return [];
  const name = clis.length > 0 ? 'MODEL_API_CLIS' : 'MODEL_API_CLI_COMMAND';
  const buffered = commands.flatMap((each) => bufferedPrograms([...each, ...extraArgs], givenVariables));
  return [
    ...unshelled(name, env[name] ?? ''),
    ...unshelled('MODEL_API_CLI_ARGS', env.MODEL_API_CLI_ARGS ?? ''),
    ...[...new Set(buffered)].map((warning) => `${name}: ${warning}`),
  ];
}

/**
 * Returns warnings about syntax in a variable that only a shell would interpret. `name` is the name of the variable.
 */
export function unshelled(name: string, line: string): string[] {
  const bare = withoutQuoted(line);
  const [, variable] = assignment.exec(bare) ?? [];
  const signs = [...new Set(bare.match(shellSigns) ?? [])];
  return [
    ...(variable === undefined ? [] : [`${name}: ${variable}=… in front is run as a program: put env before it`]),
    ...(signs.length === 0 ? [] : [`${name}: ${signs.join(' ')} ${meansNothing(signs.length)}`]),
  ];
}

function meansNothing(count: number): string {
  const verb = count === 1 ? 'means' : 'mean';
  return `${verb} nothing without a shell: quote the argument, or call a shell, as in sh -c '…'`;
}

/** Replaces quoted text by placeholders, except syntax that a shell would interpret within double quotes. */
function withoutQuoted(line: string): string {
  return line.replace(/'[^']*'|"(?:[^"\\]|\\[\s\S])*"|\\[\s\S]/g, (quoted) => {
    const open = quoted.startsWith('"') ? quoted.replace(/\\[\s\S]/g, 'qq') : '';
    return `q${(open.match(/\$\w+|\$[({]|`/g) ?? []).join('')}-`;
  });
}
