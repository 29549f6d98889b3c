import { yieldToEventLoop } from '../../shared/clock.js';
import { LineScanner, type ScannedLine } from './line-scanner.js';
import type { FileLine } from './views.js';

/** Finds the lines of a stored file, except blank ones. Memory holds one piece of the file, whatever a line's length. */
export class LineReader {
  readonly #read: (from: number) => Promise<Buffer>;
  readonly #scanner: LineScanner;
  /** Position behind the last piece. */
  #position: number;
  #found: Iterator<ScannedLine, undefined> = [][Symbol.iterator]();

  /** `read`: returns a piece of the file, empty at its end. */
  constructor(read: (from: number) => Promise<Buffer>, position: number) {
    this.#read = read;
    this.#position = position;
    this.#scanner = new LineScanner(position);
  }

  /** Returns the next line, or null at the end of the file. Other work goes on between two pieces. */
  async next(): Promise<FileLine | null> {
    for (;;) {
      const { value } = this.#found.next();
      if (value !== undefined) return lineOf(value);
      await yieldToEventLoop();
      const piece = await this.#read(this.#position);
      if (piece.length === 0) {
        const last = this.#scanner.last();
        return last === null ? null : lineOf(last);
      }
      this.#position += piece.length;
      this.#found = this.#scanner.scan(piece);
    }
  }
}

function lineOf({ start, end, id }: ScannedLine): FileLine {
  return { start, end, id };
}
