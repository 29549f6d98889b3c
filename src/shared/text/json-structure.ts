/** Values are elements of lists and fields of objects. */
export interface StructureLimits {
  readonly maxValues: number;
  readonly maxDepth: number;
}

const [quote, backslash, comma] = [0x22, 0x5c, 0x2c];
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d];
/** Blanks of JSON are all up to it. */
const space = 0x20;
const [zero, nine] = [0x30, 0x39];
/** JavaScript reads each number with fewer digits exactly. */
const longDigits = 16;

/**
 * Counts the values and the depth of one JSON text over its bytes, as they arrive. The parser takes some hundred bytes of
 * memory for each bracket, and blocks the loop for seconds. Of a text that is no JSON it counts what the parser reads
 * before it stops.
 */
export class JsonStructure {
  readonly #limits: StructureLimits;
  #values = 0;
  #bytes = 0;
  #depth = 0;
  #isInString = false;
  #isEscaped = false;
  /** Of the number that is read. */
  #digits = 0;
  #hasLongNumber = false;
  /** The last byte that is no blank has opened a list or an object: the next one says whether it is empty. */
  #hasOpened = false;

  constructor(limits: StructureLimits) {
    this.#limits = limits;
  }

  /** The bytes of all texts. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Whether a number has so many digits that JavaScript may change it. */
  get hasLongNumber(): boolean {
    return this.#hasLongNumber;
  }

  /** As `take`, for a further text, which is whole. Its values count together with those before, its depth alone. */
  takeText(text: string): string | null {
    this.#depth = 0;
    this.#isInString = false;
    this.#isEscaped = false;
    this.#hasOpened = false;
    return this.take(Buffer.from(text));
  }

  /** What is wrong with the text up to here; null while it keeps to the limits. Takes a millisecond or two for a megabyte. */
  take(bytes: Uint8Array): string | null {
    const { maxValues, maxDepth } = this.#limits;
    this.#bytes += bytes.length;
    for (let at = 0; at < bytes.length; at++) {
      if (this.#isInString) at = this.#endOfString(bytes, at);
      else this.#count(bytes[at] as number);
      if (this.#values > maxValues) return `must hold ${maxValues} values at most`;
      if (this.#depth > maxDepth) return `must be nested ${maxDepth} levels deep at most`;
    }
    return null;
  }

  /** The place of the quote that ends the string, or the length if the string continues in the next bytes. */
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
