export const lineEnd = 0x0a;
const space = 0x20;

/** Counts the lines of a file that are not blank. */
export class LineCounter {
  #count = 0;
  #hasContent = false;

  addBytes(bytes: Uint8Array): void {
    for (const byte of bytes) {
      if (byte === lineEnd) this.#end();
      else if (byte > space) this.#hasContent = true;
    }
  }

  /** Returns the number of lines of the whole file. */
  total(): number {
    this.#end();
    return this.#count;
  }

  #end(): void {
    if (this.#hasContent) this.#count++;
    this.#hasContent = false;
  }
}
