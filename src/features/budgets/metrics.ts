import type { MetricTable } from '../../shared/tables/metrics.js';

export const metrics = {
  client_budget_used_ratio: {
    type: 'gauge',
    labels: ['client', 'kind', 'model', 'budget'],
    help: 'Used share of the budget of an API key, a person (kind sso), a group (@NAME) or the whole service (@*) in its day, week or month (UTC), with the model of a budget for one model; more than 1 if jobs were running when it was used up.',
  },
} as const satisfies MetricTable;
