import { parseArgs } from 'node:util';
import { features } from '../features.js';
import { nearest } from '../shared/text/nearest.js';
import type { Command, CommandArguments, Flag } from './base/command.js';
import { CommandError, exitCodes } from './base/errors.js';
import { ask } from './verbs/ask.js';
import { batch } from './verbs/batch.js';
import { chat } from './verbs/chat.js';
import { completion } from './verbs/completion.js';
import { cancel, jobs } from './verbs/jobs.js';
import { keys } from './verbs/keys.js';
import { models, version } from './verbs/lists.js';
import { login, logout, whoami } from './verbs/login.js';
import { check, serve } from './verbs/serve.js';
import { setup } from './verbs/setup.js';
import { recheck, status } from './verbs/status.js';
import { store } from './verbs/store.js';

/**
 * All commands, in the order of the help, the manual and the completion. The first one is the default. Features
 * add theirs before the last two, which are about the program itself.
 */
export const commands: readonly [Command, ...Command[]] = [
  serve,
  check,
  ask,
  batch,
  chat,
  status,
  jobs,
  cancel,
  models,
  recheck,
  login,
  logout,
  whoami,
  setup,
  keys,
  store,
  ...features.flatMap(({ commands = [] }) => commands),
  version,
  completion,
];

type Invocation =
  | { readonly type: 'run'; readonly command: Command; readonly args: CommandArguments }
  | { readonly type: 'help'; readonly command: Command | null }
  | { readonly type: 'version' };

/** Parses the words after the name of the program. Throws a CommandError. */
export function parseCommandLine(line: readonly string[]): Invocation {
  const words = withAddressAfterName(line);
  const [first = '', topic = '-'] = words;
  if (['--help', '-h', 'help'].includes(first))
    return { type: 'help', command: topic.startsWith('-') ? null : findCommand(topic) };
  if (['--version', '-v', '-V'].includes(first)) return { type: 'version' };
  const isNamed = words.length > 0 && !first.startsWith('-');
  const command = isNamed ? findCommand(first) : commands[0];
  const args = parseArguments(command, isNamed ? words.slice(1) : words);
  return args.has('help') ? { type: 'help', command } : { type: 'run', command, args };
}

/** Moves --url and --key behind the name of the command, so that they may also stand before it. */
function withAddressAfterName(words: readonly string[]): readonly string[] {
  const [flag = ''] = words;
  const count = /^--(url|key)=/.test(flag) ? 1 : /^--(url|key)$/.test(flag) ? 2 : 0;
  if (count === 0) return words;
  const [name, ...rest] = withAddressAfterName(words.slice(count));
  return name === undefined ? words : [name, ...words.slice(0, count), ...rest];
}

function findCommand(name: string): Command {
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
  const valuesOf = (flag: string) => [values[flag] ?? []].flat().filter((value) => typeof value === 'string');
  return {
    positionals,
    value: (flag) => valuesOf(flag).at(-1),
    values: valuesOf,
    has: (flag) => values[flag] === true,
  };
}

function parseFlags(
  words: readonly string[],
  options: Readonly<Record<string, Pick<Flag, 'type' | 'short' | 'multiple'>>>,
) {
  try {
    return parseArgs({ args: words, options, allowPositionals: true });
  } catch (error) {
    // Only the first sentence of a message of parseArgs is for users.
    const [sentence = ''] = (error as Error).message.split(/\. |\n/);
    throw usageError(sentence.charAt(0).toLowerCase() + sentence.slice(1));
  }
}

function usageError(message: string): CommandError {
  return new CommandError(exitCodes.usage, `${message}\nRun "prompt-relay --help" for usage.`);
}
