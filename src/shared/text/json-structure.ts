/** Limits of a JSON text. Values are elements of lists and fields of objects. */
export interface StructureLimits {
  readonly maxValues: number;
  readonly maxDepth: number;
}

const [quote, backslash, comma] = [0x22, 0x5c, 0x2c];
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d];
/** All blanks of JSON are at or below this code. */
const space = 0x20;
const [zero, nine] = [0x30, 0x39];
/** JavaScript reads each number with fewer digits exactly. */
const longDigits = 16;

/**
 * Counts the values and the depth of a JSON text over its bytes, as they arrive. This protects the parser, which takes
 * some hundred bytes of memory for each bracket and can block the event loop for seconds. In an invalid text, it counts
 * the part that the parser would read.
 */
export class JsonStructure {
  readonly #limits: StructureLimits;
  #values = 0;
  #bytes = 0;
  #depth = 0;
  #isInString = false;
  #isEscaped = false;
  /** Number of digits of the current number so far. */
  #digits = 0;
  #hasLongNumber = false;
  /** Whether the last non-blank byte opened a list or an object: the next byte shows whether it is empty. */
  #hasOpened = false;

  constructor(limits: StructureLimits) {
    this.#limits = limits;
  }

  /** Total bytes of all texts. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Whether a number has so many digits that JavaScript may change it. */
  get hasLongNumber(): boolean {
    return this.#hasLongNumber;
  }

  /**
   * Counts another, complete text like `countBytes`. The values of all texts are summed; the depth is counted for each text.
   */
  countText(text: string): string | null {
    this.#depth = 0;
    this.#isInString = false;
    this.#isEscaped = false;
    this.#hasOpened = false;
    return this.countBytes(Buffer.from(text));
  }

  /**
   * Counts further bytes. Returns the fault; null while the limits are met. Takes one or two milliseconds per megabyte.
   */
  countBytes(bytes: Uint8Array): string | null {
    const { maxValues, maxDepth } = this.#limits;
    this.#bytes += bytes.length;
    for (let at = 0; at < bytes.length; at++) {
      if (this.#isInString) at = this.#endOfString(bytes, at);
      else this.#count(bytes[at] as number);
      if (this.#values > maxValues) return `must contain at most ${maxValues} values`;
      if (this.#depth > maxDepth) return `must be nested at most ${maxDepth} levels deep`;
    }
    return null;
  }

  /** Returns the position of the closing quote, or the length if the string continues in the next bytes. */
  #endOfString(bytes: Uint8Array, from: number): number {
    let at = this.#isEscaped ? from + 1 : from;
    this.#isEscaped = false;
    while (at < bytes.length && bytes[at] !== quote) at += bytes[at] === backslash ? 2 : 1;
    this.#isEscaped = at > bytes.length;
    this.#isInString = at >= bytes.length;
    return at;
  }

  #count(byte: number): void {
    if (byte <= space) return;
    const isFirst = this.#hasOpened && byte !== closeList && byte !== closeObject;
    if (isFirst || byte === comma) this.#values++;
    this.#hasOpened = byte === openList || byte === openObject;
    if (this.#hasOpened) this.#depth++;
    else if (byte === closeList || byte === closeObject) this.#depth--;
    else this.#isInString = byte === quote;
    this.#digits = byte >= zero && byte <= nine ? this.#digits + 1 : 0;
    if (this.#digits === longDigits) this.#hasLongNumber = true;
  }
}
