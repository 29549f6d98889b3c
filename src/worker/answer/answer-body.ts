import { randomUUID } from 'node:crypto';
import type { AnswerText } from './answer-text.js';

/** What is sent of an answer: JSON in which its text stands, once or several times, and is never held as a whole. */
export class AnswerBody {
  readonly #frame: readonly string[];
  readonly #text: AnswerText;

  /** `write` writes it out for any text, as part of a JSON string: it is given a mark, which the text takes the place of. */
  constructor(write: (text: string) => string, text: AnswerText) {
    const mark = randomUUID();
    this.#frame = write(mark).split(mark);
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
