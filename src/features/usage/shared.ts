import { z } from 'zod';
import { keptErrors } from '../../shared/api/endpoints.js';
import { clientText } from '../../shared/client.js';
import { scopes } from '../../shared/config/api-keys.js';
import type { FeatureEndpoint } from '../../shared/features/feature.js';
import { periodQuery, usageGroups, usageReport } from './report-form.js';

/** Tables of the usage, which both processes, the command and the documents read. */

const day = z.string().nullable();

export const calls = {
  /**
   * Returns the body of GET /usage: the usage of all clients for an administrator, otherwise of the client. Both days
   * are included. `scopes`: scopes of the API key; null if no key is required.
   */
  usage: {
    request: z.object({
      client: clientText,
      scopes: z.array(z.enum(scopes)).readonly().nullable(),
      ...{ since: day, until: day, groups: z.array(z.enum(usageGroups)).readonly() },
    }),
    answer: z.object({ text: z.string() }),
  },
};

export const route = '/usage';

export const endpoints = [
  {
    method: 'GET',
    route,
    errors: keptErrors,
    id: 'getUsage',
    summary: 'Usage by client, model, account, day or month',
    description:
      'Usage of all clients for an API key with the scope `admin`, otherwise of the caller. The service stores 90 days by day and 24 months by month: earlier days only count without the group `day`, and if their whole month is in the period.',
    query: {
      group: z
        .string()
        .meta({
          description: `Groups by which the usage is summed up: one or more of ${usageGroups.join(', ')}, separated by commas. By default \`day,client\`.`,
        })
        .optional(),
      from: periodQuery.meta({ description: 'The first day or month, in UTC.' }).optional(),
      to: periodQuery.meta({ description: 'The last day or month, in UTC.' }).optional(),
      since: periodQuery.meta({ description: 'Another name for `from`.' }).optional(),
      until: periodQuery.meta({ description: 'Another name for `to`.' }).optional(),
    },
    alsoAs: 'text/csv',
    answer: usageReport,
    answerText: 'A row for each combination of the groups, sorted by them.',
  },
] as const satisfies readonly FeatureEndpoint[];
