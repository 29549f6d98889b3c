import { crashed, type DecoderEvent, type Exit, LineTooLong, terminalSequences } from '../../contract/adapter.js';

/** Longest line, UTF-16 units. Lines repeat whole texts and images, and the result of a tool can be large. */
const usualMaxLength = 64 * 1024 * 1024;

/** Decodes the stdout of a program that writes one JSON message per line. */
export class JsonLines<Message> {
  readonly #lines: LineSplitter;
  readonly #messageOf: (line: string) => Message | null;
  readonly #eventsOf: (message: Message) => readonly DecoderEvent[];

  /** `messageOf` parses a line; null if the line is irrelevant. `maxLength`: longest line, UTF-16 units. */
  constructor(
    messageOf: (line: string) => Message | null,
    eventsOf: (message: Message) => readonly DecoderEvent[],
    maxLength = usualMaxLength,
  ) {
    this.#lines = new LineSplitter(maxLength);
    this.#messageOf = messageOf;
    this.#eventsOf = eventsOf;
  }

  /**
   * Returns an array because a generator would lose lines if its reader stopped at the end of a turn. Throws
   * `LineTooLong`.
   */
  read(chunk: string): readonly DecoderEvent[] {
    return Array.from(this.#lines.split(chunk)).flatMap((line) => {
      const message = this.#messageOf(line);
      return message === null ? [] : this.#eventsOf(message);
    });
  }

  /**
   * Returns the last events. A program that exits before the end of its turn has crashed; its last line may lack a
   * newline.
   */
  exit(exit: Exit): readonly DecoderEvent[] {
    const last = this.read('\n');
    const hasEnded = last.some(({ type }) => type === 'turn-end' || type === 'turn-failed');
    return hasEnded ? last : [...last, crashed(exit)];
  }
}

/** Splits a stream of text into lines. Stores an unfinished line of up to `maxLength` UTF-16 units. */
export class LineSplitter {
  readonly #maxLength: number;
  #parts: string[] = [];
  #length = 0;

  constructor(maxLength: number) {
    this.#maxLength = maxLength;
  }

  /** Throws `LineTooLong` for a line that is longer than `maxLength`. */
  *split(chunk: string): Generator<string> {
    let from = 0;
    for (let at = chunk.indexOf('\n'); at >= 0; at = chunk.indexOf('\n', from)) {
      this.#keep(chunk.slice(from, at));
      from = at + 1;
      yield this.#takeLine();
    }
    this.#keep(chunk.slice(from));
  }

  /** Returns and clears the text after the last newline. */
  incompleteLine(): string {
    return this.#takeLine();
  }

  #keep(part: string): void {
    this.#length += part.length;
    if (this.#length > this.#maxLength) throw new LineTooLong(`a line is longer than ${this.#maxLength} characters`);
    if (part !== '') this.#parts.push(part);
  }

  #takeLine(): string {
    const line = this.#parts.join('');
    this.#parts = [];
    this.#length = 0;
    return line;
  }
}

/** Parses JSON; returns null if it is invalid. */
export function jsonOf(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}

/** Terminal sequence that is still incomplete. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this finds
const cutSequence = /\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b\n]*\x1b?|[PX^_][^\x07\x1b]*\x1b?|[ -/]*)$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this finds
const strayEscapes = /\x1b/g;

/**
 * UTF-16 units that may wait for more output. A longer sequence is not treated as one, so that no program can make the
 * relay store an answer endlessly.
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
  add(chunk: string): string {
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

/** Whether a parsed JSON value is an object. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
