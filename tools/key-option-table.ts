import { features } from '../src/features.js';
import type { keyOptions } from '../src/shared/config/key-option-table.js';

/** Example and meaning of each option of a key in the core. Features have those of their options. */
const coreOptions: Readonly<Record<keyof typeof keyOptions, readonly [example: string, meaning: string]>> = {
  scopes: [
    'scopes=ask+chat',
    'what the key may do, by default `ask+chat`; anything else is 403. `ask`: POST /ask. `chat`: all of /chat. `admin`: POST /health/recheck and /store/…, GET /setup, /audit and /webhooks/deliveries, all of /keys; all clients in GET /usage, /status and /jobs; ending any job; process ids of workers. `metrics`: GET /metrics if it needs a key',
  ],
  rate: ['rate=60/60', 'requests in a window of seconds, instead of `MODEL_API_RATE_LIMIT_*`'],
  concurrent: ['concurrent=2', 'limit of running jobs, instead of `MODEL_API_CLIENT_MAX_CONCURRENT`'],
  queue: ['queue=20', 'limit of waiting jobs (by default its [share](#shares))'],
  weight: [
    'weight=2',
    'turns in each round of the queue, from 1 (default) to 100, with a quarter of the queue as [share](#shares) for each, at most three quarters',
  ],
  models: [
    'models=a+b',
    'the only models that the client may name; for an [alias](clis.md#names-of-models), its model. The default is that of the service if it is in this list, else the first',
  ],
  group: ['group=biology', 'the key or the person belongs to this [group](#groups)'],
  subclients: [
    'subclients',
    'the holder may name sub-clients, such as the users of an application; all [limits](#shares) apply to the key',
  ],
  expires: ['expires=2027-07-01', 'the service refuses the key from the beginning of this day (UTC)'],
  previous: [
    'previous=<DIGEST>/2027-01-31',
    'the digest of the old key, which works until this day (UTC); `keys rotate` writes it',
  ],
};

/** Returns the rows of the options of a key: example and meaning. Options of features come last. */
export function keyOptionRows(): string[][] {
  const added = features.flatMap(({ keyOptions: options }) => Object.values(options).map(({ document }) => document));
  return [...Object.values(coreOptions), ...added].map(([example, meaning]) => [`\`${example}\``, meaning]);
}
