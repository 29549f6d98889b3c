import type { UsageRow } from '../../shared/api/usage.js';
import { type Clock, type StopTimer, timestamp } from '../../shared/clock.js';
import { storeUnavailable } from '../../shared/errors.js';
import { maxDays, type Period, type UsageDelta, type UsageStore } from '../store/contract/usage.js';
import { reportOf, type UsageLedger } from './usage-ledger.js';

/** Interval of writes: usage after the last write is lost if the service is killed. */
const betweenAddsMs = 1000;
const dayMs = 86_400_000;

/** Maximum writes before a report: a running write, the repetition of a failed write, and a write of newer usage. */
const addsForAll = 3;

type UsageFigures = Pick<UsageLedger, 'keepGrowth' | 'takeGrowth' | 'restore' | 'report'>;

/** Owns the usage of the ledger that is not in the journal yet. */
export class UsageJournal {
  readonly #ledger: UsageFigures;
  readonly #journal: UsageStore;
  readonly #clock: Clock;
  /** Rows passed to the journal and not confirmed yet. After a failure, the journal gets the same array again. */
  #open: readonly UsageDelta[] = [];
  #adding: Promise<void> | null = null;
  #stop: StopTimer = () => {};
  /** `waiting`: the usage of earlier services has not been read yet. */
  #state: 'unused' | 'waiting' | 'whole' = 'unused';

  constructor(ledger: UsageFigures, journal: UsageStore, clock: Clock) {
    this.#ledger = ledger;
    this.#journal = journal;
    this.#clock = clock;
  }

  /** Starts writing usage to the journal periodically. */
  start(): void {
    this.#state = 'waiting';
    this.#ledger.keepGrowth();
    this.#stop = this.#clock.every(betweenAddsMs, () => void this.add());
  }

  /** Reads the usage of earlier services, once. Rejects with a StoreFault. */
  async restore(): Promise<void> {
    if (this.#state === 'whole') return;
    const since = timestamp(this.#clock.now() - maxDays * dayMs).slice(0, 10);
    const rows: UsageDelta[] = [];
    for await (const row of this.#journal.restore(since)) rows.push(row);
    for (const row of rows) this.#ledger.restore(row);
    this.#state = 'whole';
  }

  /** Writes usage to the journal, one write at a time. Resolves when the write has succeeded or failed. */
  add(): Promise<void> {
    this.#adding ??= this.#add().finally(() => {
      this.#adding = null;
    });
    return this.#adding;
  }

  /** Returns the usage of all services on the store, by day and client. Rejects with `store_unavailable`. */
  report(client: string | null, period: Period): UsageRow[] | Promise<UsageRow[]> {
    if (this.#state === 'waiting') throw storeUnavailable();
    const { report } = this.#journal;
    return report === null ? this.#ledger.report(client, period) : this.#reportOfAll(client, () => report(period));
  }

  /** Reports usage from the store, including all usage counted here before the call. */
  async #reportOfAll(client: string | null, read: () => Promise<readonly UsageDelta[]>): Promise<UsageRow[]> {
    for (let added = 0; added < addsForAll; added++) await this.add();
    return reportOf((await read()).filter((row) => client === null || row.client === client));
  }

  /** Writes the last usage. */
  async close(): Promise<void> {
    this.#stop();
    await this.add();
    if (this.#open.length === 0) await this.add(); // jobs may have ended during the write
  }

  async #add(): Promise<void> {
    if (this.#open.length === 0) this.#open = this.#ledger.takeGrowth();
    if (this.#open.length === 0) return;
    try {
      await this.#journal.add(this.#open);
      this.#open = [];
    } catch {} // the store logs its failure, and the rows are written again later
  }
}
