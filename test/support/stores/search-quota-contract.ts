import { SearchQuota } from '../../../src/features/search/search-quota.js';
import type { FullStore } from '../../../src/features/stores/contract/full-store.js';
import { UsageJournal } from '../../../src/features/usage/journal.js';
import { UsageLedger } from '../../../src/features/usage/ledger.js';
import { RecentUsage } from '../../../src/features/usage/recent-usage.js';
import { noBill } from '../../../src/primary/jobs/bill.js';
import type { ClientText } from '../../../src/shared/client.js';
import { systemClock } from '../../../src/shared/clock.js';
import { sameSearchLimit } from '../basics/limits.js';
import { jobDone, jobRequest } from '../jobs/job-records.js';
import type { StorePlaceForTests } from './store-contract.js';

/** Web searches that each client may make in a day. */
const perDay = 8;

/** The parts of a host that count web searches, connected as in the service. */
class SearchingHost {
  readonly #store: FullStore;
  readonly #journal: UsageJournal;
  readonly #recentUsage = new RecentUsage(systemClock);
  readonly #quota = new SearchQuota(
    'native',
    sameSearchLimit(() => perDay),
    this.#recentUsage,
    systemClock,
  );
  readonly #usage: ReturnType<RecentUsage['combineUsage']>;

  constructor(store: FullStore) {
    const ledger = new UsageLedger(systemClock);
    this.#store = store;
    this.#journal = new UsageJournal(ledger, store.usage, systemClock);
    this.#usage = this.#recentUsage.combineUsage(ledger);
  }

  async start(): Promise<this> {
    if (this.#store.kind !== 'memory') {
      this.#journal.awaitRestore();
      this.#journal.startSaving();
      await this.#journal.restoreUsage();
    }
    await this.refresh();
    return this;
  }

  /** Writes the usage of this host, and reads that of all hosts, as the service does every few seconds. */
  async refresh(): Promise<void> {
    await this.#recentUsage.refreshUsage(this.#journal);
  }

  /** Runs a job that makes as many searches as it may. Returns their number; null if the job was refused. */
  search(client: ClientText, maxUses = perDay): number | null {
    try {
      const searches = this.#quota.reserve({ path: 'tools.0', maxUses }, client);
      this.#usage.jobEnded(jobRequest({ client }), jobDone(), { ...noBill, searches });
      this.#quota.settle(client, searches);
      return searches;
    } catch (error) {
      expect(error).toMatchObject({ code: 'rate_limited', reason: 'budget' });
      return null;
    }
  }

  async stop(): Promise<void> {
    await this.#journal.closeJournal();
    await this.#store.close();
  }
}

/** Tests the limit of web searches on a store. `isDurable`: usage survives a restart. `isShared`: hosts share it. */
export function describeSearchQuota(
  name: string,
  { isDurable, isShared = false }: { readonly isDurable: boolean; readonly isShared?: boolean },
  place: () => Promise<StorePlaceForTests>,
): void {
  describe(`The web searches of a day in ${name}`, () => {
    it(`${isDurable ? 'are limited' : 'begin at 0'} after a restart, for a key with its sub-clients and for a person`, async () => {
      await using there = await place();
      const first = await new SearchingHost(await there.open()).start();
      expect([first.search('key ada/x', 3), first.search('key ada', 2), first.search('sso ada')]).toEqual([3, 2, 8]);
      await first.stop();
      const second = await new SearchingHost(await there.open()).start();
      const made = (['key ada/y', 'key ada', 'sso ada', 'key bob'] as const).map((client) => second.search(client));
      expect(made).toEqual(isDurable ? [3, null, null, 8] : [8, null, 8, 8]);
      await second.stop();
    });

    if (!isShared) return;

    it('are limited on all hosts together, as far as each has read the usage of the others', async () => {
      await using there = await place();
      const north = await new SearchingHost(await there.open()).start();
      const south = await new SearchingHost(await there.open()).start();
      expect([north.search('key ada', 5), south.search('key ada', 1)]).toEqual([5, 1]);
      await north.refresh();
      await south.refresh();
      expect([south.search('key ada'), south.search('key ada')]).toEqual([2, null]);
      await south.refresh();
      await north.refresh();
      expect([north.search('key ada'), north.search('sso ada', 1)]).toEqual([null, 1]);
      await north.stop();
      await south.stop();
    });
  });
}
