import type { ClientText } from '../../shared/client.js';
import type { Clock, StopTimer } from '../../shared/clock.js';
import { storeUnavailable } from '../../shared/errors.js';
import type { UsageDelta, UsageStore } from '../stores/contract/usage.js';
import type { UsageLedger } from './ledger.js';
import { queryOf, type ReportOrder, reportOf } from './report.js';
import type { UsageRow } from './report-form.js';

/** Interval of writes: usage after the last write is lost if the service is killed. */
const betweenAddsMs = 1000;

/** Maximum writes before a report: a running write, the repetition of a failed write, and a write of newer usage. */
const addsForAll = 3;

type UsageFigures = Pick<UsageLedger, 'keepGrowth' | 'takeGrowth' | 'restoreRow' | 'report'>;

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

  /** Makes reports wait until `restoreUsage` has read the usage of earlier services. Usage counted until then is written later. */
  awaitRestore(): void {
    this.#state = 'waiting';
    this.#ledger.keepGrowth();
  }

  /** Starts writing usage to the journal periodically. */
  startSaving(): void {
    if (this.#state !== 'unused') this.#stop = this.#clock.every(betweenAddsMs, () => void this.saveUsage());
  }

  /** Reads the usage of earlier services, once. Rejects with a StoreFault. */
  async restoreUsage(): Promise<void> {
    if (this.#state !== 'waiting') return;
    const rows: UsageDelta[] = [];
    for await (const row of this.#journal.restoreUsage()) rows.push(row);
    for (const row of rows) this.#ledger.restoreRow(row);
    this.#state = 'whole';
  }

  /** Writes usage to the journal, one write at a time. Resolves when the write has succeeded or failed. */
  saveUsage(): Promise<void> {
    this.#adding ??= this.#add().finally(() => {
      this.#adding = null;
    });
    return this.#adding;
  }

  /** Returns the usage of all services on the store. `client`: null for all clients. Rejects with `store_unavailable`. */
  report(client: ClientText | null, order: ReportOrder): UsageRow[] | Promise<UsageRow[]> {
    if (this.#state === 'waiting') throw storeUnavailable();
    const { report } = this.#journal;
    if (report === null) return this.#ledger.report(client, order);
    return this.#reportOfAll(client, order, () => report(queryOf(order)));
  }

  /** Reports usage from the store, including all usage counted here before the call. */
  async #reportOfAll(
    client: ClientText | null,
    order: ReportOrder,
    read: () => Promise<readonly UsageDelta[]>,
  ): Promise<UsageRow[]> {
    for (let added = 0; added < addsForAll; added++) await this.saveUsage();
    const rows = (await read()).filter((row) => client === null || row.client === client);
    return reportOf(rows, order);
  }

  /** Writes the last usage. */
  async closeJournal(): Promise<void> {
    this.#stop();
    await this.saveUsage();
    if (this.#open.length === 0) await this.saveUsage(); // jobs may have ended during the write
  }

  async #add(): Promise<void> {
    if (this.#open.length === 0) this.#open = this.#ledger.takeGrowth();
    if (this.#open.length === 0) return;
    try {
      await this.#journal.addUsage(this.#open);
      this.#open = [];
    } catch {} // the store logs its failure, and the rows are written again later
  }
}
