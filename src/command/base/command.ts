import type { Clock } from '../../shared/clock.js';
import type { Paint } from '../../shared/text/paint.js';
import type { Client } from './client.js';
import type { AddressFlags, NamedStore } from './environment.js';
import { exitCodes } from './errors.js';
import type { LoginFile } from './login-file.js';
import type { Terminal } from './terminal.js';

/** One subcommand of prompt-relay. */
export interface Command {
  readonly name: string;
  /** Its positional arguments, as shown in the help. */
  readonly synopsis: string;
  readonly summary: string;
  readonly flags: Readonly<Record<string, Flag>>;
  readonly maxPositionals: number;
  /** What its first argument can be; none: anything. */
  readonly words?: readonly string[];
  /** Command lines that are worth showing. */
  readonly examples: readonly string[];
  /** More that the help has to say, each a paragraph. */
  readonly notes?: readonly string[];
  /** Resolves with the exit code, or with null if the process must keep running. */
  run(args: CommandArguments, context: CommandContext): Promise<number | null>;
}

export interface Flag {
  readonly type: 'string' | 'boolean';
  /** The letter that stands for it after a single dash. */
  readonly short?: string;
  /** Whether it may be given several times. */
  readonly multiple?: boolean;
  /** What its value can be; `file`: a path. None: anything. */
  readonly values?: readonly string[] | 'file';
  /** Stands for the value in the help, such as `<url>`. */
  readonly placeholder?: string;
  readonly description: string;
}

/** The parsed arguments of one command. */
export interface CommandArguments {
  readonly positionals: readonly string[];
  value(flag: string): string | undefined;
  /** Of a flag that may be given several times. */
  values(flag: string): readonly string[];
  has(flag: string): boolean;
}

/** The files that a command line names. Each method rejects with the system's error. */
export interface NamedFiles {
  read(path: string): Promise<Buffer>;
  /** For paths that may come from the lines of a file. Rejects for a pipe or a device, which might never end. */
  readRegular(path: string): Promise<Buffer>;
  /** Never replaces a file. */
  create(path: string, text: string): Promise<void>;
}

/** What a command needs from its environment. */
export interface CommandContext {
  readonly terminal: Terminal;
  readonly clock: Clock;
  readonly files: NamedFiles;
  readonly login: LoginFile;
  /** All of them. */
  readonly commands: readonly Command[];
  /** Reads the address only when called: a command without a client does not fail on a bad address. */
  createClient(flags: AddressFlags): Promise<Client>;
  /** What the environment says of the store; `flag` wins. Throws a CommandError. */
  storeSettings(flag: string | undefined): NamedStore;
  /** This path, else that of the configured keys file. Throws a CommandError. */
  keysFilePath(path: string | undefined): string;
  /** Text of the keys file at this path, else of the configured one. Throws a CommandError. */
  readKeysFile(path: string | undefined): Promise<string>;
}

export const addressFlags = {
  url: {
    type: 'string',
    placeholder: '<url>',
    description: 'the service: a URL, host:port or unix:/path; default: MODEL_API_URL, else the login',
  },
  key: {
    type: 'string',
    placeholder: '<key>',
    description: 'API key, visible in ps; default: MODEL_API_KEY, else the login',
  },
} as const satisfies Record<string, Flag>;

export const modelFlag = {
  model: { type: 'string', short: 'm', placeholder: '<id>', description: 'model to use; see "prompt-relay models"' },
} as const satisfies Record<string, Flag>;

export const jsonFlag = { json: { type: 'boolean', description: 'print JSON' } } as const satisfies Record<
  string,
  Flag
>;

/** Writes what a command has found, as JSON or in lines. Resolves with the exit code of a success. */
export async function show(
  args: CommandArguments,
  terminal: Terminal,
  body: object,
  lines: (paint: Paint) => readonly string[],
): Promise<number> {
  if (args.has('json')) await terminal.writeJson(body);
  else await terminal.writeLines(lines(terminal.paint));
  return exitCodes.ok;
}

export function clientFor(args: CommandArguments, context: CommandContext): Promise<Client> {
  return context.createClient({ url: args.value('url'), key: args.value('key') });
}
