import { createReadStream } from 'node:fs';
import { type FileHandle, open, realpath, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Clock, StopTimer } from '../../shared/clock.js';
import { meaningOf } from '../../shared/text/system-error.js';
import { CommandError, exitCodes } from '../base/errors.js';
import { lockFor } from '../base/file-lock.js';
import { IdSet } from './id-set.js';
import { linesOf } from './json-lines.js';
import type { AnswerSink } from './run.js';

/** What is lost at most if the machine loses power; what this process has written survives its own death. */
const betweenSyncsMs = 1000;

/** Owns the file with the answers: one process at a time writes to it, whole lines only. */
export class AnswersFile implements AnswerSink {
  /** What stood there at the start. */
  answered = 0;
  failed = 0;
  /** Bytes of a torn line that were removed. */
  repaired = 0;
  readonly #path: string;
  readonly #lock: Disposable;
  #file: FileHandle;
  #done = new IdSet();
  #writing: Promise<void> = Promise.resolve();
  #isDirty = false;
  #stopSyncs: StopTimer = () => {};

  private constructor(path: string, file: FileHandle, lock: Disposable) {
    this.#path = path;
    this.#file = file;
    this.#lock = lock;
  }

  /**
   * Makes the file if there is none. Removes a torn line at its end, and with `forgetsFailures` the lines with an error.
   * Throws a CommandError, also if another process writes to the file.
   */
  static async open(name: string, clock: Clock, forgetsFailures: boolean): Promise<AnswersFile> {
    const file = await open(name, 'a+', 0o600).catch(cannotWrite(name));
    if (!(await file.stat()).isFile()) {
      await file.close();
      throw new CommandError(exitCodes.usage, `batch: ${name} is no regular file: leave out -o and redirect stdout`);
    }
    const path = await realpath(name);
    const answers = new AnswersFile(path, file, await lockOf(path, name));
    try {
      await answers.#read(name);
      if (forgetsFailures && answers.failed > 0) await answers.#forgetFailures();
    } catch (error) {
      await answers.close();
      throw error;
    }
    answers.#stopSyncs = clock.every(betweenSyncsMs, () => void answers.#sync().catch(() => {})); // the next write fails too
    return answers;
  }

  /** Prompts that had a line at the start. */
  get size(): number {
    return this.#done.size;
  }

  /** Whether the prompt with this id has a line. */
  has(id: string | number): boolean {
    return this.#done.has(String(id));
  }

  write(record: object): Promise<void> {
    this.#writing = this.#writing.then(async () => {
      this.#isDirty = true;
      await this.#file.appendFile(`${JSON.stringify(record)}\n`).catch(cannotWrite(this.#path));
    });
    return this.#writing;
  }

  async close(): Promise<void> {
    this.#stopSyncs();
    await this.#writing.catch(() => {}); // its writer has the error
    await this.#sync().catch(cannotWrite(this.#path));
    await this.#file.close();
    this.#lock[Symbol.dispose]();
  }

  async #sync(): Promise<void> {
    if (!this.#isDirty) return;
    this.#isDirty = false;
    await this.#file.datasync();
  }

  async #read(name: string): Promise<void> {
    for await (const line of linesOf(this.#content())) {
      if (line.isWhole && line.text.trim() === '' && line.fault === null) continue;
      const record = line.fault === null ? recordIn(line.text) : null;
      if (record !== null) this.#count(record);
      if (record !== null && !line.isWhole) await this.#file.appendFile('\n');
      if (record !== null) continue;
      if (line.isWhole || !isTorn(line.text, this.size > 0)) throw foreign(`line ${line.number} of ${name}`);
      await this.#file.truncate(line.from);
      this.repaired = line.to - line.from;
    }
  }

  #count({ id, isFailure }: WrittenRecord): void {
    this.#done.add(String(id));
    if (isFailure) this.failed++;
    else this.answered++;
  }

  /** The lines with answers go into a new file, which takes the place of the old one in one step. */
  async #forgetFailures(): Promise<void> {
    const beside = join(dirname(this.#path), `.${basename(this.#path)}.retry`);
    const { mode } = await this.#file.stat();
    await rm(beside, { force: true }).catch(cannotWrite(beside)); // a batch that was killed may have left it
    const kept = await open(beside, 'wx', mode).catch(cannotWrite(beside)); // follows no link
    const ids = new IdSet();
    try {
      for await (const { text } of linesOf(this.#content())) {
        const record = recordIn(text);
        if (record === null || record.isFailure) continue;
        await kept.appendFile(`${text}\n`);
        ids.add(String(record.id));
      }
      await kept.sync();
      await rename(beside, this.#path);
    } catch (error) {
      cannotWrite(beside)(error as Error);
    } finally {
      await kept.close();
    }
    await this.#file.close();
    this.#file = await open(this.#path, 'a+').catch(cannotWrite(this.#path));
    this.#done = ids;
  }

  #content(): AsyncIterable<Buffer> {
    return createReadStream(this.#path);
  }
}

interface WrittenRecord {
  readonly id: string | number;
  readonly isFailure: boolean;
}

/** null: no line that a batch writes. */
function recordIn(text: string): WrittenRecord | null {
  try {
    const { id, response, error } = Object(JSON.parse(text));
    if (typeof id !== 'string' && typeof id !== 'number') return null;
    const isFailure = typeof error === 'object' && error !== null;
    return isFailure || typeof response === 'string' ? { id, isFailure } : null;
  } catch {
    return null;
  }
}

const beginning = '{"id":';
/** Fields that only a batch writes in this order. */
const unmistakable = /^\{"id":(?:"(?:[^"\\]|\\.)*"|-?\d+),"line":\d+,"/;

/**
 * Whether a batch that was killed has left this unfinished line. A whole value is of another program, and a first line must
 * be long enough to tell.
 */
function isTorn(text: string, hasRecords: boolean): boolean {
  if (isJson(text)) return false;
  return hasRecords ? text.startsWith(beginning) || beginning.startsWith(text) : unmistakable.test(text);
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

async function lockOf(path: string, name: string): Promise<Disposable> {
  const lock = await lockFor('batch', path);
  if (lock !== null) return lock;
  throw new CommandError(exitCodes.tryLater, `batch: another batch writes to ${name}: wait for its end`);
}

function foreign(line: string): CommandError {
  return new CommandError(exitCodes.usage, `batch: ${line} is no answer of a batch: name another file with --output`);
}

function cannotWrite(path: string): (error: NodeJS.ErrnoException) => never {
  return (error) => {
    throw new CommandError(exitCodes.output, `batch: cannot write to ${path}: ${meaningOf(error)}`);
  };
}
