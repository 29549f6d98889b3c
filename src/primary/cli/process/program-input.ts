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
  readonly #waiting: string[] = [];
  #isWriting = false;
  #isEnding = false;

  constructor(stdin: NodeJS.WritableStream) {
    this.#stdin = stdin;
  }

  write(text: string): void {
    if (!this.#isWriting && text.length <= pieceUnits) return void this.#stdin.write(text);
    this.#waiting.push(text);
    if (!this.#isWriting) void this.#writeWaiting();
  }

  /** Closes stdin after the last text. */
  end(): void {
    this.#isEnding = true;
    if (!this.#isWriting) this.#stdin.end();
  }

  /** Writes the waiting texts, until the program no longer reads. Never rejects. */
  async #writeWaiting(): Promise<void> {
    this.#isWriting = true;
    for (let text = this.#waiting.shift(); text !== undefined; text = this.#waiting.shift()) {
      for (const piece of piecesOf(text, pieceUnits)) {
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
