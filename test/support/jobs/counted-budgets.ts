import { Budgets } from '../../../src/features/budgets/budgets.js';
import type { LimitedUse } from '../../../src/features/budgets/limited-uses.js';
import type { Budget } from '../../../src/features/budgets/options.js';
import { RecentUsage } from '../../../src/features/usage/recent-usage.js';
import type { ClientText } from '../../../src/shared/client.js';
import type { Clock } from '../../../src/shared/clock.js';

type RefreshedFrom = Parameters<RecentUsage['refreshUsage']>[0];
type JobToCount = Parameters<RecentUsage['jobEnded']>;

/** Budgets with the usage to which they are compared. */
export class CountedBudgets extends Budgets {
  readonly usage: RecentUsage;

  constructor(
    clock: Pick<Clock, 'now'>,
    budgetsOf: (client: ClientText, groups: readonly string[]) => readonly LimitedUse[],
  ) {
    const usage = new RecentUsage(clock);
    super(clock, usage, budgetsOf);
    this.usage = usage;
  }

  jobEnded(...job: JobToCount): void {
    this.usage.jobEnded(...job);
  }

  refresh(journal: RefreshedFrom): Promise<void> {
    return this.usage.refreshUsage(journal);
  }

  searchesOf(client: ClientText): number {
    return this.usage.searchesOf(client);
  }
}

/** Returns the options of a key, a person or a group with this budget. */
export function budgetOptions({ tokens = null, costUsd = null }: Partial<Budget>) {
  const limits = Object.entries({ tokens, cost: costUsd });
  const texts = limits.flatMap(([name, limit]) => (limit === null ? [] : [[name, `${limit.max}/${limit.period}`]]));
  return { featureOptions: Object.fromEntries(texts) as Readonly<Record<string, string>> };
}
