import { z } from 'zod';
import { isPrivateUrl } from '../../shared/config/addresses.js';
import type { FeatureVariables, ValuesOf } from '../../shared/config/feature-variables.js';
import type { FeatureEndpoint } from '../../shared/features/feature.js';
import type { LogEvent, Logger } from '../../shared/log/logger.js';
import type { MetricTable } from '../../shared/tables/metrics.js';
import { deliveryList } from './deliveries-body.js';
import { maxCallbackLength, webhookSecret, webhookUrl } from './receiver-url.js';

/** The notices of the operator and the callbacks of clients: what both processes and the documents know of them. */

export const variables = {
  MODEL_API_WEBHOOK_URL: {
    ...{ schema: webhookUrl, fallback: null, secrecy: 'part' },
    meaning: 'receiver of [notices](monitoring.md#notices), such as `https://example.org/notices`',
    shownDefault: 'none',
  },
  MODEL_API_WEBHOOK_SECRET: {
    ...{ schema: webhookSecret, fallback: null, secrecy: 'whole' },
    meaning: 'secret that signs them, and [callbacks](api.md#callbacks): `whsec_` and 24 to 64 random bytes in base64',
    shownDefault: 'none',
  },
} as const satisfies FeatureVariables;

export type WebhookValues = ValuesOf<typeof variables>;

const missingSecret =
  'MODEL_API_WEBHOOK_SECRET: must be set when MODEL_API_WEBHOOK_URL is: printf "whsec_%s" "$(openssl rand -base64 32)" makes one';

export function findFaults(values: Partial<WebhookValues>): string[] {
  const { MODEL_API_WEBHOOK_URL: url, MODEL_API_WEBHOOK_SECRET: secret } = values;
  return url != null && secret === null ? [missingSecret] : [];
}

export function findWarnings({ MODEL_API_WEBHOOK_URL: url }: WebhookValues): string[] {
  if (url === null || isPrivateUrl(url)) return [];
  return ['MODEL_API_WEBHOOK_URL: notices are sent without encryption: use https'];
}

export const calls = {
  /** Returns the newest notices. */
  deliveries: { request: z.object({}), answer: deliveryList },
};

export const endpoints = [
  {
    method: 'GET',
    route: '/webhooks/deliveries',
    errors: ['unauthorized', 'forbidden', 'rate_limited', 'store_unavailable'],
    id: 'listDeliveries',
    summary: 'The newest notices, and whether their receiver has accepted them',
    description:
      'What the service sends to `MODEL_API_WEBHOOK_URL`. Needs the scope `admin` if API keys are configured.',
    answer: deliveryList,
    answerText: 'The deliveries.',
  },
] as const satisfies readonly FeatureEndpoint[];

/** Field of the native API, and the header for all others, with the URL to call back. */
export const callbackField = 'callback_url';
export const callbackHeader = 'X-Callback-Url';

const callbackUrl = z
  .string('must be a string')
  .max(maxCallbackLength, `must be at most ${maxCallbackLength} characters`);

export const requestFields = {
  [callbackField]: callbackUrl
    .meta({
      description:
        'URL that gets a notice when the background job has ended. Only with `Prefer: respond-async`, and only for an API key whose option `webhooks` allows it.',
    })
    .optional(),
};

export const requestHeaders = {
  [callbackHeader]: callbackUrl
    .meta({
      description:
        'URL that gets a notice when the background job has ended, as `callback_url` of the native API. Only for a background job, and only for an API key whose option `webhooks` allows it.',
    })
    .optional(),
};

export const logEvents = {
  webhook_failed: 'a receiver of notices does not accept one: receiver, error. Logged once, until webhook_back',
  webhook_back: 'a receiver accepts notices again: receiver',
  webhook_given_up: 'notices were not delivered: error, count, and for a single one its id, type and receiver',
} as const;

export type WebhookLogger = Logger<LogEvent | keyof typeof logEvents>;

export const metrics = {
  webhook_attempts_total: {
    type: 'counter',
    labels: ['result'],
    help: 'Attempts to deliver a notice, by result; dropped: notices for which there was no room.',
  },
} as const satisfies MetricTable;
