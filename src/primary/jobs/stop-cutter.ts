/**
 * Finds the first of some sequences in a text that comes in pieces, and lets through what stands before it. The first is
 * the one that is complete first: so it is the same one however the text is cut.
 */
export class StopCutter {
  readonly #sequences: readonly string[];
  readonly #longest: number;
  /** The end of what has come, as long as a sequence may begin in it. */
  #held = '';
  #found: string | null = null;

  constructor(sequences: readonly string[]) {
    this.#sequences = sequences;
    this.#longest = Math.max(0, ...sequences.map(({ length }) => length));
  }

  /** The sequence that was found; null as long as there is none. */
  get found(): string | null {
    return this.#found;
  }

  /** Returns the text that is certain to stand before any sequence. */
  add(piece: string): string {
    if (this.#found !== null) return '';
    const text = this.#held + piece;
    const at = this.#firstIn(text);
    const end = at ?? text.length - this.#beginsAtEnd(text);
    this.#held = at === null ? text.slice(end) : '';
    return text.slice(0, end);
  }

  /** What was held back, when no more comes. */
  rest(): string {
    const rest = this.#held;
    this.#held = '';
    return rest;
  }

  #firstIn(text: string): number | null {
    let first: { readonly at: number; readonly end: number } | null = null;
    for (const sequence of this.#sequences) {
      const at = text.indexOf(sequence);
      const end = at + sequence.length;
      if (at < 0 || (first !== null && (end > first.end || (end === first.end && at >= first.at)))) continue;
      first = { at, end };
      this.#found = sequence;
    }
    return first?.at ?? null;
  }

  /** The length of the longest end of the text that a sequence begins with. */
  #beginsAtEnd(text: string): number {
    for (let length = Math.min(this.#longest - 1, text.length); length > 0; length--) {
      const end = text.slice(-length);
      if (this.#sequences.some((sequence) => sequence.startsWith(end))) return length;
    }
    return 0;
  }
}
