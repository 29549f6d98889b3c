/** A text that grows block by block. What was said before a tool was called, and what after it, stand apart. */
export class GrowingText {
  #text = '';
  #isAfterTool = false;

  /** Returns what the whole has grown by. */
  add(text: string): string {
    if (text === '') return '';
    const grown = this.#isAfterTool && this.#text !== '' ? `\n\n${text}` : text;
    this.#isAfterTool = false;
    this.#text += grown;
    return grown;
  }

  /** A block that is no text. */
  pass(type: string): void {
    if (type === 'tool_use') this.#isAfterTool = true;
  }

  toString(): string {
    return this.#text;
  }
}
