import { terminalSequences } from '../../primary/cli/contract/adapter.js';

/** Terminal sequence that is still incomplete. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this finds
const cutSequence = /\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b\n]*\x1b?|[PX^_][^\x07\x1b]*\x1b?|[ -/]*)$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this finds
const strayEscapes = /\x1b/g;

/**
 * Maximum UTF-16 units of an incomplete terminal sequence that are held back. A longer one is passed on as text, so
 * that no program can make the relay store an answer endlessly.
 */
const maxWaitingLength = 4096;

/**
 * Removes terminal sequences from an answer. Holds back text until the next chunk shows whether it is an incomplete
 * sequence or the final line breaks.
 */
export class PrintedText {
  #cut = '';
  #lineEnds = '';

  /** Returns the text that can be passed on now. */
  addChunk(chunk: string): string {
    const text = this.#lineEnds + this.#withoutSequences(this.#cut + chunk);
    const end = endOfText(text);
    const isHeld = text.length - end <= maxWaitingLength;
    this.#lineEnds = isHeld ? text.slice(end) : '';
    return isHeld ? text.slice(0, end) : text;
  }

  #withoutSequences(text: string): string {
    const at = text.includes('\x1b') ? (cutSequence.exec(text)?.index ?? text.length) : text.length;
    const isHeld = text.length - at <= maxWaitingLength;
    this.#cut = isHeld ? text.slice(at) : '';
    return (isHeld ? text.slice(0, at) : text).replace(terminalSequences, '').replace(strayEscapes, '');
  }
}

/**
 * Returns the offset of the final line breaks. A regular expression would take quadratic time on a long run of them.
 */
function endOfText(text: string): number {
  let end = text.length;
  while (end > 0 && (text[end - 1] === '\n' || text[end - 1] === '\r')) end--;
  return end;
}
