import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { withResolvers } from '../../../shared/async/promises.js';
import { HeldFault, StoreFault } from '../contract/store.js';
import { holderOf, removePidFile, writePidFile } from './files.js';
import { OutcomeUnknown } from './gone.js';
import {
  closeMessage,
  type SqliteAnswer,
  type SqliteOpening,
  type SqliteOrder,
  type SqliteSettings,
  type SqliteValue,
} from './messages.js';
import { migrations } from './schema.js';

/** What an order is about is no longer there. */
export class NoSuchConversation extends Error {}

type OpenOrder = Pick<ReturnType<typeof withResolvers<SqliteValue>>, 'resolve' | 'reject'>;

/**
 * Owns the thread that holds the database, and what was asked of it and not answered yet. No limit ends it: it is in the
 * middle of other people's turns. Where it dies of itself, the next order starts another one.
 */
export class SqliteThread {
  readonly #file: string;
  readonly #settings: SqliteSettings;
  readonly #open = new Map<number, OpenOrder>();
  #lastNumber = 0;
  /** null before the start, and after a death. */
  #worker: Promise<Worker> | null = null;
  #isClosed = false;

  constructor(path: string, steps: readonly string[] | null = migrations, file = join(__dirname, 'thread.js')) {
    this.#file = file;
    this.#settings = { path, migrations: steps };
  }

  /** Opens the file. Rejects with a StoreFault. */
  async start(): Promise<void> {
    await this.#running();
  }

  /**
   * Orders are done in the order in which they were given. Rejects where it could not be done, and was not; with
   * `OutcomeUnknown` where the thread has died meanwhile.
   */
  async ask(order: SqliteOrder): Promise<SqliteValue> {
    const worker = await this.#running();
    const number = ++this.#lastNumber;
    const { promise, ...asked } = withResolvers<SqliteValue>();
    this.#open.set(number, asked);
    worker.postMessage({ number, order });
    return promise;
  }

  async close(): Promise<void> {
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
    const worker = new Worker(this.#file, options);
    const { promise, resolve, reject } = withResolvers<SqliteOpening>();
    let cause = new Error('the thread of the store has ended');
    worker.once('message', resolve);
    worker.once('error', (error) => {
      cause = error;
    });
    worker.once('exit', () => reject(cause)); // by then it has given up the file
    const opening = await promise;
    if (opening.type === 'held') throw new HeldFault(`${path} is in use by ${await holderOf(path)}`);
    if (opening.type === 'fault') throw new StoreFault(opening.sentence);
    worker.on('message', (answers: readonly SqliteAnswer[]) => this.#answered(answers));
    worker.once('exit', () => this.#died(cause));
    await writePidFile(path).catch(() => {}); // it is for people alone: a full disk has no room for it
    return worker;
  }

  #answered(answers: readonly SqliteAnswer[]): void {
    for (const answer of answers) {
      const asked = this.#open.get(answer.number);
      this.#open.delete(answer.number);
      if (answer.type === 'done') asked?.resolve(answer.value);
      else asked?.reject(answer.type === 'gone' ? new NoSuchConversation() : new Error(answer.reason));
    }
  }

  #died(error: Error): void {
    this.#worker = null;
    for (const { reject } of this.#open.values()) reject(new OutcomeUnknown(error.message, { cause: error }));
    this.#open.clear();
  }
}
