import type { JobRequest } from '../../shared/job.js';
import type { ConversationTurn } from './conversation-turn.js';

/** The right to change a conversation, which one host has at a time. */
export interface TurnLock {
  /** Fencing token; null if no other host can have the conversation. */
  readonly token: number | null;
  /** Resolves with the reason if another host has the lock, or may have it; null if that cannot happen. */
  readonly lost: Promise<Error> | null;
  release(): void;
  /** Ends the lock without a release, because the commit has released it. */
  spent(): void;
}

/** Fields of a job that decide which conversation its turn belongs to. */
export type TurnRequest = Pick<JobRequest, 'operation' | 'conversationId' | 'versionOf' | 'client'>;

/** Coordination of turns between hosts. Turns on the same host are ordered by the store. */
export interface TurnGate {
  /** Calls `admit` when the turn may be admitted. Rejects with the errors of an admission. */
  admitting<T>(request: TurnRequest, admit: () => T | Promise<T>): Promise<T>;
  /** Returns whether this turn may begin as soon as a slot is free. */
  mayBegin(turn: ConversationTurn): boolean;
  /** Called when a turn is admitted and no other turn on this host is before it. */
  beginTurn(turn: ConversationTurn): void;
  /**
   * Resolves when no other host has a turn on the conversation, and this host has its newest text. Rejects with the
   * errors of an admission.
   */
  begun(turn: ConversationTurn, signal: AbortSignal): Promise<void>;
}

/** Gate of a service that does not share its conversations. */
export const oneHostGate: TurnGate = {
  admitting: async (_, admit) => admit(),
  mayBegin: () => true,
  beginTurn: () => {},
  begun: async () => {},
};

/** Lock of a turn that needs no lock, or that has not acquired it yet. */
export const noLock: TurnLock = { token: null, lost: null, release: () => {}, spent: () => {} };
