import { z } from 'zod';
import { storeKind } from '../../shared/api/health.js';
import { clientText } from '../../shared/client.js';
import type { FeatureEndpoint } from '../../shared/features/feature.js';

/** Answer to the question of people who use the service: what is stored, how long, and who can read it. */

const path = z.string().nullable();

const storedData = z
  .strictObject({
    kind: z.string().meta({ description: 'Name of the kind of data, such as `conversations`.' }),
    content: z.string(),
    place: z.string().meta({
      enum: ['memory', 'file', 'redis', 'process', 'output', 'nowhere'],
      description:
        '`memory`: until a restart at the latest. `process`: in the process of the model CLI. `output`: written to stdout or sent on, and not stored by the service. `nowhere`: the settings prevent that it is stored.',
    }),
    kept_seconds: z
      .number()
      .nonnegative()
      .nullable()
      .meta({ description: 'Time for which it is kept, from the moment in `kept`; null if no time limits it.' }),
    kept: z.string().meta({ description: 'How long it is kept, in words.' }),
    readers: z.array(z.enum(['client', 'admin', 'everybody', 'host', 'scraper', 'receiver'])).meta({
      description:
        'Who can read it. `client`: the client that it belongs to. `admin`: keys and people with this scope. `host`: root, the user of the service, and the model CLI. `scraper`: who has the scope `metrics`. `receiver`: the service that the operator has named for it.',
    }),
    export: path.meta({ description: 'Request that reads it; null if there is none.' }),
    deletion: path.meta({ description: 'Request that deletes it; null if there is none.' }),
    variables: z.array(z.string()).meta({ description: 'Variables of the service that change this.' }),
  })
  .meta({ id: 'StoredData' });

export const retentionBody = z
  .strictObject({
    store: storeKind.meta({ description: 'Kind of the store.' }),
    is_stored: z.boolean().meta({
      description: 'Whether the service stores contents of this client. If not, `data` shows what it stores of others.',
    }),
    data: z.array(storedData),
    provider: z.string().meta({ description: 'What the service cannot know: what the provider of the model stores.' }),
  })
  .meta({ id: 'Retention' });
export type Retention = z.infer<typeof retentionBody>;

export const maxExportsAnHour = 20;

export const calls = {
  /** Yields all stored data of a client, as lines of JSON. */
  exportData: {
    request: z.object({ client: clientText, requestId: z.string() }),
    item: z.object({ text: z.string() }),
  },
  /** Returns what the service stores with its settings. */
  retention: { request: z.object({ client: clientText }), answer: retentionBody },
};

export const route = '/retention';
export const exportRoute = '/export';
export const exportType = 'application/x-ndjson';

export const endpoints = [
  {
    method: 'GET',
    route,
    errors: ['unauthorized', 'rate_limited'],
    id: 'getRetention',
    summary: 'What is stored, how long, and who can read it',
    description:
      'The service makes this answer from its settings. All clients get the same one, except for `is_stored`.',
    answer: retentionBody,
    answerText: 'The kinds of data.',
  },
  {
    method: 'GET',
    route: exportRoute,
    errors: ['unauthorized', 'rate_limited', 'store_unavailable'],
    id: 'exportData',
    summary: 'Everything that is stored of this client',
    description:
      'Lines of JSON, each with a `kind`: conversations, background jobs, recorded answers, responses, files with the results of batches, batches, notices, usage, options, courses, and keys without their values. Lines whose kind ends with `_data` have the contents in pieces. The last line has the kind `end`, the numbers, and the SHA-256 of all lines before it; without it, the export is not complete. The audit gets both. A client gets at most 20 exports an hour, and then 429 with `rate_limited`.',
    answer: exportType,
    answerText: 'The lines.',
  },
] as const satisfies readonly FeatureEndpoint[];
