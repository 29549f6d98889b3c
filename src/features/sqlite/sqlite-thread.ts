import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { HeldFault, PassingFault, StoreFault } from '../../primary/store/contract/store.js';
import type { StoreTable } from '../../primary/store/contract/store-table.js';
import { withResolvers } from '../../shared/async.js';
import {
  closeMessage,
  NoSuchConversation,
  type SqliteAnswer,
  type SqliteOpening,
  type SqliteSettings,
  type TableCall,
} from './calls.js';
import { holderOf, removePidFile, writePidFile } from './files.js';
import { migrations } from './schema.js';

/** The error of a call with unknown outcome: the disk did not answer in time, or the thread died. */
export class OutcomeUnknown extends Error {}

type PendingCall = Pick<ReturnType<typeof withResolvers<unknown>>, 'resolve' | 'reject'>;

/**
 * Owns the thread that has the database open, and the calls without an answer. A late call does not end the thread,
 * which also serves turns of other clients. After the thread has died, the next call starts another one.
 */
export class SqliteThread {
  readonly #program: string;
  readonly #settings: SqliteSettings;
  /** Calls without an answer, in order; the thread answers in the same order. */
  #open: PendingCall[] = [];
  /** The thread; null before the start, and after its death. */
  #worker: Promise<Worker> | null = null;
  #isClosed = false;

  constructor(
    path: string,
    tables: readonly StoreTable[],
    steps: readonly string[] | null = migrations,
    program = join(__dirname, 'thread.js'),
  ) {
    this.#program = program;
    this.#settings = { path, tables, migrations: steps };
  }

  /** Opens the file. Rejects with a StoreFault. */
  async startThread(): Promise<void> {
    await this.#running();
  }

  /**
   * Runs a call; calls run in order. If it rejects, nothing was changed, except with `OutcomeUnknown`: the thread died
   * before it answered.
   */
  async ask<R>(call: TableCall<R>): Promise<R> {
    const worker = await this.#running();
    const { promise, ...open } = withResolvers<unknown>();
    this.#open.push(open);
    worker.postMessage(call);
    return (await promise) as R;
  }

  async closeThread(): Promise<void> {
    this.#isClosed = true;
    const worker = await this.#worker?.catch(() => null);
    this.#worker = null;
    if (!worker) return;
    const { promise: exited, resolve } = withResolvers();
    worker.once('exit', () => resolve());
    worker.postMessage(closeMessage);
    await exited;
    await removePidFile(this.#settings.path).catch(() => {});
  }

  #running(): Promise<Worker> {
    if (this.#isClosed) return Promise.reject(new Error('the store is closed'));
    this.#worker ??= this.#begin().catch((error) => {
      this.#worker = null;
      throw error;
    });
    return this.#worker;
  }

  async #begin(): Promise<Worker> {
    const { path } = this.#settings;
    const options = { workerData: this.#settings, env: {}, execArgv: ['--disable-warning=ExperimentalWarning'] };
    const worker = new Worker(this.#program, options);
    const { promise, resolve, reject } = withResolvers<SqliteOpening>();
    let cause = new Error('the thread of the store has ended');
    worker.once('message', resolve);
    worker.once('error', (error) => {
      cause = error;
    });
    worker.once('exit', () => reject(cause)); // the file is released by then
    const opening = await promise;
    if (opening.type === 'held') throw new HeldFault(`${path} is in use by ${await holderOf(path)}`);
    if (opening.type === 'fault') throw new (opening.passes ? PassingFault : StoreFault)(opening.sentence);
    worker.on('message', (answers: readonly SqliteAnswer[]) => this.#answered(answers));
    worker.once('exit', () => this.#died(cause));
    await writePidFile(path).catch(() => {}); // only informs people: a failure, as on a full disk, is ignored
    return worker;
  }

  #answered(answers: readonly SqliteAnswer[]): void {
    for (const answer of answers) {
      const open = this.#open.shift();
      if (answer.type === 'done') open?.resolve(answer.value);
      else open?.reject(answer.type === 'gone' ? new NoSuchConversation() : new Error(answer.reason));
    }
  }

  #died(cause: Error): void {
    this.#worker = null;
    for (const { reject } of this.#open) reject(new OutcomeUnknown(cause.message, { cause }));
    this.#open = [];
  }
}
