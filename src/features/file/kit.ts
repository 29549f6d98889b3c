import { JsonLines, jsonOf, LineSplitter } from '../../primary/cli/adapters/common/lines.js';
import { promptOf } from '../../primary/cli/adapters/common/transcript.js';
import {
  type Adapter,
  type Consult,
  crashed,
  type ProgramVersion,
  unknownUsage,
} from '../../primary/cli/contract/adapter.js';

export type * from '../../primary/cli/contract/adapter.js';

/** Functions of the service for an adapter file, so that it needs no imports. */
export const adapterKit = {
  /** Decodes the output of a program that writes one message per line. */
  JsonLines,
  /** Splits stdout into lines, and stores the unfinished one. */
  LineSplitter,
  /** Parses a line of JSON; returns null if it is invalid. */
  jsonOf,
  /** Returns a whole turn as one text, with system text and history as a transcript, for a program without roles. */
  promptOf,
  /** Returns the failure of a turn whose program exited before the turn ended. */
  crashed,
  /** Usage of a turn if its program reports none. */
  unknownUsage,
} as const;

export type AdapterKit = typeof adapterKit;

/** Options for the adapter file. */
export interface AdapterFileOptions {
  /** Words of `MODEL_API_CLI_COMMAND`; null if it is not set. */
  readonly command: readonly [program: string, ...args: string[]] | null;
  /** Words of `MODEL_API_CLI_ARGS`. */
  readonly extraArgs: readonly string[];
  /** Environment variables that the program inherits from the service. */
  readonly env: Readonly<Record<string, string>>;
  readonly kit: AdapterKit;
}

/**
 * Function that a file named in `MODEL_API_CLI` must export as `createAdapter`. Called once, at the start of the
 * service.
 */
export type CreateAdapter = (
  options: AdapterFileOptions,
) => Omit<Adapter, 'learn'> & { learn(consult: Consult): Promise<ProgramVersion> };
