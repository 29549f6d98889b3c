import type { Registry } from 'prom-client';
import type { BudgetUse } from '../../shared/api/usage.js';
import { maxKeys } from './job-metrics.js';
import { addGauge, type Figures } from './state-metrics.js';

/** `budgets`: of the keys that have one; read at each scrape. The label is bounded. */
export function addBudgetGauge(registry: Registry, budgets: () => readonly BudgetUse[]): void {
  const help = 'Used share of the budget that an API key has on a day in UTC; more than 1 by what was admitted before.';
  const shares = () => Object.fromEntries(budgets().slice(0, maxKeys).map(shareOf));
  addGauge(registry, 'client_budget_used_ratio', help, shares, 'client', 'budget');
}

function shareOf({ client, tokens, cost_usd: cost }: BudgetUse): [client: string, shares: Figures] {
  const ofTokens = tokens === null ? {} : { tokens: tokens.used / tokens.max };
  return [client, cost === null ? ofTokens : { ...ofTokens, cost: cost.used / cost.max }];
}
