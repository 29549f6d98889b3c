import { randomUUID } from 'node:crypto';
import type { BackgroundJobView } from '../../shared/background.js';
import type { JobDone } from '../../shared/job.js';
import type { Primary } from '../http/exchange.js';
import type { SentBody } from '../http/sent-answer.js';
import { type CompletedAnswer, completed } from './answer-format.js';
import { joined, valueIn } from './sent-json.js';
import type { SpillFile, SpillFolder } from './spill-folder.js';

/** UTF-16 units of an answer that stay in memory: a slow reader needs its answer for long. */
const maxInMemory = 32 * 1024;

/** The text of an answer outside of memory, escaped as in a JSON string. */
type LongText = Pick<SentBody, 'length' | 'pieces'>;

/** Which background job, and who asks for its answer. */
export interface JobKey {
  readonly id: string;
  readonly client: string;
}

/**
 * Owns the text of one answer, escaped as in a JSON string, without the quotes. A long one is in a file while its job
 * runs, and in the store once a background job has ended. A pair of surrogates that comes in two halves is two escapes,
 * which a reader joins again.
 */
export class AnswerText implements SentBody, AsyncDisposable {
  readonly #folder: Pick<SpillFolder, 'file'> | null;
  /** What comes before the text in memory. */
  #file: SpillFile | null = null;
  #stored: LongText | null = null;
  #inMemory: string[] = [];
  #units = 0;
  #canSpill: boolean;

  /** `folder`: where long answers are written; null: they stay in memory. */
  constructor(folder: Pick<SpillFolder, 'file'> | null) {
    this.#folder = folder;
    this.#canSpill = folder !== null;
  }

  /** The answer of a background job that has succeeded. Rejects with `not_found` where it has expired. */
  static async stored(primary: Primary, job: JobKey): Promise<{ readonly text: AnswerText; readonly end: JobDone }> {
    const answer = new AnswerText(null);
    for (let from = 0; ; ) {
      const { text, end } = await primary.call('jobAnswer', { ...job, from });
      if (text === '') return { text: answer, end };
      await answer.add(text);
      from += text.length;
      if (from <= maxInMemory) continue;
      answer.#forgetMemory();
      answer.#stored = { length: async () => null, pieces: () => storedPieces(primary, job) };
      return { text: answer, end };
    }
  }

  async add(text: string): Promise<void> {
    const piece = escaped(text);
    this.#inMemory.push(piece);
    this.#units += piece.length;
    if (this.#units > maxInMemory && this.#canSpill) await this.#spill();
  }

  /** The model CLI has corrected itself. */
  async replace(text: string): Promise<void> {
    await this[Symbol.asyncDispose]();
    for (let at = 0; at < text.length; at += maxInMemory) await this.add(text.slice(at, at + maxInMemory));
  }

  /** The whole text, where all of it is in memory; else null. */
  get short(): string | null {
    return this.#outside === null ? this.#inMemory.join('') : null;
  }

  async length(): Promise<number | null> {
    const outside = this.#outside === null ? 0 : await this.#outside.length();
    return outside === null ? null : this.#inMemory.reduce((sum, piece) => sum + Buffer.byteLength(piece), outside);
  }

  async *pieces(): AsyncGenerator<string | Buffer> {
    yield* this.#outside?.pieces() ?? [];
    yield* this.#inMemory;
  }

  /**
   * JSON in which the text stands, once or several times. `write` writes it for any text, which may stand in JSON strings
   * only; with `isStructured` also for any value, which the text is then: undefined where the model has given none.
   */
  body(isStructured: boolean, write: (text: string, value: string | undefined) => string): SentBody {
    const [text, value] = [randomUUID(), randomUUID()];
    const hasValue = isStructured && this.short !== '';
    const texts = new Map([
      [text, this],
      [JSON.stringify(value), valueIn(this)],
    ]);
    const written = write(text, hasValue ? value : undefined).split(new RegExp(`(${[...texts.keys()].join('|')})`));
    return joined(written.map((part) => texts.get(part) ?? part));
  }

  /** Where the disk takes no more, the rest stays in memory, as all of it would without a disk. */
  async #spill(): Promise<void> {
    this.#file ??= (await this.#folder?.file()) ?? null;
    this.#canSpill = (await this.#file?.append(Buffer.from(this.#inMemory.join('')))) ?? false;
    if (this.#canSpill) this.#forgetMemory();
  }

  get #outside(): LongText | null {
    return this.#file ?? this.#stored;
  }

  #forgetMemory(): void {
    this.#inMemory = [];
    this.#units = 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const file = this.#file;
    this.#file = null;
    this.#stored = null;
    this.#forgetMemory();
    await file?.close();
  }
}

async function* storedPieces(primary: Primary, job: JobKey): AsyncGenerator<string> {
  for (let from = 0; ; ) {
    const { text } = await primary.call('jobAnswer', { ...job, from });
    if (text === '') return;
    from += text.length;
    yield escaped(text);
  }
}

function escaped(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

/** What is sent of a background job that has succeeded. `write` writes it out for its answer. */
export async function storedBody(
  primary: Primary,
  job: BackgroundJobView,
  client: string,
  write: (answer: CompletedAnswer) => string,
): Promise<SentBody> {
  const { route, model, tool, isStructured } = job.form;
  const requestId = route === '/v1/responses' ? job.id : job.requestId;
  const opening = { requestId, model: model ?? '', tool };
  const { text: held, end } = await AnswerText.stored(primary, { id: job.id, client });
  return held.body(isStructured, (text, value) => write(completed(opening, { text, value, end })));
}
