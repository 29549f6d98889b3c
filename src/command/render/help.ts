import { wrapped, wrappedWords } from '../../shared/text/format.js';
import type { Command, Flag } from '../base/command.js';
import { wrappedRows } from './columns.js';

/** Description of the program in its help and its manual. */
export const about = 'Runs a local model command-line tool as a REST API, and sends requests to that API.';

export const environmentNote =
  'Without flags, the service comes from MODEL_API_URL, or MODEL_API_HOST and MODEL_API_PORT, and the key from ' +
  'MODEL_API_KEY or MODEL_API_KEY_FILE; else both come from "prompt-relay login". NO_COLOR switches colours off.';

export const exitMeanings: readonly (readonly [code: number, meaning: string])[] = [
  [0, 'success; for status, the service is ok'],
  [1, 'the model failed; for status, the service is degraded; for store verify, the store has a fault'],
  [64, 'invalid flags or arguments'],
  [65, 'the service refused the request as invalid'],
  [69, 'no service answers, there is no model CLI, or the port is in use'],
  [70, 'internal error'],
  [74, 'the output cannot be written'],
  [75, 'try again later'],
  [76, 'the server is not a prompt-relay service'],
  [77, 'the API key is missing or wrong, or the host is not allowed'],
  [78, 'the configuration has faults'],
  [130, 'interrupted with Ctrl-C'],
  [141, 'the reader closed the output'],
];

export const programFlags: readonly (readonly [label: string, text: string])[] = [
  ['-h, --help', 'show this help; after a command, its own'],
  ['-v, --version', 'show the version'],
];

/** Formats the help of the whole program, in lines of at most `columns` columns. */
export function programHelp(commands: readonly Command[], columns: number): string {
  return [
    'Usage: prompt-relay [command] [flags]',
    '',
    ...wrapped(about, columns),
    '',
    'Commands:',
    ...indentedRows(
      commands.map(({ name, summary }) => [name, summary]),
      columns,
    ),
    '',
    'Flags:',
    ...indentedRows(programFlags, columns),
    '',
    ...wrapped(environmentNote, columns),
    '',
    'Exit codes:',
    ...indentedRows(
      exitMeanings.map(([code, meaning]) => [String(code), meaning]),
      columns,
    ),
  ].join('\n');
}

export function commandHelp(command: Command, columns: number): string {
  const { summary, flags, examples, notes = [] } = command;
  const rows = Object.entries(flags).map(([name, flag]) => [flagLabel(name, flag), flag.description] as const);
  return [
    ...wrapped(`Usage: ${usageOf(command)}`, columns - 2).map((line, index) => (index === 0 ? line : `  ${line}`)),
    '',
    ...wrapped(`${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`, columns),
    ...notes.flatMap((note) => ['', ...wrapped(note, columns)]),
    ...(rows.length > 0 ? ['', 'Flags:', ...indentedRows(rows, columns)] : []),
    '',
    examples.length > 1 ? 'Examples:' : 'Example:',
    ...examples.flatMap((example) => shellLines(example, columns - 2)).map((line) => `  ${line}`),
  ].join('\n');
}

/** Formats the command line as a pattern, such as `prompt-relay ask [prompt] [flags]`. */
export function usageOf({ name, synopsis, flags }: Command): string {
  const words = ['prompt-relay', name, synopsis, Object.keys(flags).length > 0 ? '[flags]' : ''];
  return words.filter((word) => word !== '').join(' ');
}

/** Formats a flag, such as `-m, --model <id>`. Without a short form, spaces align the long names. */
export function flagLabel(name: string, { short, placeholder = '' }: Flag): string {
  return `${short === undefined ? '    ' : `-${short}, `}--${name} ${placeholder}`.trimEnd();
}

/** Wraps a command, so that it can still be pasted into a shell: never within quotes. */
function shellLines(command: string, columns: number): string[] {
  const words = command.match(/(?:'[^']*'|[^\s'])+/g) ?? [];
  const lines = wrappedWords(words, columns - 4);
  return lines.map((line, index) => (index === 0 ? '' : '  ') + line + (index < lines.length - 1 ? ' \\' : ''));
}

function indentedRows(rows: readonly (readonly [label: string, text: string])[], columns: number): string[] {
  return wrappedRows(rows, columns - 2).map((line) => `  ${line}`);
}
