import { Budgets } from '../../../src/primary/access/budgets.js';
import type { LimitedUse } from '../../../src/primary/access/clients.js';
import { RecentUsage } from '../../../src/primary/access/recent-usage.js';
import type { Clock } from '../../../src/shared/clock.js';

type RefreshedFrom = Parameters<RecentUsage['refresh']>[0];
type JobToCount = Parameters<RecentUsage['jobEnded']>;

/** Budgets with the usage to which they are compared. */
export class CountedBudgets extends Budgets {
  readonly usage: RecentUsage;

  constructor(
    clock: Pick<Clock, 'now'>,
    budgetsOf: (client: string, groups: readonly string[]) => readonly LimitedUse[],
  ) {
    const usage = new RecentUsage(clock);
    super(clock, usage, budgetsOf);
    this.usage = usage;
  }

  jobEnded(...job: JobToCount): void {
    this.usage.jobEnded(...job);
  }

  refresh(journal: RefreshedFrom): Promise<void> {
    return this.usage.refresh(journal);
  }

  searchesOf(client: string): number {
    return this.usage.searchesOf(client);
  }
}
