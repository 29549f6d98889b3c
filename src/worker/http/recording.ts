import { maxRecordedBytes, type RecordedAnswer } from '../../shared/ipc/idempotency.js';

/** Owns the bytes of one answer as they are sent, up to the bound of what is stored. */
export class Recording {
  readonly #store: (answer: RecordedAnswer) => Promise<boolean>;
  #pieces: Buffer[] = [];
  #bytes = 0;

  /** `store` resolves with whether the answer is stored. */
  constructor(store: (answer: RecordedAnswer) => Promise<boolean>) {
    this.#store = store;
  }

  add(piece: string | Buffer): void {
    if (this.#isTooLong) return;
    const bytes = Buffer.from(piece);
    this.#bytes += bytes.length;
    if (this.#isTooLong) this.#pieces = [];
    else this.#pieces.push(bytes);
  }

  /** Takes the rest of a body, as far as it can still be stored. */
  async addAll(pieces: AsyncIterable<string | Buffer>): Promise<void> {
    for await (const piece of pieces) {
      this.add(piece);
      if (this.#isTooLong) return;
    }
  }

  /** To be called once. Resolves with whether all of it is stored. */
  async finish(head: Omit<RecordedAnswer, 'body'>): Promise<boolean> {
    if (this.#isTooLong) return false;
    const body = Buffer.concat(this.#pieces).toString();
    this.#pieces = [];
    return this.#store({ ...head, body });
  }

  get #isTooLong(): boolean {
    return this.#bytes > maxRecordedBytes;
  }
}
