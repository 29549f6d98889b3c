/** A text that grows block by block. A blank line separates what comes before and after a tool call. */
export class GrowingText {
  #text = '';
  #isAfterTool = false;

  /** Returns what was added to the whole. */
  add(text: string): string {
    if (text === '') return '';
    const grown = this.#isAfterTool && this.#text !== '' ? `\n\n${text}` : text;
    this.#isAfterTool = false;
    this.#text += grown;
    return grown;
  }

  /** Takes note of a block that is no text. */
  pass(type: string): void {
    if (type === 'tool_use') this.#isAfterTool = true;
  }

  toString(): string {
    return this.#text;
  }
}
