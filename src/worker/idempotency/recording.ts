import { maxRecordedBytes, type RecordedAnswer } from '../../shared/ipc/idempotency.js';

/** Owns what is to be kept of one answer: its bytes as they are sent, up to the bound. */
export class Recording {
  readonly #keep: (answer: RecordedAnswer) => Promise<boolean>;
  #pieces: Buffer[] = [];
  #bytes = 0;

  /** `keep` resolves with whether the answer is kept. */
  constructor(keep: (answer: RecordedAnswer) => Promise<boolean>) {
    this.#keep = keep;
  }

  add(piece: string | Buffer): void {
    if (this.#isTooLong) return;
    const bytes = Buffer.from(piece);
    this.#bytes += bytes.length;
    if (this.#isTooLong) this.#pieces = [];
    else this.#pieces.push(bytes);
  }

  /** Takes what is left of a body that was begun, as far as that makes sense. */
  async addAll(pieces: AsyncIterable<string | Buffer>): Promise<void> {
    for await (const piece of pieces) {
      this.add(piece);
      if (this.#isTooLong) return;
    }
  }

  /** To be called once. Resolves with whether all of it is kept. */
  async finish(head: Omit<RecordedAnswer, 'body'>): Promise<boolean> {
    if (this.#isTooLong) return false;
    const body = Buffer.concat(this.#pieces).toString();
    this.#pieces = [];
    return this.#keep({ ...head, body });
  }

  get #isTooLong(): boolean {
    return this.#bytes > maxRecordedBytes;
  }
}
