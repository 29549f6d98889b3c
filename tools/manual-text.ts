import type { Command } from '../src/command/base/command.js';
import { about, environmentNote, exitMeanings, flagLabel, programFlags, usageOf } from '../src/command/render/help.js';

/** Returns the manual page of the command in the language of man(7), from the table that also makes its help. */
export function manualText(commands: readonly Command[]): string {
  return [
    '.\\" Made by "npm run manual" from the table of commands in src/command.',
    '.TH PROMPT\\-RELAY 1 "" "prompt\\-relay" "User Commands"',
    '.SH NAME',
    'prompt\\-relay \\- a local model command\\-line tool as a REST API',
    '.SH SYNOPSIS',
    '.B prompt\\-relay',
    '[\\fIcommand\\fR] [\\fIflags\\fR]',
    '.SH DESCRIPTION',
    text(about),
    '.PP',
    text(environmentNote),
    '.SH COMMANDS',
    ...commands.flatMap(sectionOf),
    '.SH FLAGS',
    ...programFlags.flatMap(([label, meaning]) => item(label, meaning)),
    '.SH EXIT STATUS',
    ...exitMeanings.flatMap(([code, meaning]) => item(String(code), meaning)),
    '.SH FILES',
    text(
      'The service is configured by MODEL_API_* variables: docs/configuration.md of the package describes them all.',
    ),
    '.SH SEE ALSO',
    text('The folder docs of the package, and /docs of a running service.'),
    '',
  ].join('\n');
}

function sectionOf(command: Command): string[] {
  const { summary, notes = [], flags, examples } = command;
  return [
    `.SS ${text(usageOf(command))}`,
    text(`${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`),
    ...notes.flatMap((note) => ['.PP', text(note)]),
    ...Object.entries(flags).flatMap(([name, flag]) => item(flagLabel(name, flag).trim(), flag.description)),
    '.PP',
    '.EX',
    ...examples.map(text),
    '.EE',
  ];
}

function item(label: string, meaning: string): string[] {
  return ['.TP', `.B ${text(label)}`, text(meaning)];
}

/** Escapes a backslash, a dash, and a character that would begin a roff request. */
function text(plain: string): string {
  return plain
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll('…', '...')
    .replace(/^([.'])/, '\\&$1');
}
