/** JSON or events that are sent piece by piece, where they are long. */
export interface SentBody {
  /** All of it, where it is short; else null. */
  readonly short: string | null;
  /** Bytes of the whole; null where nobody has counted them. */
  length(): Promise<number | null>;
  pieces(): AsyncIterable<string | Buffer>;
}

/** How an answer is asked for, as far as the body alone does not say so. */
export type AnswerManner = 'plain' | 'stream' | 'background';

/** What was written so far is recorded already; `last` is what is still to be sent. */
export interface LastOfAnswer {
  readonly status: number;
  readonly type: string;
  readonly last: SentBody | string;
}

/** A request with an `Idempotency-Key`, which runs a model once, however often it is sent. */
export interface IdempotentRequest {
  readonly key: string;
  /** The body is part of what makes a request the same. */
  read(body: Buffer): void;
  /**
   * Calls `answer` for the first request with the key, and records what it sends; sends the recorded answer to every
   * further one. Rejects with `idempotency_mismatch` and `idempotency_in_progress`.
   */
  once(manner: AnswerManner, answer: () => Promise<void>): Promise<void>;
  /** Records what is sent now. */
  add(piece: string | Buffer): void;
  /** The answer is not recorded. */
  drop(): void;
  /**
   * Has the answer stored before the last of it is sent: a client that has all of it is never answered by a second run.
   * Resolves with false where that fails; true where an answer that never reached the model is not to be stored.
   */
  record(answer: LastOfAnswer): Promise<boolean>;
}
