import type { Clock } from '../shared/clock.js';
import type { Client } from './client.js';
import type { AddressFlags } from './service-address.js';
import type { Terminal } from './terminal.js';

/** One subcommand of prompt-relay. */
export interface Command {
  readonly name: string;
  /** Its positional arguments, as shown in the help. */
  readonly synopsis: string;
  readonly summary: string;
  readonly flags: Readonly<Record<string, Flag>>;
  readonly maxPositionals: number;
  /** Resolves with the exit code, or with null if the process must keep running. */
  run(args: CommandArguments, context: CommandContext): Promise<number | null>;
}

export interface Flag {
  readonly type: 'string' | 'boolean';
  /** Stands for the value in the help, such as `<url>`. */
  readonly placeholder?: string;
  readonly description: string;
}

/** The parsed arguments of one command. */
export interface CommandArguments {
  readonly positionals: readonly string[];
  value(flag: string): string | undefined;
  has(flag: string): boolean;
}

/** What a command needs from its environment. */
export interface CommandContext {
  readonly terminal: Terminal;
  readonly clock: Clock;
  /** Reads the address only when called: a command without a client does not fail on a bad address. */
  createClient(flags: AddressFlags): Promise<Client>;
  /** Text of the keys file at this path, else of the configured one. Throws a CommandError. */
  readKeysFile(path: string | undefined): Promise<string>;
}

export const addressFlags = {
  url: { type: 'string', placeholder: '<url>', description: 'service URL; default: MODEL_API_HOST and MODEL_API_PORT' },
  key: {
    type: 'string',
    placeholder: '<key>',
    description: 'API key, visible in ps; default: MODEL_API_KEY or MODEL_API_KEY_FILE',
  },
} as const satisfies Record<string, Flag>;

export const jsonFlag = { json: { type: 'boolean', description: 'print JSON' } } as const satisfies Record<
  string,
  Flag
>;

export function clientFor(args: CommandArguments, context: CommandContext): Promise<Client> {
  return context.createClient({ url: args.value('url'), key: args.value('key') });
}
