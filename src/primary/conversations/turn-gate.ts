import type { JobRequest } from '../../shared/job.js';
import type { ConversationTurn } from './conversation-turn.js';

/** The right to change a conversation. Only one host has it at a time. */
export interface TurnLock {
  /** null: no other host can have the conversation. */
  readonly token: number | null;
  /** Resolves with the reason when another host has the lock, or may have it. null: that cannot happen. */
  readonly lost: Promise<Error> | null;
  release(): void;
  /** The commit has released it. */
  spent(): void;
}

/** What a turn waits for beside the turns before it on this host: the turns of other hosts on the same conversation. */
export interface TurnGate {
  /** Calls `admit` once the job may be admitted: at once where no other host can have a turn. Rejects as an admission. */
  admitting<T>(request: JobRequest, admit: () => T): T | Promise<T>;
  /** Whether this turn may begin as soon as there is a slot. */
  mayBegin(turn: ConversationTurn): boolean;
  /** Called for a turn at its admission, if no other turn of this host is before it. */
  begin(turn: ConversationTurn): void;
  /** Resolves when no other host has a turn on the conversation, and this host has its newest text. Rejects as an admission. */
  begun(turn: ConversationTurn, signal: AbortSignal): Promise<void>;
}

/** Of a service whose conversations no other host continues. */
export const oneHostGate: TurnGate = {
  admitting: (_, admit) => admit(),
  mayBegin: () => true,
  begin: () => {},
  begun: async () => {},
};

/** Of a turn that needs no lock, or has none yet. */
export const noLock: TurnLock = { token: null, lost: null, release: () => {}, spent: () => {} };
