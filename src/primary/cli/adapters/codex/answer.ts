/** Owns the text of one answer: a blank line separates the messages of which it consists. */
export class CodexAnswer {
  #streamed = '';
  readonly #said: string[] = [];
  #streaming: string | null = null;

  /** The next piece of a message. Returns what was added to the whole. */
  add(messageId: string, piece: string): string {
    if (piece === '') return '';
    const isNext = this.#streaming !== null && this.#streaming !== messageId;
    const grown = isNext && this.#streamed !== '' ? `\n\n${piece}` : piece;
    this.#streaming = messageId;
    this.#streamed += grown;
    return grown;
  }

  /** A message as a whole. One whose stream broke is never completed, and is no part of the answer. */
  complete(text: string): void {
    if (text !== '') this.#said.push(text);
  }

  get isEmpty(): boolean {
    return this.#streamed === '' && this.#said.length === 0;
  }

  /** The answer, where it differs from what was streamed; else null. A value for a schema is the last message alone. */
  correction(isValue: boolean): string | null {
    const whole = isValue ? (this.#said.at(-1) ?? '') : this.#said.join('\n\n');
    return whole === '' || whole === this.#streamed ? null : whole;
  }
}
