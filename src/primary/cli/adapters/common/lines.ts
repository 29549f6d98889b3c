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
