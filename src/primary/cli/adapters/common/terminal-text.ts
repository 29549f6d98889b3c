/**
 * What a program tells its terminal to do: CSI, the strings (OSC, DCS and the like), and the short sequences. An OSC ends
 * with its line, where the program has forgotten to end it: it would take the whole answer with it.
 */
export const terminalSequences =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this finds
  /\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\|(?=\n))|[PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-Z\\^-~])/g;

/** One of which only the beginning has been read. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this finds
const cutSequence = /\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b\n]*\x1b?|[PX^_][^\x07\x1b]*\x1b?|[ -/]*)$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this finds
const strayEscapes = /\x1b/g;

/** What looks like a longer sequence is none, so that nobody can make the relay keep an answer for ever. */
const maxHeldLength = 4096;

/**
 * Owns what is held back of an answer that is still being read: the beginning of a sequence, and line ends that may be the
 * last. The rest is passed on without its sequences.
 */
export class PrintedText {
  #cut = '';
  #lineEnds = '';

  /** The next piece, as far as it can be passed on now. */
  add(chunk: string): string {
    const text = this.#lineEnds + this.#withoutSequences(this.#cut + chunk);
    const end = endOfText(text);
    const isHeld = text.length - end <= maxHeldLength;
    this.#lineEnds = isHeld ? text.slice(end) : '';
    return isHeld ? text.slice(0, end) : text;
  }

  #withoutSequences(text: string): string {
    const at = text.includes('\x1b') ? (cutSequence.exec(text)?.index ?? text.length) : text.length;
    const isHeld = text.length - at <= maxHeldLength;
    this.#cut = isHeld ? text.slice(at) : '';
    return (isHeld ? text.slice(0, at) : text).replace(terminalSequences, '').replace(strayEscapes, '');
  }
}

/** Where its last line ends begin. A pattern would look at a long run of them again for each one. */
function endOfText(text: string): number {
  let end = text.length;
  while (end > 0 && (text[end - 1] === '\n' || text[end - 1] === '\r')) end--;
  return end;
}
