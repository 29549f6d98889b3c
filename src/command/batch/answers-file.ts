import { createReadStream } from 'node:fs';
import { type FileHandle, open, realpath, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Clock, StopTimer } from '../../shared/clock.js';
import { IdSet } from '../../shared/text/id-set.js';
import { meaningOf } from '../../shared/text/system-error.js';
import { CommandError, exitCodes } from '../base/errors.js';
import { lockFor } from '../base/file-lock.js';
import { linesOf } from './json-lines.js';
import type { AnswerSink } from './run.js';

/**
 * Interval between syncs. A power failure loses at most the answers of one interval; the death of this process alone
 * loses nothing that was written.
 */
const betweenSyncsMs = 1000;

/** Owns the output file of a batch. Only one process at a time writes to it, in whole lines. */
export class AnswersFile implements AnswerSink {
  /** Number of answers in the file at the start. */
  answered = 0;
  failed = 0;
  /** Size in bytes of an incomplete last line that was removed. */
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
   * Opens the file, and creates it if it is missing. Removes an incomplete last line, and the lines with an error if
   * `forgetsFailures` is true. Throws a CommandError, also if another process writes to the file.
   */
  static async open(name: string, clock: Clock, forgetsFailures: boolean): Promise<AnswersFile> {
    const file = await open(name, 'a+', 0o600).catch(cannotWrite(name));
    let answers: AnswersFile | undefined;
    try {
      if (!(await file.stat()).isFile()) throw notRegular(name);
      const path = await realpath(name);
      answers = new AnswersFile(path, file, await lockOf(path, name));
      await answers.#read(name);
      if (forgetsFailures && answers.failed > 0) await answers.#forgetFailures();
    } catch (error) {
      await (answers ?? file).close();
      throw error;
    }
    answers.#stopSyncs = clock.every(betweenSyncsMs, () => void answers.#sync().catch(() => {})); // the next write fails too
    return answers;
  }

  /** Number of prompts that had a line at the start. */
  get size(): number {
    return this.#done.size;
  }

  /** Whether the file had a line for the prompt with this ID at the start. */
  has(id: string | number): boolean {
    return this.#done.has(String(id));
  }

  writeRecord(record: object): Promise<void> {
    this.#writing = this.#writing.then(async () => {
      this.#isDirty = true;
      await this.#file.appendFile(`${JSON.stringify(record)}\n`).catch(cannotWrite(this.#path));
    });
    return this.#writing;
  }

  async sync(): Promise<void> {
    await this.#sync().catch(cannotWrite(this.#path));
  }

  async close(): Promise<void> {
    this.#stopSyncs();
    await this.#writing.catch(() => {}); // `write` has rejected with this error
    await this.sync();
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

  /** Copies the lines with answers to a new file, which then replaces the old one atomically. */
  async #forgetFailures(): Promise<void> {
    const retryPath = join(dirname(this.#path), `.${basename(this.#path)}.retry`);
    const { mode } = await this.#file.stat();
    await rm(retryPath, { force: true }).catch(cannotWrite(retryPath)); // a killed batch may have left this file
    const retryFile = await open(retryPath, 'wx', mode).catch(cannotWrite(retryPath)); // `wx` follows no symbolic link
    const ids = new IdSet();
    try {
      for await (const { text } of linesOf(this.#content())) {
        const record = recordIn(text);
        if (record === null || record.isFailure) continue;
        await retryFile.appendFile(`${text}\n`);
        ids.add(String(record.id));
      }
      await retryFile.sync();
      await rename(retryPath, this.#path);
    } catch (error) {
      cannotWrite(retryPath)(error as Error);
    } finally {
      await retryFile.close();
    }
    await this.#file.close();
    this.#file = await open(this.#path, 'a+').catch(cannotWrite(this.#path));
    this.#done = ids;
  }

  #content(): AsyncIterable<Buffer> {
    return createReadStream(this.#path);
  }
}

function notRegular(name: string): CommandError {
  return new CommandError(exitCodes.usage, `batch: ${name} is not a regular file: leave out -o and redirect stdout`);
}

interface WrittenRecord {
  readonly id: string | number;
  readonly isFailure: boolean;
}

/** Parses a line; null if a batch cannot have written it. */
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
/** Beginning of a line with fields in an order that only a batch writes. */
const unmistakable = /^\{"id":(?:"(?:[^"\\]|\\.)*"|-?\d+),"line":\d+,"/;

/**
 * Whether the text is an incomplete line of a batch that was killed. Complete JSON belongs to another program. The
 * first line of a file must be long enough to be recognised.
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
  return new CommandError(
    exitCodes.usage,
    `batch: ${line} is not an answer of a batch: choose another file with --output`,
  );
}

function cannotWrite(path: string): (error: NodeJS.ErrnoException) => never {
  return (error) => {
    throw new CommandError(exitCodes.output, `batch: cannot write to ${path}: ${meaningOf(error)}`);
  };
}
