import { type ClientText, holderOf } from '../../shared/client.js';
import { invalid } from '../../shared/errors.js';
import { dataOf, type JobNotice } from './notices.js';
import { isCallbackOf } from './receiver-url.js';
import type { Webhooks } from './webhooks.js';

/** Calls back URLs that clients have named, when their background jobs have ended. Only keys may name them. */
export class Callbacks {
  readonly #webhooks: Pick<Webhooks, 'send'> | null;
  readonly #startOf: (client: ClientText) => string | null;

  /** `webhooks` is null if there is no secret. `startOf` returns the start of the URLs that a client may name. */
  constructor(webhooks: Pick<Webhooks, 'send'> | null, startOf: (client: ClientText) => string | null) {
    this.#webhooks = webhooks;
    this.#startOf = startOf;
  }

  /** Throws `validation_error` if the client may not name this URL. */
  checkUrl(client: ClientText, url: string | undefined): void {
    if (url === undefined) return;
    const start = this.#startOf(client);
    if (start === null) throw invalid('callback_url', 'needs an API key with the option webhooks');
    if (this.#webhooks === null) throw invalid('callback_url', 'needs a service with MODEL_API_WEBHOOK_SECRET');
    if (!isCallbackOf(url, start))
      throw invalid('callback_url', `must be a URL without a user that begins with ${start}`);
  }

  /** Sends the notice if the key of the client still allows the URL. */
  jobEnded(job: JobNotice): void {
    const { client } = job.request;
    const { callbackUrl: url } = job;
    if (url === undefined || !isCallbackOf(url, this.#startOf(client))) return;
    // the limits of deliveries count all sub-clients of a key as one client
    this.#webhooks?.send(
      { id: `callback_${job.id}`, client: holderOf(client), type: 'job.ended', data: dataOf(job) },
      url,
    );
  }
}
