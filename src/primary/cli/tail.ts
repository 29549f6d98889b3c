/** Keeps the last `limit` bytes of a stream. */
export class Tail {
  readonly #limit: number;
  #kept: Buffer = Buffer.alloc(0);

  constructor(limit: number) {
    this.#limit = limit;
  }

  add(chunk: Buffer): void {
    this.#kept = Buffer.concat([this.#kept, chunk.subarray(-this.#limit)]).subarray(-this.#limit);
  }

  /** Printable text: terminal colours and other control characters are left out, line ends stay. */
  toString(): string {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this removes
    return this.#kept.toString('utf8').replace(/\x1b\[[0-9;]*[A-Za-z]|[\x00-\x09\x0b-\x1f\x7f-\x9f]/g, '');
  }
}
