import { randomUUID } from 'node:crypto';

/** The text of an answer, as it stands in a body. It is read as often as the body has it. */
export interface AnswerSource {
  /** All of it, where it is short; else null. */
  readonly short: string | null;
  /** Of the whole; null where nobody has counted them. */
  readonly bytes: number | null;
  pieces(): AsyncIterable<string | Buffer>;
}

/** What is sent of an answer: JSON in which its text stands, once or several times, and is never held as a whole. */
export class AnswerBody {
  /** What stands between the texts, and the texts. */
  readonly #parts: readonly (string | AnswerSource)[];

  /**
   * `write` writes it out with two marks: one that stands in JSON strings, for the text as it is escaped there, and a
   * string of its own for the value that the text is.
   */
  constructor(write: (text: string, value: string) => string, text: AnswerSource, value: AnswerSource = text) {
    const [textMark, valueMark] = [randomUUID(), randomUUID()];
    const sources = new Map([
      [textMark, text],
      [JSON.stringify(valueMark), value],
    ]);
    const written = write(textMark, valueMark).split(new RegExp(`(${[...sources.keys()].join('|')})`));
    this.#parts = written.map((part) => sources.get(part) ?? part);
  }

  /** All of it, where it is short; else null. */
  get short(): string | null {
    const parts = this.#parts.map((part) => (typeof part === 'string' ? part : part.short));
    return parts.includes(null) ? null : parts.join('');
  }

  /** null where nobody has counted them. */
  get bytes(): number | null {
    let bytes = 0;
    for (const part of this.#parts) {
      const count = typeof part === 'string' ? Buffer.byteLength(part) : part.bytes;
      if (count === null) return null;
      bytes += count;
    }
    return bytes;
  }

  async *pieces(): AsyncGenerator<string | Buffer> {
    for (const part of this.#parts) {
      if (typeof part === 'string') yield part;
      else yield* part.pieces();
    }
  }
}

/** In JSON, line ends stand between values only. They would end a server-sent event. */
export function onOneLine(json: string): string {
  return json.replaceAll(/[\r\n]/g, ' ');
}
