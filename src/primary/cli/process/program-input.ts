import { yieldToEventLoop } from '../../../shared/clock.js';
import { piecesOf } from '../../../shared/text/well-formed.js';

/** UTF-16 units of one write. Node encodes them within two milliseconds. */
const pieceUnits = 256 * 1024;

/**
 * Owns the texts that one program has not yet received, in order. A long text is written in pieces, because encoding 15
 * MB would block the event loop for 30 ms.
 */
export class ProgramInput {
  readonly #stdin: NodeJS.WritableStream;
  readonly #waiting: Iterable<string>[] = [];
  #isWriting = false;
  #isEnding = false;

  constructor(stdin: NodeJS.WritableStream) {
    this.#stdin = stdin;
  }

  /** Writes a text, or the pieces of a text, which are made one at a time. */
  write(text: string | Iterable<string>): void {
    const isLong = typeof text !== 'string' || text.length > pieceUnits;
    if (!this.#isWriting && !isLong) return void this.#stdin.write(text);
    this.#waiting.push(typeof text === 'string' ? [text] : text);
    // A piece that cannot be made ends stdin: without the rest of its input, the program ends, and so does its turn.
    if (!this.#isWriting) this.#writeWaiting().catch(() => this.#stdin.end());
  }

  /** Closes stdin after the last text. */
  end(): void {
    this.#isEnding = true;
    if (!this.#isWriting) this.#stdin.end();
  }

  /** Writes the waiting texts, until the program no longer reads. Rejects if a piece cannot be made. */
  async #writeWaiting(): Promise<void> {
    this.#isWriting = true;
    for (let text = this.#waiting.shift(); text !== undefined; text = this.#waiting.shift()) {
      for (const piece of shortPieces(text)) {
        const isWritten = await new Promise<boolean>((resolve) => {
          this.#stdin.write(piece, (error) => resolve(error == null));
        });
        if (!isWritten) return void this.#waiting.splice(0); // the exit of the program ends its turn
        await yieldToEventLoop();
      }
    }
    this.#isWriting = false;
    if (this.#isEnding) this.#stdin.end();
  }
}

function* shortPieces(texts: Iterable<string>): Generator<string> {
  for (const text of texts) yield* piecesOf(text, pieceUnits);
}
