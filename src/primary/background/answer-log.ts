/** UTF-16 units of a block: what is read at once is one block, and fits into one message of the channel. */
const blockLength = 16 * 1024;

interface LoggedPiece {
  /** UTF-16 units before it. */
  readonly start: number;
  text: string;
}

/** A text that grows at its end and is read from anywhere, by as many as like. */
export class AnswerLog {
  readonly #blocks: LoggedPiece[] = [];
  #length = 0;

  /** UTF-16 units. */
  get length(): number {
    return this.#length;
  }

  get blocks(): readonly Readonly<LoggedPiece>[] {
    return this.#blocks;
  }

  add(text: string): void {
    for (let from = 0; from < text.length; ) {
      const end = from + lengthWithoutHalf(text.slice(from, from + blockLength + 1));
      this.#add(text.slice(from, end));
      from = end;
    }
  }

  #add(text: string): void {
    const last = this.#blocks.at(-1);
    if (last !== undefined && last.text.length + text.length <= blockLength) last.text += text;
    else this.#blocks.push({ start: this.#length, text });
    this.#length += text.length;
  }

  /** What is there from that unit on, up to the end of its block; empty at the end. */
  read(from: number): string {
    const block = this.#blocks[this.#indexOf(from)];
    return block === undefined ? '' : block.text.slice(from - block.start);
  }

  /** Of the last block that begins at or before that unit. */
  #indexOf(from: number): number {
    let [low, high] = [0, this.#blocks.length - 1];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((this.#blocks[middle]?.start ?? 0) <= from) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

/** Units that fit into one block, without half of a surrogate pair at the end. */
function lengthWithoutHalf(text: string): number {
  if (text.length <= blockLength) return text.length;
  return /[\ud800-\udbff]/.test(text.charAt(blockLength - 1)) ? blockLength - 1 : blockLength;
}
