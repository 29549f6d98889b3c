import { labelledRows } from '../../shared/format.js';
import type { Command } from '../command.js';

/** The help of the whole program. */
export function programHelp(commands: readonly Command[]): string {
  return [
    'Usage: prompt-relay [command] [flags]',
    '',
    'Runs a local model command-line tool as a REST API, and sends requests to that API.',
    '',
    ...indented(labelledRows(commands.map(({ name, synopsis, summary }) => [`${name} ${synopsis}`.trim(), summary]))),
    '',
    ...indented(
      labelledRows([
        ['<command> --help', 'show the flags of a command'],
        ['--version', 'show the version of this program'],
      ]),
    ),
    '',
    'Set the URL of the service with --url and the API key with --key. The defaults come from the environment',
    'variables of the service: MODEL_API_HOST, MODEL_API_PORT, MODEL_API_KEY, MODEL_API_KEY_FILE.',
    '',
    'Exit codes: 0 success · 1 model failed, or service not ok · 64 usage error · 65 invalid request · 69 no service,',
    'or no model CLI · 70 internal error · 74 output error · 75 try again later · 76 not a prompt-relay service ·',
    '77 not authorized · 78 configuration error',
  ].join('\n');
}

export function commandHelp({ name, synopsis, summary, flags }: Command): string {
  const rows = Object.entries(flags).map(([flag, { placeholder = '', description }]): [string, string] => [
    `--${flag} ${placeholder}`.trimEnd(),
    description,
  ]);
  const usage = ['Usage: prompt-relay', name, synopsis, rows.length > 0 ? '[flags]' : ''];
  return [
    usage.filter((word) => word !== '').join(' '),
    '',
    summary,
    ...(rows.length > 0 ? ['', ...indented(labelledRows(rows))] : []),
  ].join('\n');
}

function indented(lines: readonly string[]): string[] {
  return lines.map((line) => `  ${line}`);
}
