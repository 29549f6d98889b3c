import type { FeatureKeyOption } from '../../shared/config/key-option-table.js';
import { readUrlPattern } from './receiver-url.js';

const name = 'webhooks';

/** Option of keys: the start of the URLs that may be called back when a background job has ended. */
export const keyOptions = {
  [name]: {
    read: (text) => {
      const start = readUrlPattern(text ?? '');
      if (start !== null) return `${start}*`;
      throw new Error(
        'must be an https:// or http:// URL without a user that ends with *, such as https://example.org/hooks/*',
      );
    },
    flag: {
      ...{ type: 'string', placeholder: '<url>' },
      description: 'jobs may call back URLs, such as https://a.example/*',
    },
    http: {
      description: 'URLs that may be called back, ending in `*`.',
      isWithin: (text, maker) => text === null || text === maker,
    },
    document: [
      'webhooks=https://example.org/hooks/*',
      'background jobs of the key may name a `callback_url` or `X-Callback-Url` that begins like this; see [callbacks](api.md#callbacks)',
    ],
  },
} as const satisfies Readonly<Record<string, FeatureKeyOption>>;

/** Returns the start of the URLs that the options of a client allow; null if they allow none. */
export function callbackStart(options: Readonly<Record<string, string>>): string | null {
  return options[name]?.slice(0, -1) ?? null;
}
