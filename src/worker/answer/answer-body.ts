import { randomUUID } from 'node:crypto';
import type { AnswerText } from './answer-text.js';

/** The JSON of a body in which the text of an answer stands, once or several times, and is never held as a whole. */
export class AnswerBody {
  readonly #frame: readonly string[];
  readonly #text: AnswerText;

  /** `bodyOf` makes the body for any text: it is given a mark, which the text takes the place of. */
  constructor(bodyOf: (text: string) => object, text: AnswerText) {
    const mark = randomUUID();
    this.#frame = JSON.stringify(bodyOf(mark)).split(mark);
    this.#text = text;
  }

  /** All of it, where it is short; else null. */
  get short(): string | null {
    const { short } = this.#text;
    return short === null ? null : this.#frame.join(short);
  }

  get bytes(): number {
    const frame = this.#frame.reduce((sum, part) => sum + Buffer.byteLength(part), 0);
    return frame + (this.#frame.length - 1) * this.#text.bytes;
  }

  async *pieces(): AsyncGenerator<string | Buffer> {
    for (const [index, part] of this.#frame.entries()) {
      if (index > 0) yield* this.#text.pieces();
      yield part;
    }
  }
}
