import { addressFlags, type CommandFeature, jsonFlag } from '../../command/base/command.js';
import type { PrimaryFeature } from '../../primary/features/feature.js';
import { emptyFeature } from '../../shared/features/empty-feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';
import { usageGroups } from './report-form.js';
import { calls, endpoints } from './shared.js';

/** The usage of each client, model and account by day and month: GET /usage and `prompt-relay usage`. */
export const usage = {
  ...emptyFeature,
  ...{ name: 'usage', needs: ['stores'], calls, endpoints },
  loadPrimary: async () => (await import('./primary.js')).createUsage,
  loadWorker: () => import('./worker.js'),
  commands: [
    {
      name: 'usage',
      synopsis: '',
      summary: 'show the usage by client, model, account, day or month',
      flags: {
        by: {
          type: 'string',
          placeholder: '<groups>',
          description: `sum up by one or more of ${usageGroups.join(', ')}, separated by commas; default: day,client, with --month month,client`,
        },
        month: { type: 'string', placeholder: '<month>', description: 'only this month in UTC, such as 2026-01' },
        since: {
          type: 'string',
          placeholder: '<day>',
          description: 'first day or month in UTC, such as 2026-01-31; default: all',
        },
        until: { type: 'string', placeholder: '<day>', description: 'last day or month in UTC; default: today' },
        csv: { type: 'boolean', description: 'print CSV' },
        ...jsonFlag,
        ...addressFlags,
      },
      maxPositionals: 0,
      notes: ['Without the scope admin, only your own usage is shown.'],
      examples: [
        'prompt-relay usage',
        'prompt-relay usage --since 2026-01-01 --until 2026-01-31 --json',
        'prompt-relay usage --by client,model --month 2026-01 --csv > january.csv',
      ],
      run: async (args, context) => (await import('./command.js')).showUsage(args, context),
    },
  ],
} satisfies PrimaryFeature & WorkerFeature<typeof calls> & CommandFeature;
