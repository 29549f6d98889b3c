import type { UsageRow } from '../../shared/api/usage.js';
import { type Clock, type StopTimer, timestamp } from '../../shared/clock.js';
import { storeUnavailable } from '../../shared/errors.js';
import { maxDays, type Period, type UsageDelta, type UsageStore } from '../store/contract/usage.js';
import { reportOf, type UsageLedger } from './usage-ledger.js';

/** What has been used since is lost where the service is killed. */
const betweenAddsMs = 1000;
const dayMs = 86_400_000;

/** One may be under way, and one may have failed before: then comes what was counted since. */
const addsForAll = 3;

type UsageFigures = Pick<UsageLedger, 'keepGrowth' | 'takeGrowth' | 'restore' | 'report'>;

/** Owns what the journal does not have yet of the figures of the ledger. */
export class UsageJournal {
  readonly #ledger: UsageFigures;
  readonly #journal: UsageStore;
  readonly #clock: Clock;
  /** Given to the journal, and not taken yet: the very same array is given again. */
  #open: readonly UsageDelta[] = [];
  #adding: Promise<void> | null = null;
  #stop: StopTimer = () => {};
  /** `waiting`: what earlier services have left was not read yet. */
  #state: 'unused' | 'waiting' | 'whole' = 'unused';

  constructor(ledger: UsageFigures, journal: UsageStore, clock: Clock) {
    this.#ledger = ledger;
    this.#journal = journal;
    this.#clock = clock;
  }

  /** From now on the journal gets what is counted, as soon as it takes it. */
  start(): void {
    this.#state = 'waiting';
    this.#ledger.keepGrowth();
    this.#stop = this.#clock.every(betweenAddsMs, () => void this.add());
  }

  /** Takes over what earlier services have left, once. Rejects with a StoreFault. */
  async restore(): Promise<void> {
    if (this.#state === 'whole') return;
    const since = timestamp(this.#clock.now() - maxDays * dayMs).slice(0, 10);
    const rows: UsageDelta[] = [];
    for await (const row of this.#journal.restore(since)) rows.push(row);
    for (const row of rows) this.#ledger.restore(row);
    this.#state = 'whole';
  }

  /** Resolves when the journal has all of it, or takes nothing at the moment. One at a time. */
  add(): Promise<void> {
    this.#adding ??= this.#add().finally(() => {
      this.#adding = null;
    });
    return this.#adding;
  }

  /** As `UsageLedger.report`, of all services on the store. Rejects with `store_unavailable`. */
  report(client: string | null, period: Period): UsageRow[] | Promise<UsageRow[]> {
    if (this.#state === 'waiting') throw storeUnavailable();
    const { report } = this.#journal;
    return report === null ? this.#ledger.report(client, period) : this.#reportOfAll(client, () => report(period));
  }

  /** What was counted here by now is in it. */
  async #reportOfAll(client: string | null, read: () => Promise<readonly UsageDelta[]>): Promise<UsageRow[]> {
    for (let added = 0; added < addsForAll; added++) await this.add();
    return reportOf((await read()).filter((row) => client === null || row.client === client));
  }

  /** The last figures. */
  async close(): Promise<void> {
    this.#stop();
    await this.add();
    if (this.#open.length === 0) await this.add(); // what came while the last ones were added
  }

  async #add(): Promise<void> {
    if (this.#open.length === 0) this.#open = this.#ledger.takeGrowth();
    if (this.#open.length === 0) return;
    try {
      await this.#journal.add(this.#open);
      this.#open = [];
    } catch {} // the store says so itself: the rows are given again
  }
}
