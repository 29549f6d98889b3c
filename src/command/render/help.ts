import type { Command, Flag } from '../command.js';
import { labelled } from './words.js';

/** The page of the whole program. */
export function programHelp(commands: readonly Command[]): string {
  return [
    'Usage: prompt-relay [command] [flags]',
    '',
    'Turns a local model command-line tool into a REST API, and talks to that service.',
    '',
    ...indented(labelled(commands.map(({ name, takes, summary }) => [`${name} ${takes}`.trim(), summary]))),
    '',
    ...indented(
      labelled([
        ['<command> --help', 'its flags'],
        ['--version', 'the version of this program'],
      ]),
    ),
    '',
    'The address of the service and the API key are taken from the flags --url and --key, else from the variables that',
    'the service itself reads: MODEL_API_HOST, MODEL_API_PORT, MODEL_API_KEY, MODEL_API_KEY_FILE.',
    '',
    'Exit codes: 0 done · 1 the model failed, or the service is not ok · 64 bad flags · 65 the request was refused',
    '69 no service, or no model CLI · 70 a defect · 75 try again later · 76 not a prompt-relay · 77 API key · 78 configuration',
  ].join('\n');
}

export function commandHelp({ name, takes, summary, flags }: Command): string {
  const rows = Object.entries(flags).map(([flag, { value = '', meaning }]: [string, Flag]): [string, string] => [
    `--${flag} ${value}`.trimEnd(),
    meaning,
  ]);
  return [
    `Usage: prompt-relay ${[name, takes].filter((word) => word !== '').join(' ')}${rows.length > 0 ? ' [flags]' : ''}`,
    '',
    summary,
    ...(rows.length > 0 ? ['', ...indented(labelled(rows))] : []),
  ].join('\n');
}

function indented(lines: readonly string[]): string[] {
  return lines.map((line) => `  ${line}`);
}
