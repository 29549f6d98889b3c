import type { ConversationTurn } from '../conversations/conversation-turn.js';
import type { Job } from './job.js';

/** What a turn waits for where other hosts use the same conversations. */
export interface TurnGate {
  /** Whether this turn may begin as soon as there is a slot. */
  mayBegin(turn: ConversationTurn): boolean;
  /** Called for a turn as soon as it was admitted, if it waits for no other one of this host. */
  begin(turn: ConversationTurn): void;
  /** Resolves when no other host has a turn on the conversation, and the copy of this host is the newest. */
  begun(turn: ConversationTurn, signal: AbortSignal): Promise<void>;
}

/** Owns when a turn may run: after those before it on this host, and where hosts share conversations, on all others. */
export class TurnOrder {
  readonly #gate: TurnGate | null;

  constructor(gate: TurnGate | null) {
    this.#gate = gate;
  }

  mustWait(turn: ConversationTurn | null): boolean {
    return turn !== null && (turn.mustWait || this.#gate?.mayBegin(turn) === false);
  }

  /** Calls `proceed` when it is the job's turn; at once for a job without a conversation. */
  async lineUp(job: Job, proceed: () => void): Promise<void> {
    const { turn, signal } = job;
    const cut = (reason: Error) => job.cut(reason);
    if (turn === null) return proceed();
    if (!turn.mustWait) this.#gate?.begin(turn);
    try {
      await turn.mine(signal);
      if (this.#gate !== null) await this.#gate.begun(turn, signal);
      turn.lock?.onLost(cut);
      proceed();
    } catch (error) {
      cut(error as Error); // does nothing where the same signal has ended the waiting
    }
  }
}
