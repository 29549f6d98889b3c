import type { Clock } from '../../shared/clock.js';
import type { Config } from '../../shared/config/config.js';
import { invalid, RelayError } from '../../shared/errors.js';
import type { Message } from '../../shared/job.js';
import type { ResponseKey, ResponseLimits, ResponseNode, ResponseStore } from '../store/contract/responses.js';

export function responseLimits(
  config: Pick<Config, 'maxResponses' | 'maxResponseBytes' | 'conversationTtlMs'>,
): ResponseLimits {
  const { maxResponses, maxResponseBytes: maxBytes, conversationTtlMs: ttlMs } = config;
  return { maxResponses, maxBytes, ttlMs };
}

/** Owns the limits of stored responses. Everything rejects with `not_found` for a response that the client does not have. */
export class StoredResponses {
  readonly #store: ResponseStore;
  readonly #limits: ResponseLimits;
  readonly #clock: Pick<Clock, 'now'>;

  constructor(store: ResponseStore, limits: ResponseLimits, clock: Pick<Clock, 'now'>) {
    this.#store = store;
    this.#limits = limits;
    this.#clock = clock;
  }

  get counts() {
    return this.#store.counts;
  }

  /** Resolves once it is stored. Also rejects with `validation_error` where its text is larger than the limits. */
  async put(response: Omit<ResponseNode, 'createdAt'>): Promise<void> {
    const verdict = await this.#store.put({ ...response, createdAt: this.#clock.now() }, this.#limits);
    if (verdict === 'gone') notFound();
    if (verdict === 'full') throw tooLarge();
  }

  async body(key: ResponseKey): Promise<string> {
    return (await this.#store.body(key, this.#expiredAt)) ?? notFound();
  }

  /** All messages from the beginning of its text to its own. */
  async text(key: ResponseKey): Promise<readonly Message[]> {
    return (await this.#store.text(key, this.#expiredAt)) ?? notFound();
  }

  async remove(key: ResponseKey): Promise<void> {
    if (!(await this.#store.remove(key))) notFound();
  }

  /** After a failure the next time does it. */
  expire(): void {
    this.#store.expire(this.#expiredAt).catch(() => {});
  }

  get #expiredAt(): number {
    return this.#clock.now() - this.#limits.ttlMs;
  }
}

function notFound(): never {
  throw new RelayError('not_found', 'no such response');
}

function tooLarge(): RelayError {
  const limits = 'MODEL_API_MAX_RESPONSES, MODEL_API_MAX_RESPONSE_BYTES';
  return invalid('previous_response_id', `the response with its text is larger than what can be stored (${limits})`);
}
