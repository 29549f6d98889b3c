/** The program wrote a line that is longer than the limit. */
export class LineTooLong extends Error {
  override readonly name = 'LineTooLong';
}

/** Cuts a stream of text into lines. Keeps the unfinished line, up to `maxLength` UTF-16 units. */
export class LineSplitter {
  readonly #maxLength: number;
  #parts: string[] = [];
  #length = 0;

  constructor(maxLength: number) {
    this.#maxLength = maxLength;
  }

  /** Throws `LineTooLong` for a line that is longer than `maxLength`. */
  *split(chunk: string): Generator<string> {
    let from = 0;
    for (let at = chunk.indexOf('\n'); at >= 0; at = chunk.indexOf('\n', from)) {
      this.#keep(chunk.slice(from, at));
      from = at + 1;
      yield this.#take();
    }
    this.#keep(chunk.slice(from));
  }

  /** What stands after the last newline. */
  rest(): string {
    return this.#take();
  }

  #keep(part: string): void {
    this.#length += part.length;
    if (this.#length > this.#maxLength) throw new LineTooLong(`a line is longer than ${this.#maxLength} characters`);
    if (part !== '') this.#parts.push(part);
  }

  #take(): string {
    const line = this.#parts.join('');
    this.#parts = [];
    this.#length = 0;
    return line;
  }
}

/** null for a line that is no JSON. */
export function jsonOf(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}
