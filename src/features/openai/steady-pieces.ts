import { wholeLength } from '../../shared/text/well-formed.js';

/** Smallest length of a piece, in UTF-16 units. */
const minLength = 4;
/** The smallest length of a piece is this part of the text before it, which limits the number of pieces. */
const growth = 1 / 512;
/** Largest length of a piece without white space, in smallest lengths. */
const maxLengths = 4;

/**
 * Splits texts into pieces that depend only on the texts, not on the parts in which they arrive. Therefore each reader
 * of an answer gets the same pieces. A piece ends behind white space; later pieces are longer.
 */
export class SteadyPieces {
  #buffered = '';
  /** UTF-16 units of all pieces so far. */
  #length = 0;

  /** Returns the pieces that are complete with this part of the text. */
  *addText(part: string): Generator<string> {
    this.#buffered += part;
    for (let end = this.#end(); end !== null; end = this.#end()) yield this.#take(end);
  }

  /** Returns the rest of the current text, which has ended; empty if all of it was returned. */
  takeRest(): string {
    return this.#take(this.#buffered.length);
  }

  /** Returns the length of the next piece; null if it is not complete. */
  #end(): number | null {
    const min = Math.max(minLength, Math.floor(this.#length * growth));
    const max = min * maxLengths;
    const space = this.#buffered.slice(min - 1, max).search(/\s/);
    if (space >= 0) return min + space;
    return this.#buffered.length > max ? wholeLength(this.#buffered, max) : null;
  }

  #take(length: number): string {
    const piece = this.#buffered.slice(0, length);
    this.#buffered = this.#buffered.slice(length);
    this.#length += length;
    return piece;
  }
}
