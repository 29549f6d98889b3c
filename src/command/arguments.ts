import { parseArgs } from 'node:util';
import { nearest } from '../shared/config/nearest.js';
import type { Command, Given } from './command.js';
import { CommandFault, exitCodes } from './exit-codes.js';

/** What a command line asks for. */
export type Order =
  | { readonly type: 'run'; readonly command: Command; readonly given: Given }
  | { readonly type: 'help'; readonly command: Command | null }
  | { readonly type: 'version' };

/** Without a command, the first one of the list is meant. Throws a CommandFault. */
export function orderOf(args: readonly string[], commands: readonly [Command, ...Command[]]): Order {
  const [first = ''] = args;
  if (['--help', '-h', 'help'].includes(first)) return { type: 'help', command: helpedWith(args[1], commands) };
  if (first === '--version' || first === '-V') return { type: 'version' };
  const isNamed = args.length > 0 && !first.startsWith('-');
  const command = isNamed ? commandOf(first, commands) : commands[0];
  const given = givenTo(command, isNamed ? args.slice(1) : args);
  return given.has('help') ? { type: 'help', command } : { type: 'run', command, given };
}

function helpedWith(name: string | undefined, commands: readonly Command[]): Command | null {
  return name === undefined ? null : commandOf(name, commands);
}

function commandOf(name: string, commands: readonly Command[]): Command {
  const command = commands.find((known) => known.name === name);
  if (command !== undefined) return command;
  const close = nearest(
    name,
    commands.map((known) => known.name),
  );
  throw usage(`there is no command ${name}${close === null ? '' : `: did you mean ${close}?`}`);
}

function givenTo({ name, flags, maxWords }: Command, args: readonly string[]): Given {
  const { values, positionals } = parsed(args, { ...flags, help: { type: 'boolean', short: 'h' } });
  if (positionals.length > maxWords) throw usage(`${name} does not take ${positionals[maxWords]}`);
  const text = (flag: string) => (typeof values[flag] === 'string' ? values[flag] : undefined);
  return { words: positionals, text, has: (flag) => values[flag] === true };
}

type Options = NonNullable<NonNullable<Parameters<typeof parseArgs>[0]>['options']>;

/** What parseArgs says after its first sentence is for programmers. */
function parsed(
  args: readonly string[],
  options: Readonly<Record<string, { readonly type: 'string' | 'boolean'; readonly short?: string }>>,
) {
  try {
    return parseArgs({ args: [...args], options: options as Options, allowPositionals: true });
  } catch (error) {
    const [sentence = ''] = (error as Error).message.split(/\. |\n/);
    throw usage(sentence.charAt(0).toLowerCase() + sentence.slice(1));
  }
}

function usage(message: string): CommandFault {
  return new CommandFault(exitCodes.usage, `${message}\nSee prompt-relay --help.`);
}
