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

  /** Printable text: colours, cursor moves, titles and control characters are left out; what a line is written over with stands on the next. */
  toString(): string {
    return this.#kept.toString('utf8').replace(sequences, '').replace(/\r\n?/g, '\n').replace(controls, '');
  }
}

/** What a program tells its terminal to do: CSI, OSC, and the short ones. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this removes
const sequences = /\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-Z\\^-~])/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this removes
const controls = /[\x00-\x09\x0b-\x1f\x7f-\x9f]/g;
