import type { Clock } from '../../../shared/clock.js';
import type { Store, StoreObserver } from '../contract/store.js';
import { SqliteAccess } from './sqlite-access.js';
import { SqliteAnswers } from './sqlite-answers.js';
import { SqliteConversations } from './sqlite-conversations.js';
import { SqliteJobs } from './sqlite-jobs.js';
import { SqliteUpkeep } from './sqlite-upkeep.js';
import { SqliteUsage } from './sqlite-usage.js';
import type { StoreThread } from './timed-thread.js';

/** A store in a file: what is kept in each of its tables has a class of its own. */
export class SqliteStore implements Store {
  readonly kind = 'sqlite';
  readonly conversations: SqliteConversations;
  readonly shared = null;
  readonly windows = null;
  readonly sharedJobs = null;
  readonly jobs: SqliteJobs;
  readonly usage: SqliteUsage;
  readonly answers: SqliteAnswers;
  readonly upkeep: SqliteUpkeep;
  readonly #access: SqliteAccess;
  readonly #onHang: () => void;
  #isClosed = false;

  /** `onHang` is called when it could not be closed: the process can't end in order then. */
  constructor(path: string, thread: StoreThread, clock: Clock, onHang: () => void = () => {}) {
    this.#onHang = onHang;
    this.#access = new SqliteAccess(thread, clock);
    this.conversations = new SqliteConversations(this.#access);
    this.jobs = new SqliteJobs(this.#access);
    this.usage = new SqliteUsage(this.#access);
    this.answers = new SqliteAnswers(this.#access);
    const access = this.#access;
    this.upkeep = new SqliteUpkeep(path, {
      clock,
      ask: (order) => access.askAside(order),
      tidyAll: () => access.tidyAll(),
    });
    this.#access.onBack(() => void this.conversations.forgetAll());
  }

  get isUp(): boolean {
    return this.#access.isUp;
  }

  observe(observer: StoreObserver): void {
    this.#access.observe(observer);
  }

  /** Removes first what is still to be forgotten, where that is possible. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    if (this.isUp) await this.conversations.forgetAll();
    if (!(await this.#access.close())) this.#onHang();
  }
}
