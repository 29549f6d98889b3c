import type { CreatePrimaryPart, FeatureMetric } from '../../primary/features/feature.js';
import { clientLabelOf, maxKeyLabels } from '../../primary/observe/job-metrics.js';
import type { LimitUse } from '../../shared/api/limit-use.js';
import { defaultModelName } from '../../shared/config/values.js';
import type { Figures } from '../../shared/metrics.js';
import { usageOf } from '../usage/primary.js';
import { BudgetModels } from './budget-models.js';
import { Budgets } from './budgets.js';
import { LimitedUses } from './limited-uses.js';
import { metrics } from './metrics.js';

/** Creates the part that refuses jobs when a budget is used up. */
export const createBudgets: CreatePrimaryPart = (core) => {
  const { host, clients, router } = core;
  const usage = usageOf(core);
  const models = new BudgetModels(router.names, usage);
  const limits = new LimitedUses(clients, (model) => models.resolve(model));
  const budgets = new Budgets(host.clock, usage.recent, (client, groups) => limits.of(client, groups));
  usage.countAlso(({ client, groups }, names) =>
    limits
      .of(client, groups ?? [])
      .flatMap(({ model, holders }) => (model !== undefined && models.isAmong(model, names) ? (holders ?? []) : [])),
  );
  return {
    job: {
      start: (request) => budgets.checkBudget(request),
      checkRoute: (request, { label }) =>
        budgets.checkModel(request, (model) => models.isAmong(model, [label ?? defaultModelName])),
    },
    findKeyWarnings: () => models.warningsAbout(clients),
    handlers: {},
    gauges: [usedRatio(() => budgets.usesOf(limits.all))],
    limitUsesOf: (client) => {
      // what all clients have used together concerns only the operator
      const listed = client === null ? limits.all : limits.of(client).filter(({ kind }) => kind !== 'service');
      return budgets.usesOf(listed);
    },
  };
};

/** Returns the gauge of the used shares. `uses` is called at each scrape. The number of labels is limited. */
export function usedRatio(uses: () => readonly LimitUse[]): FeatureMetric {
  return {
    ...{ name: 'client_budget_used_ratio', ...metrics.client_budget_used_ratio },
    read: () => {
      const listed = uses();
      const modelBudgets = listed.filter(({ model }) => model !== undefined); // a client may set several for an own key
      return sharesBy([...listed.filter(({ model }) => model === undefined), ...modelBudgets].slice(0, maxKeyLabels));
    },
  };
}

function sharesBy(budgets: readonly LimitUse[]): Figures {
  const figures: Record<string, Figures> = {};
  for (const budget of budgets) {
    const { client, kind = '' } = clientLabelOf(budget.kind, budget.client);
    const kindFigures = { ...(figures[client]?.[kind] as Figures), [budget.model ?? '']: sharesOf(budget) };
    figures[client] = { ...figures[client], [kind]: kindFigures };
  }
  return figures;
}

function sharesOf({ tokens, cost_usd: cost }: LimitUse): Figures {
  const tokenRatio = tokens === null ? {} : { tokens: tokens.used / tokens.max };
  return cost === null ? tokenRatio : { ...tokenRatio, cost: cost.used / cost.max };
}
