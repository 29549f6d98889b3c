import { isUtf8 } from 'node:buffer';
import type { LineFault } from '../../shared/files.js';
import { isBlank, lineEnd } from '../../shared/text/line-counter.js';

/** FileLine of a batch. `text` is null if it cannot be a request; `fault` then says why. */
export interface FileLine {
  /** Position of its first byte, and of the next line. */
  readonly start: number;
  readonly end: number;
  readonly text: string | null;
  readonly fault: LineFault | null;
}

const byteOrderMark = /^\uFEFF/;

/** Reads the lines of a stored file, except blank ones. Memory holds one line and one piece of the file at most. */
export class LineReader {
  readonly #read: (from: number) => Promise<Buffer>;
  readonly #maxBytes: number;
  /** Position of the buffer in the file. */
  #position: number;
  #buffer: Buffer = Buffer.alloc(0);

  /** `read`: returns a piece of the file, empty at its end. A longer line than `maxBytes` is skipped. */
  constructor(read: (from: number) => Promise<Buffer>, position: number, maxBytes: number) {
    this.#read = read;
    this.#position = position;
    this.#maxBytes = maxBytes;
  }

  /** Returns the next line, or null at the end of the file. */
  async next(): Promise<FileLine | null> {
    for (;;) {
      const line = await this.#nextLine();
      if (line !== 'blank') return line;
    }
  }

  async #nextLine(): Promise<FileLine | 'blank' | null> {
    const start = this.#position;
    let isTooLong = false;
    for (let searched = 0; ; ) {
      const at = this.#buffer.indexOf(lineEnd, searched);
      if (at >= 0) return this.#lineOf(start, at + 1, isTooLong);
      searched = this.#buffer.length;
      const piece = await this.#read(this.#position + searched);
      if (piece.length === 0 && searched === 0 && !isTooLong) return null;
      if (piece.length === 0) return this.#lineOf(start, searched, isTooLong);
      if (searched <= this.#maxBytes) {
        this.#buffer = Buffer.concat([this.#buffer, piece]);
        continue;
      }
      isTooLong = true;
      this.#position += searched;
      this.#buffer = piece;
      searched = 0;
    }
  }

  #lineOf(start: number, length: number, isTooLong: boolean): FileLine | 'blank' {
    const bytes = this.#buffer.subarray(0, length);
    this.#buffer = this.#buffer.subarray(length);
    this.#position += length;
    const end = this.#position;
    if (isTooLong || length > this.#maxBytes + 1) return { start, end, text: null, fault: 'too_long' };
    if (isBlank(bytes)) return 'blank';
    if (!isUtf8(bytes)) return { start, end, text: null, fault: 'not_utf8' };
    return { start, end, text: bytes.toString('utf8').replace(byteOrderMark, ''), fault: null };
  }
}
