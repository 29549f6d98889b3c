/** JSON or events; long ones are sent piece by piece. */
export interface SentBody {
  /** The whole body if it is short, else null. */
  readonly short: string | null;
  /** Length of the whole, bytes; null if unknown. */
  length(): Promise<number | null>;
  pieces(): AsyncIterable<string | Buffer>;
}

/** Kind of answer, for clients that choose it outside the body. */
export type AnswerManner = 'plain' | 'stream' | 'background';

/** Records the answer to a request, so that a repetition of the request gets it, too. */
export interface AnswerRecorder {
  /** Called with the body of the request. */
  readBody(body: Buffer): void;
  /** Calls `answer`, or sends an earlier answer. Rejects if the request must be refused. */
  once(manner: AnswerManner, answer: () => Promise<void>): Promise<void>;
  /** Called with each sent piece of a stream, except the last ones. */
  addPiece(piece: string | Buffer): void;
  /** Discards the recorded pieces, because another request must get a new answer. */
  drop(): void;
  /**
   * Called before the last pieces are sent. Resolves with the header that reports that the answer is not stored; null if
   * there is nothing to report.
   */
  record(status: number, type: string, last: SentBody | string): Promise<{ name: string; value: string } | null>;
}
