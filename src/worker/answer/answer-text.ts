import type { SpillFile, SpillFolder } from './spill-folder.js';

/** UTF-16 units of an answer that are held in memory. The rest is in a file: a slow reader holds its answer for long. */
const maxHeldLength = 32 * 1024;
const pieceBytes = 32 * 1024;

/**
 * Owns the text of one answer, as it stands inside a JSON string: escaped, without the quotes. A pair of surrogates that
 * comes in two halves is two escapes, which a reader joins again.
 */
export class AnswerText implements AsyncDisposable {
  readonly #folder: Pick<SpillFolder, 'file'>;
  /** What comes after that in the file. */
  #held: string[] = [];
  #heldLength = 0;
  #file: SpillFile | null = null;
  #canSpill = true;

  constructor(folder: Pick<SpillFolder, 'file'>) {
    this.#folder = folder;
  }

  async add(text: string): Promise<void> {
    const escaped = JSON.stringify(text).slice(1, -1);
    this.#held.push(escaped);
    this.#heldLength += escaped.length;
    if (this.#heldLength > maxHeldLength && this.#canSpill) await this.#spill();
  }

  /** The text is another one: the model CLI has corrected itself. */
  async replace(text: string): Promise<void> {
    await this[Symbol.asyncDispose]();
    for (let at = 0; at < text.length; at += maxHeldLength) await this.add(text.slice(at, at + maxHeldLength));
  }

  /** The whole text, where all of it is in memory; else null. */
  get short(): string | null {
    return this.#file === null ? this.#held.join('') : null;
  }

  get bytes(): number {
    const held = this.#held.reduce((sum, piece) => sum + Buffer.byteLength(piece), 0);
    return (this.#file?.bytes ?? 0) + held;
  }

  async *pieces(): AsyncGenerator<string | Buffer> {
    if (this.#file !== null) yield* this.#file.pieces(pieceBytes);
    yield* this.#held;
  }

  /** Where the disk takes no more, the rest stays in memory, as all of it would without a disk. */
  async #spill(): Promise<void> {
    this.#file ??= await this.#folder.file();
    this.#canSpill = (await this.#file?.append(Buffer.from(this.#held.join('')))) ?? false;
    if (this.#canSpill) this.#forgetHeld();
  }

  #forgetHeld(): void {
    this.#held = [];
    this.#heldLength = 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const file = this.#file;
    this.#file = null;
    this.#forgetHeld();
    await file?.close();
  }
}
