import type { ClientText } from '../../shared/client.js';

export { CommandError, exitCodes, usageError } from './errors.js';

import type { PurgeReport, StoreBackup, StoreReport } from '../../shared/api/store.js';
import type { Clock } from '../../shared/clock.js';
import type { Environment } from '../../shared/config/config.js';
import type { ConfiguredFeature } from '../../shared/config/feature-variables.js';
import type { OptionTable } from '../../shared/config/key-options.js';
import type { StoreFamily } from '../../shared/config/stores.js';
import type { Paint } from '../../shared/text/paint.js';
import type { Client } from './client.js';
import type { SettingsFolders } from './client-programs.js';
import type { AddressFlags, NamedStore } from './environment.js';
import { exitCodes } from './errors.js';
import type { LoginFile } from './login-file.js';
import type { Terminal } from './terminal.js';

/** Subcommand of prompt-relay. */
export interface Command {
  readonly name: string;
  /** Positional arguments, as the help shows them. */
  readonly synopsis: string;
  readonly summary: string;
  readonly flags: Readonly<Record<string, Flag>>;
  readonly maxPositionals: number;
  /** Values that the first argument can have; any value if undefined. */
  readonly words?: readonly string[];
  /** Command lines that the help shows. */
  readonly examples: readonly string[];
  /** Further paragraphs of the help. */
  readonly notes?: readonly string[];
  /** Resolves with the exit code, or with null if the process must keep running. */
  run(args: CommandArguments, context: CommandContext): Promise<number | null>;
}

/** Action that a feature adds to `prompt-relay keys`. No other action may use its flags. */
export interface KeyAction extends Pick<Command, 'name' | 'synopsis' | 'flags' | 'examples'> {
  /** Paragraph of the help. */
  readonly note: string;
  run(subject: string | undefined, args: CommandArguments, context: CommandContext): Promise<number>;
}

/** Feature as the command sees it. */
export interface CommandFeature {
  readonly commands?: readonly Command[];
  readonly keyActions?: readonly KeyAction[];
  readonly store?: StoreOfCommand;
}

/** Kind of stores that a feature adds, as the command sees it. */
export interface StoreOfCommand extends StoreFamily {
  /** Name for people. */
  readonly label: string;
  /** Sentences for the help of `prompt-relay store`. */
  readonly note?: string;
  /** Advice for the backup of a store that this program cannot back up. */
  readonly backupAdvice?: string;
  /**
   * Opens a file that no service has open; null if one has. Opening changes nothing; a purge needs a file of this
   * version. Rejects with a ConfigFault. A store that is not a file lacks this function.
   */
  openFile?(path: string, clock: Clock, purpose: 'read' | 'purge'): Promise<StoreFile | null>;
}

/** File of a store that no service has open. */
export interface StoreFile {
  backupTo(path: string): Promise<StoreBackup>;
  verify(lifetimes: Pick<NamedStore, 'conversationTtlMs' | 'jobTtlMs'>): Promise<StoreReport>;
  /** Resolves with the number of removed rows of each table. */
  purge(client: ClientText): Promise<Pick<PurgeReport, 'removed' | 'clients'>>;
  copies(): Promise<string[]>;
  close(): Promise<unknown>;
}

export interface Flag {
  readonly type: 'string' | 'boolean';
  /** Letter of the short form, which follows a single dash. */
  readonly short?: string;
  /** Whether the flag may be given several times. */
  readonly multiple?: boolean;
  /** Values that completion offers; `file` stands for paths. Any value is possible if undefined. */
  readonly values?: readonly string[] | 'file';
  /** Name of the value in the help, such as `<url>`. */
  readonly placeholder?: string;
  readonly description: string;
}

/** The parsed arguments of one command. */
export interface CommandArguments {
  readonly positionals: readonly string[];
  value(flag: string): string | undefined;
  /** All values of a flag that may be given several times. */
  values(flag: string): readonly string[];
  has(flag: string): boolean;
}

/** Access to files that a command line names. Each method rejects with the system's error. */
export interface NamedFiles {
  read(path: string): Promise<Buffer>;
  /** Reads a path that may come from a line of a file. Rejects for a pipe or a device, which might never end. */
  readRegular(path: string): Promise<Buffer>;
  /** Creates a file. Rejects if the path exists. */
  create(path: string, text: string): Promise<void>;
}

export interface CommandContext {
  readonly terminal: Terminal;
  readonly clock: Clock;
  readonly files: NamedFiles;
  readonly login: LoginFile;
  /** All commands of the program. */
  readonly commands: readonly Command[];
  /**
   * Creates a client. Reads the address only here, so that a command without a client does not fail on a bad address.
   */
  createClient(flags: AddressFlags): Promise<Client>;
  /** Returns the folders with the settings of the user's programs. Throws a CommandError if HOME is not set. */
  settingsFolders(): SettingsFolders;
  /** Reads the settings of the store from the environment; `flag` has precedence. Throws a CommandError. */
  storeSettings(
    flag: string | undefined,
    features: readonly Pick<ConfiguredFeature, 'variables' | 'store'>[],
  ): NamedStore;
  /** Returns `path`, or the path of the configured keys file if undefined. Throws a CommandError. */
  keysFilePath(path: string | undefined): string;
  /**
   * Resolves with whether each model CLI of the service in this environment reports what a job costs; null if the
   * environment names no model CLI, or has faults.
   */
  reportsCosts(): Promise<boolean | null>;
  readonly env: Environment;
  /** Command line of the login of each kind of model CLI. */
  readonly loginPrograms: Readonly<Record<string, string>>;
  /** All options of keys that the service knows. */
  readonly keyOptions: OptionTable;
  /** Edits the keys file atomically, see `editLines`. A missing file is created if `mayMake` is true. */
  editKeysFile(path: string, mayMake: boolean, edit: (text: string) => string): Promise<readonly string[]>;
  /** Reads the keys file at `path`, or the configured one if undefined. Throws a CommandError. */
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

/** Prints a result as JSON or as lines. Resolves with the exit code of a success. */
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
