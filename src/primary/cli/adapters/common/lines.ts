import { crashed, type DecoderEvent, type Exit, LineTooLong } from '../../contract/adapter.js';

/** UTF-16 units. Lines repeat whole texts and images, and the result of a tool can be large. */
const usualMaxLength = 64 * 1024 * 1024;

/** Reads the stdout of a program that writes one JSON message a line, as a decoder has to. */
export class JsonLines<Message> {
  readonly #lines: LineSplitter;
  readonly #messageOf: (line: string) => Message | null;
  readonly #eventsOf: (message: Message) => readonly DecoderEvent[];

  /** `messageOf` reads a line; null for one that says nothing. `maxLength`, of a line: UTF-16 units. */
  constructor(
    messageOf: (line: string) => Message | null,
    eventsOf: (message: Message) => readonly DecoderEvent[],
    maxLength = usualMaxLength,
  ) {
    this.#lines = new LineSplitter(maxLength);
    this.#messageOf = messageOf;
    this.#eventsOf = eventsOf;
  }

  /** Throws `LineTooLong`. Not a generator: a reader that stops at the end of a turn would lose the lines after it. */
  read(chunk: string): readonly DecoderEvent[] {
    return Array.from(this.#lines.split(chunk)).flatMap((line) => {
      const message = this.#messageOf(line);
      return message === null ? [] : this.#eventsOf(message);
    });
  }

  /** A program that exits before the end of its turn has crashed. Its last line may have come without a newline. */
  exit(exit: Exit): readonly DecoderEvent[] {
    const last = this.read('\n');
    const hasEnded = last.some(({ type }) => type === 'turn-end' || type === 'turn-failed');
    return hasEnded ? last : [...last, crashed(exit)];
  }
}

/** Cuts a stream of text into lines. Keeps the unfinished line, up to `maxLength` UTF-16 units. */
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
      yield this.#take();
    }
    this.#keep(chunk.slice(from));
  }

  /** What stands after the last newline. */
  rest(): string {
    return this.#take();
  }

  #keep(part: string): void {
    this.#length += part.length;
    if (this.#length > this.#maxLength) throw new LineTooLong(`a line is longer than ${this.#maxLength} characters`);
    if (part !== '') this.#parts.push(part);
  }

  #take(): string {
    const line = this.#parts.join('');
    this.#parts = [];
    this.#length = 0;
    return line;
  }
}

/** null for a line that is no JSON. */
export function jsonOf(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}

/**
 * Commands to a terminal: CSI, the strings (OSC, DCS and the like), and the short sequences. An OSC ends
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

/** What looks like a longer sequence is none, so that no program can make the relay store an answer for ever. */
const maxWaitingLength = 4096;

/**
 * Owns the part of an answer that must wait for the next chunk: the beginning of a sequence, and line ends that may be the
 * last. The rest is passed on without its sequences.
 */
export class PrintedText {
  #cut = '';
  #lineEnds = '';

  /** The next piece, as far as it can be passed on now. */
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

/** Where its last line ends begin. A pattern would read a long run of them again for each one. */
function endOfText(text: string): number {
  let end = text.length;
  while (end > 0 && (text[end - 1] === '\n' || text[end - 1] === '\r')) end--;
  return end;
}

/** Of a parsed JSON value. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
