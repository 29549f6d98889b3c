/** Text that grows block by block, with a blank line between the text before and after a tool call. */
export class GrowingText {
  #text = '';
  #isAfterTool = false;

  /** Returns the text by which the whole has grown. */
  addText(text: string): string {
    if (text === '') return '';
    const grown = this.#isAfterTool && this.#text !== '' ? `\n\n${text}` : text;
    this.#isAfterTool = false;
    this.#text += grown;
    return grown;
  }

  /** Registers the start of a block. After a tool call, the next text begins with a blank line. */
  pass(type: string): void {
    if (type === 'tool_use') this.#isAfterTool = true;
  }

  toString(): string {
    return this.#text;
  }
}
