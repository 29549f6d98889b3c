import { parseArgs } from 'node:util';
import { nearest } from '../../shared/text/nearest.js';
import type { Command, CommandArguments, Flag } from './command.js';
import { CommandError, exitCodes } from './errors.js';

/** What a command line asks for. */
type Invocation =
  | { readonly type: 'run'; readonly command: Command; readonly args: CommandArguments }
  | { readonly type: 'help'; readonly command: Command | null }
  | { readonly type: 'version' };

/** The first command of the list is the default. Throws a CommandError. */
export function parseCommandLine(line: readonly string[], commands: readonly [Command, ...Command[]]): Invocation {
  const words = withAddressAfterName(line);
  const [first = ''] = words;
  if (['--help', '-h', 'help'].includes(first)) return { type: 'help', command: helpTopic(words[1], commands) };
  if (['--version', '-v', '-V'].includes(first)) return { type: 'version' };
  const isNamed = words.length > 0 && !first.startsWith('-');
  const command = isNamed ? findCommand(first, commands) : commands[0];
  const args = parseArguments(command, isNamed ? words.slice(1) : words);
  return args.has('help') ? { type: 'help', command } : { type: 'run', command, args };
}

/** The flags that nearly all commands have may stand before the name of the command, too. */
function withAddressAfterName(words: readonly string[]): readonly string[] {
  const [flag = '', value = '', ...rest] = words;
  if (/^--(url|key)=/.test(flag)) return afterName(withAddressAfterName(words.slice(1)), flag);
  return /^--(url|key)$/.test(flag) && words.length > 1 ? afterName(withAddressAfterName(rest), flag, value) : words;
}

function afterName([name, ...rest]: readonly string[], ...flags: readonly string[]): readonly string[] {
  return name === undefined ? flags : [name, ...flags, ...rest];
}

function helpTopic(name: string | undefined, commands: readonly Command[]): Command | null {
  return name === undefined || name.startsWith('-') ? null : findCommand(name, commands);
}

function findCommand(name: string, commands: readonly Command[]): Command {
  const command = commands.find((known) => known.name === name);
  if (command !== undefined) return command;
  const names = commands.map((known) => known.name);
  const close = nearest(name, names);
  throw usageError(`unknown command ${name}${close === null ? '' : `: did you mean ${close}?`}`);
}

function parseArguments({ name, flags, maxPositionals }: Command, words: readonly string[]): CommandArguments {
  const { values, positionals } = parseFlags(words, { ...flags, help: { type: 'boolean', short: 'h' } });
  const unexpected = positionals[maxPositionals];
  if (unexpected !== undefined) throw usageError(`${name}: unexpected argument ${unexpected}`);
  const given = (flag: string) => [values[flag] ?? []].flat().filter((value) => typeof value === 'string');
  return { positionals, value: (flag) => given(flag).at(-1), values: given, has: (flag) => values[flag] === true };
}

type Options = NonNullable<NonNullable<Parameters<typeof parseArgs>[0]>['options']>;

function parseFlags(
  words: readonly string[],
  options: Readonly<Record<string, Pick<Flag, 'type' | 'short' | 'multiple'>>>,
) {
  const known = Object.entries(options).map(([name, { type, short, multiple = false }]) => [
    name,
    { type, multiple, ...(short !== undefined && { short }) },
  ]);
  const parsed: unknown = Object.fromEntries(known);
  try {
    return parseArgs({ args: [...words], options: parsed as Options, allowPositionals: true });
  } catch (error) {
    // After its first sentence, the message of parseArgs is meant for programmers.
    const [sentence = ''] = (error as Error).message.split(/\. |\n/);
    throw usageError(sentence.charAt(0).toLowerCase() + sentence.slice(1));
  }
}

function usageError(message: string): CommandError {
  return new CommandError(exitCodes.usage, `${message}\nRun "prompt-relay --help" for usage.`);
}
