/** Limit of a line, which bounds the memory. The service itself refuses a request of this size. */
export const maxLineBytes = 64 * 1024 * 1024;

const lineFeed = 10;

/** Line of a file or a stream, which may be blank. */
export interface TextLine {
  /** Text without its line feed, empty if the line is too long. Invalid UTF-8 is replaced by replacement characters. */
  readonly text: string;
  readonly fault: 'is longer than 64 MiB' | 'is not UTF-8' | null;
  /** Line number; the first line is 1. */
  readonly number: number;
  /** Offsets in bytes at which the line begins (`from`) and ends (`to`, after its line feed). */
  readonly from: number;
  readonly to: number;
  /** Whether the line ends with a line feed. Only the last line may lack one. */
  readonly isWhole: boolean;
}

/** Splits chunks at line feeds only. At most one line is in memory, and nothing of a line that is too long. */
export async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<TextLine> {
  const open = new OpenLine();
  for await (const chunk of chunks) {
    let from = 0;
    for (let at = chunk.indexOf(lineFeed); at !== -1; at = chunk.indexOf(lineFeed, from)) {
      open.addBytes(chunk.subarray(from, at));
      yield open.closeLine(true);
      from = at + 1;
    }
    open.addBytes(chunk.subarray(from));
  }
  if (!open.isEmpty) yield open.closeLine(false);
}

/** Owns the line that is being read. */
class OpenLine {
  readonly #decoder = new TextDecoder('utf-8', { fatal: true });
  #parts: Uint8Array[] = [];
  #bytes = 0;
  #from = 0;
  #number = 1;

  get isEmpty(): boolean {
    return this.#bytes === 0;
  }

  addBytes(part: Uint8Array): void {
    this.#bytes += part.length;
    if (this.#bytes > maxLineBytes) this.#parts = [];
    else if (part.length > 0) this.#parts.push(part);
  }

  closeLine(isWhole: boolean): TextLine {
    const to = this.#from + this.#bytes + Number(isWhole);
    const line = { ...this.#read(), number: this.#number, from: this.#from, to, isWhole };
    this.#parts = [];
    this.#bytes = 0;
    this.#from = to;
    this.#number++;
    return line;
  }

  #read(): Pick<TextLine, 'text' | 'fault'> {
    if (this.#bytes > maxLineBytes) return { text: '', fault: 'is longer than 64 MiB' };
    const bytes = Buffer.concat(this.#parts);
    try {
      return { text: this.#decoder.decode(bytes), fault: null };
    } catch {
      return { text: bytes.toString(), fault: 'is not UTF-8' };
    }
  }
}
