import { randomUUID } from 'node:crypto';
import { type FileHandle, open, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { StringDecoder } from 'node:string_decoder';
import type { Logger } from '../../shared/log/logger.js';
import { type AnswerFrame, escaped, type FramePlace, onOneLine } from '../../shared/text/answer-frame.js';
import type { SentBody } from '../http/answer-recorder.js';

/** Maximum UTF-16 units of an answer that stay in memory, because a slow client occupies it for a long time. */
const maxInMemory = 32 * 1024;

/**
 * Owns the answer text of one running job, escaped as in a JSON string, without the quotes. A long text is in a file. A
 * surrogate pair that arrives in two halves becomes two escapes, which a JSON parser joins again.
 */
export class AnswerText implements SentBody, AsyncDisposable {
  readonly #folder: Pick<SpillFolder, 'file'> | null;
  /** File with the beginning of the text; null if all of the text is in `#inMemory`. */
  #file: SpillFile | null = null;
  #inMemory: string[] = [];
  #units = 0;
  #canSpill: boolean;

  /** `folder`: where long answers are written. If it is null, they stay in memory. */
  constructor(folder: Pick<SpillFolder, 'file'> | null) {
    this.#folder = folder;
    this.#canSpill = folder !== null;
  }

  addText(text: string): Promise<void> {
    return this.addJson(escaped(text));
  }

  /** Adds text that needs no escapes, because it is JSON. */
  async addJson(piece: string): Promise<void> {
    this.#inMemory.push(piece);
    this.#units += piece.length;
    if (this.#units > maxInMemory && this.#canSpill) await this.#spill();
  }

  /** Replaces the whole text, because the model CLI has corrected it. */
  async replace(text: string): Promise<void> {
    await this[Symbol.asyncDispose]();
    for (let at = 0; at < text.length; at += maxInMemory) await this.addText(text.slice(at, at + maxInMemory));
  }

  /** Whole text if all of it is in memory, else null. */
  get short(): string | null {
    return this.#file === null ? this.#inMemory.join('') : null;
  }

  async whole(): Promise<string> {
    const pieces: string[] = [];
    const decoder = new StringDecoder('utf8');
    for await (const piece of this.pieces()) pieces.push(typeof piece === 'string' ? piece : decoder.write(piece));
    return unescaped(pieces.join(''));
  }

  async length(): Promise<number> {
    const inFile = (await this.#file?.length()) ?? 0;
    return this.#inMemory.reduce((sum, piece) => sum + Buffer.byteLength(piece), inFile);
  }

  async *pieces(): AsyncGenerator<string | Buffer> {
    yield* this.#file?.pieces() ?? [];
    yield* this.#inMemory;
  }

  /** Returns JSON that contains this text once or several times. */
  body(form: BodyForm, write: WriteAround): SentBody {
    return filledBody(this, frameAround(this.short !== '', form, write));
  }

  /** Moves the text in memory to the file. If the disk is full, the rest of the answer stays in memory. */
  async #spill(): Promise<void> {
    this.#file ??= (await this.#folder?.file()) ?? null;
    this.#canSpill = (await this.#file?.append(Buffer.from(this.#inMemory.join('')))) ?? false;
    if (this.#canSpill) this.#forgetMemory();
  }

  #forgetMemory(): void {
    this.#inMemory = [];
    this.#units = 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const file = this.#file;
    this.#file = null;
    this.#forgetMemory();
    await file?.closeFile();
  }
}

export interface BodyForm {
  /** Whether the job has a schema, which makes the text a JSON value. */
  readonly isStructured: boolean;
  /** Positions at which the text is split, in UTF-16 units, ascending, without both ends. */
  readonly cuts: readonly number[];
}

/**
 * Writes JSON around placeholders. `text` and `slices` may be used only inside JSON strings; `value` stands for the
 * JSON value of a structured answer, and is undefined if there is none.
 */
export type WriteAround = (text: string, value: string | undefined, slices: readonly string[]) => string;

/**
 * Returns JSON with the places of the answer. `write` gets placeholders for the text, its slices and its value. `value`
 * is undefined if the answer is not structured or empty.
 */
export function frameAround(hasText: boolean, { isStructured, cuts }: BodyForm, write: WriteAround): AnswerFrame {
  const [text, value] = [randomUUID(), randomUUID()];
  const slices = cuts.length === 0 ? [] : [0, ...cuts].map((from, at) => [randomUUID(), from, cuts[at]] as const);
  const places = new Map<string, FramePlace>([
    [text, { type: 'slice', from: 0, to: null }],
    [JSON.stringify(value), { type: 'value' }],
    ...slices.map(([marker, from, to = null]) => [marker, { type: 'slice', from, to }] as const),
  ]);
  const markers = slices.length === 0 ? [text] : slices.map(([marker]) => marker);
  const written = write(text, isStructured && hasText ? value : undefined, markers);
  return written.split(new RegExp(`(${[...places.keys()].join('|')})`)).map((part) => places.get(part) ?? part);
}

/** Returns JSON that contains the answer at each of its places. */
export function filledBody(answer: SentBody, frame: AnswerFrame): SentBody {
  return joined(frame.map((part) => (typeof part === 'string' ? part : placed(answer, part))));
}

function placed(answer: SentBody, place: FramePlace): SentBody {
  if (place.type === 'value') return valueIn(answer);
  return place.from === 0 && place.to === null ? answer : sliceOf(answer, place.from, place.to ?? undefined);
}

/** Unescapes the text of a structured answer to its JSON value, on one line. */
function valueIn(text: SentBody): SentBody {
  return rewritten(text, () => onOneLine);
}

/** Returns the part of an escaped text between two positions, which count UTF-16 units of the unescaped text. */
function sliceOf(text: SentBody, from: number, to = Number.POSITIVE_INFINITY): SentBody {
  return rewritten(text, () => {
    let before = 0;
    return (piece) => {
      const [begin, end] = [from - before, to - before];
      before += piece.length;
      return escaped(piece.slice(Math.max(0, begin), Math.max(0, end)));
    };
  });
}

/**
 * Applies a function to the unescaped pieces of a text. `begin` is called for each reader and returns that function.
 */
function rewritten(text: SentBody, begin: () => (piece: string) => string): SentBody {
  return {
    get short() {
      return text.short === null ? null : begin()(unescaped(text.short));
    },
    async length() {
      if ((await text.length()) === null) return null;
      let bytes = 0;
      for await (const piece of this.pieces()) bytes += Buffer.byteLength(piece);
      return bytes;
    },
    async *pieces() {
      const write = begin();
      const decoder = new StringDecoder('utf8');
      let openSequence = '';
      for await (const piece of text.pieces()) {
        const all = openSequence + (typeof piece === 'string' ? piece : decoder.write(piece));
        openSequence = openEscape.exec(all)?.[1] ?? '';
        yield write(unescaped(all.slice(0, all.length - openSequence.length)));
      }
      yield write(unescaped(openSequence));
    },
  };
}

/**
 * Matches the end of a piece that must wait for the next one: the first half of a surrogate pair, or an incomplete
 * escape.
 */
const openEscape = /(?:^|[^\\])(?:\\\\)*((?:\\ud[89ab][\da-f]{2})?(?:\\(?:u[\da-f]{0,3})?)?)$/;

function unescaped(text: string): string {
  return JSON.parse(`"${text}"`);
}

/** Joins parts in order, without loading a long one into memory. */
function joined(parts: readonly (string | SentBody)[]): SentBody {
  return {
    get short() {
      const all = parts.map((part) => (typeof part === 'string' ? part : part.short));
      return all.includes(null) ? null : all.join('');
    },
    async length() {
      let bytes = 0;
      for (const part of parts) {
        const length = typeof part === 'string' ? Buffer.byteLength(part) : await part.length();
        if (length === null) return null;
        bytes += length;
      }
      return bytes;
    },
    async *pieces() {
      for (const part of parts) {
        if (typeof part === 'string') yield part;
        else yield* part.pieces();
      }
    },
  };
}

const pieceBytes = 32 * 1024;

/** Creates files for answers that are too long for memory. */
export class SpillFolder {
  readonly #path: string;
  readonly #log: Pick<Logger, 'warn'>;
  #isFailing = false;

  constructor(path: string, log: Pick<Logger, 'warn'>) {
    this.#path = path;
    this.#log = log;
  }

  /** Creates a file and unlinks it, to prevent other processes from opening it. Returns null if this fails. */
  async file(): Promise<SpillFile | null> {
    const path = join(this.#path, `prompt-relay-answer-${randomUUID()}`);
    try {
      const handle = await open(path, 'wx+', 0o600);
      await unlink(path);
      return new SpillFile(handle, this);
    } catch (error) {
      this.report(error);
      return null;
    }
  }

  /**
   * Logs the first of several failures in a row, because a full disk would be logged with every answer. null reports a
   * success.
   */
  report(error: unknown): void {
    const { code = 'unknown' } = (error ?? {}) as NodeJS.ErrnoException;
    if (error !== null && !this.#isFailing) this.#log.warn('answer_not_spilled', { error: code });
    this.#isFailing = error !== null;
  }
}

/** Owns one unlinked file until it is closed. */
export class SpillFile {
  readonly #handle: FileHandle;
  readonly #folder: SpillFolder;
  #bytes = 0;

  constructor(handle: FileHandle, folder: SpillFolder) {
    this.#handle = handle;
    this.#folder = folder;
  }

  async length(): Promise<number> {
    return this.#bytes;
  }

  /** Returns whether all bytes were written. If not, readers get none of them. */
  async append(bytes: Buffer): Promise<boolean> {
    try {
      for (let done = 0; done < bytes.length; ) {
        const { bytesWritten } = await this.#handle.write(bytes, done, bytes.length - done, this.#bytes + done);
        done += bytesWritten;
      }
      this.#bytes += bytes.length;
      this.#folder.report(null);
      return true;
    } catch (error) {
      this.#folder.report(error);
      return false;
    }
  }

  /** Reads the file from its beginning. */
  async *pieces(): AsyncGenerator<Buffer> {
    for (let at = 0; at < this.#bytes; ) {
      const piece = Buffer.allocUnsafeSlow(Math.min(pieceBytes, this.#bytes - at));
      const { bytesRead } = await this.#handle.read(piece, 0, piece.length, at);
      if (bytesRead === 0) throw new Error('a file has become shorter');
      yield piece.subarray(0, bytesRead);
      at += bytesRead;
    }
  }

  closeFile(): Promise<void> {
    return this.#handle.close();
  }
}
