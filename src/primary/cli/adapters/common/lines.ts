import { crashed, type DecoderEvent, type Exit, LineTooLong } from '../../contract/adapter.js';

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

/** Whether a parsed JSON value is an object. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
