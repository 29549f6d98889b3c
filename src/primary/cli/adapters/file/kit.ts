import {
  type Adapter,
  type Capabilities,
  type CommandLine,
  type Consult,
  crashed,
  type LaunchOptions,
  type OutOfTurn,
  type ProgramVersion,
  type Protocol,
  unknownUsage,
} from '../../contract/adapter.js';
import { JsonLines, jsonOf, LineSplitter } from '../common/lines.js';
import { promptOf } from '../common/transcript.js';

export type * from '../../contract/adapter.js';

/** What an adapter in a file of its own can use of the service, so that it needs to import nothing. */
export const adapterKit = {
  /** Reads a program that writes a message a line. */
  JsonLines,
  /** Cuts stdout into lines, and keeps the one that is not finished. */
  LineSplitter,
  /** The value of a line of JSON; null for a line that is none. */
  jsonOf,
  /** A whole turn as one text, for a program that knows no roles: system text and history as a transcript. */
  promptOf,
  /** The end of a turn whose program has exited in the middle of it. */
  crashed,
  /** The usage of a turn whose program reports none. */
  unknownUsage,
} as const;

export type AdapterKit = typeof adapterKit;

/** What the file gets. */
export interface AdapterFileOptions {
  /** `MODEL_API_CLI_COMMAND`, as words; null where it is not set. */
  readonly command: readonly [program: string, ...args: string[]] | null;
  /** `MODEL_API_CLI_ARGS`, as words. */
  readonly extraArgs: readonly string[];
  /** What the program will see of the environment of the service. */
  readonly env: Readonly<Record<string, string>>;
  readonly kit: AdapterKit;
}

/** @deprecated A `ProgramVersion` with the name that `protocol` had. */
export type Dialect = Omit<ProgramVersion, 'protocol'> & { dialogue(): Protocol };

/** @deprecated The name that `Protocol` had. */
export type Dialogue = Protocol;
/** @deprecated The name that `LaunchOptions` had. */
export type Launch = LaunchOptions;
/** @deprecated The name that `CommandLine` had. */
export type LaunchPlan = CommandLine;
/** @deprecated The name that `Capabilities` had. */
export type Extras = Capabilities;
/** @deprecated The name that `OutOfTurn` had. */
export type Stray = OutOfTurn;

/** What a file that `MODEL_API_CLI` names has to export as `createAdapter`. Called once, at the start of the service. */
export type CreateAdapter = (
  options: AdapterFileOptions,
) => Omit<Adapter, 'learn'> & { learn(consult: Consult): Promise<ProgramVersion | Dialect> };
