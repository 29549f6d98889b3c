import type { Values } from './variables.js';

/** Programs that only start another one. */
const starters = new Set(['env', 'exec', 'ionice', 'nice', 'nohup', 'time', 'timeout']);
/** Programs that make the next one write line by line, if it uses the usual library. */
const flushers = new Set(['stdbuf', 'unbuffer']);
const shells = /^(ba|da|z|a)?sh$/;

type SeenVariables = Readonly<Record<string, string | undefined>>;

interface BufferedProgram {
  readonly program: RegExp;
  /** Whether its words say that it is to write at once. */
  readonly isFlushing: (words: readonly string[], given: SeenVariables) => boolean;
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

/** Whether a word is the option -u, or the first word that is no option: the script. */
function isDecisive(word: string): boolean {
  return /^-[A-Za-z]*u/.test(word) || !word.startsWith('-');
}

/**
 * A sentence for each program of a command line that keeps its output until it ends where that goes to a pipe, and what
 * to do. `given`: the variables that it sees.
 */
export function bufferedPrograms(words: readonly string[], given: SeenVariables): string[] {
  const seen = { ...given };
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

function warningsOf(name: string, words: readonly string[], given: SeenVariables, isFlushed: boolean): string[] {
  if (shells.test(name)) return inScript(words, given);
  const found = known.find(({ program }) => program.test(name));
  const isByLibrary = found !== known[0]; // Python has buffers of its own
  if (found === undefined || (isFlushed && isByLibrary) || found.isFlushing(words, given)) return [];
  return [`${name} keeps what it writes to a pipe until it ends, so no answer would stream: ${found.cure}`];
}

/** Of `sh -c 'model | sed s/a/b/'`, as far as can be seen without being a shell. */
function inScript(words: readonly string[], given: SeenVariables): string[] {
  const at = words.findIndex((word) => /^-[a-z]*c$/.test(word));
  const script = at < 0 ? '' : (words[at + 1] ?? '');
  const parts = script.split(/\|\|?|&&?|;|\n/);
  return [...new Set(parts.flatMap((part) => bufferedPrograms(part.trim().split(/\s+/), given)))];
}

/** What a shell would do something about, outside of quotes. */
const shellSigns = /\|\|?|&&?|;|\d?>>?(?:&\d)?|<<?|`|\$\w+|\$[({]|(?<=^|\s)~|\*|\{[^{}\s]*,[^{}\s]*\}/g;
/** In capitals, as variables are: names of model CLIs stand before an equals sign too. */
const assignment = /^\s*([A-Z_][A-Z0-9_]*)=/;

type CommandVariables = Readonly<Record<string, string | undefined>>;

/** What is probably meant otherwise in the command line of the model CLI. Shows no word of it: there may be a key among them. */
export function commandWarnings(env: CommandVariables, values: Values): string[] {
  const { MODEL_API_CLI_COMMAND: command, MODEL_API_CLIS: clis, MODEL_API_CLI_ARGS: extraArgs } = values;
  const given = Object.fromEntries(values.MODEL_API_CLI_ENV.map((name) => [name, env[name]]));
  const commands = [command, ...clis.map((cli) => cli.command)].filter((each) => each !== null);
  if (commands.length === 0) return [];
  const name = clis.length > 0 ? 'MODEL_API_CLIS' : 'MODEL_API_CLI_COMMAND';
  const buffered = commands.flatMap((each) => bufferedPrograms([...each, ...extraArgs], given));
  return [
    ...unshelled(name, env[name] ?? ''),
    ...unshelled('MODEL_API_CLI_ARGS', env.MODEL_API_CLI_ARGS ?? ''),
    ...[...new Set(buffered)].map((warning) => `${name}: ${warning}`),
  ];
}

/** What means something to a shell only, in the line of the variable with this name. */
export function unshelled(name: string, line: string): string[] {
  const bare = withoutQuoted(line);
  const [, variable] = assignment.exec(bare) ?? [];
  const signs = [...new Set(bare.match(shellSigns) ?? [])];
  return [
    ...(variable === undefined ? [] : [`${name}: ${variable}=… in front names a program: put env before it`]),
    ...(signs.length === 0 ? [] : [`${name}: ${signs.join(' ')} ${meansNothing(signs.length)}`]),
  ];
}

function meansNothing(count: number): string {
  const verb = count === 1 ? 'means' : 'mean';
  return `${verb} nothing without a shell: quote what the program is to see, or name a shell, as in sh -c '…'`;
}

/** What is quoted stands for nothing, but for the signs that mean something between double quotes too. */
function withoutQuoted(line: string): string {
  return line.replace(/'[^']*'|"(?:[^"\\]|\\[\s\S])*"|\\[\s\S]/g, (quoted) => {
    const open = quoted.startsWith('"') ? quoted.replace(/\\[\s\S]/g, 'qq') : '';
    return `q${(open.match(/\$\w+|\$[({]|`/g) ?? []).join('')}-`;
  });
}
