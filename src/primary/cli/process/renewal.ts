import type { ClientText } from '../../../shared/client.js';
import { cliError, type RelayError } from '../../../shared/errors.js';
import type { ToolOffer } from '../contract/adapter.js';
import type { TurnSink } from './open-turn.js';

/**
 * Client that a process serves, with the parts of its request that the process may keep. No other client ever gets the
 * process.
 */
export interface Tenant {
  readonly client: ClientText;
  readonly system: string | null;
  readonly schema: string | null;
  readonly offer: ToolOffer | null;
  /** Whether no conversation keeps the process after this job, so that it is renewed. */
  readonly isQuestion: boolean;
}

/** Whether a program has proven what is left in its context: in time, too late or never. */
export type Proof = 'proven' | 'unproven' | 'late';

export const renewalLimits = {
  /** Longest time in which a program must end an interrupted turn, milliseconds. */
  interruptionMs: 300,
  /** Longest time in which a program must prove that it is as good as new, milliseconds. */
  proofMs: 1000,
  /** Questions after which a process ends, because programs grow with each. */
  questions: 100,
  /** Growth since the first question after which a process ends. */
  growthBytes: 100 * 1024 * 1024,
} as const;

/** Whether a process can be renewed after this failure. A refused credential or a crash may affect later questions. */
export function isHarmless({ code, reason }: RelayError): boolean {
  return (
    code === 'cancelled' || code === 'timeout' || (code === 'cli_error' && reason !== 'auth' && reason !== 'crashed')
  );
}

/** Sink for the rest of an interrupted answer, which is dropped. */
export const interruptedAnswer: TurnSink = {
  write: () => {},
  hidesThoughts: true,
  hasEnough: false,
  isFull: false,
  room: async () => {},
};

/** Sink of a renewal, in which the program must not write an answer. */
export const noAnswer: TurnSink = {
  write: wroteAnswer,
  model: wroteAnswer,
  hasEnough: false,
  isFull: false,
  room: async () => {},
};

function wroteAnswer(): never {
  throw notRenewed();
}

export function notRenewed(): RelayError {
  return cliError('other', 'the model CLI has not proven what is left in its context');
}
