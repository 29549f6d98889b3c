import type { Clock } from '../shared/clock.js';
import type { AddressFlags } from './address.js';
import type { Client } from './client.js';
import type { Terminal } from './terminal.js';

export interface Flag {
  readonly type: 'string' | 'boolean';
  /** What stands for its value in the help. */
  readonly value?: string;
  readonly meaning: string;
}

/** The flags as they were given; which of them there can be is the command's own list. */
export interface Given {
  readonly words: readonly string[];
  text(flag: string): string | undefined;
  has(flag: string): boolean;
}

/** What a command may use of the world. */
export interface Surroundings {
  readonly terminal: Terminal;
  readonly clock: Clock;
  /** With the key that is configured, so that a command without a use for one does not fail for want of it. */
  client(flags: AddressFlags): Promise<Client>;
}

/** One subcommand. */
export interface Command {
  readonly name: string;
  /** Arguments, for the help. */
  readonly takes: string;
  readonly summary: string;
  readonly flags: Readonly<Record<string, Flag>>;
  readonly maxWords: number;
  /** Resolves with the exit code, or null when the program is to live on. */
  run(given: Given, surroundings: Surroundings): Promise<number | null>;
}

export const addressFlags = {
  url: {
    type: 'string',
    value: '<url>',
    meaning: 'the service; else MODEL_API_HOST and MODEL_API_PORT say where it is',
  },
  key: {
    type: 'string',
    value: '<key>',
    meaning: 'the API key; else MODEL_API_KEY or MODEL_API_KEY_FILE (seen in ps: prefer those)',
  },
} as const satisfies Record<string, Flag>;

export const jsonFlag = {
  json: { type: 'boolean', meaning: 'print JSON' },
} as const satisfies Record<string, Flag>;

export function clientOf(given: Given, surroundings: Surroundings): Promise<Client> {
  return surroundings.client({ url: given.text('url'), key: given.text('key') });
}
