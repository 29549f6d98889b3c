import type { Clock } from '../../shared/clock.js';
import type { Config } from '../../shared/config/config.js';
import { invalid, RelayError } from '../../shared/errors.js';
import type { ContinuedText, Message } from '../../shared/job.js';
import { chained } from '../../shared/text/chain.js';
import { bytesOfMessages, haveImages } from '../../shared/text/turns.js';
import { checkSize } from '../conversations/conversation-limits.js';
import type {
  BodyPiece,
  ResponseKey,
  ResponseLimits,
  ResponseNode,
  ResponseStore,
} from '../store/contract/responses.js';

export function responseLimits(
  config: Pick<Config, 'maxResponses' | 'maxResponseBytes' | 'maxConversationBytes' | 'conversationTtlMs'>,
): ResponseLimits & TextLimit {
  const { maxResponses, maxResponseBytes: maxBytes, conversationTtlMs: ttlMs } = config;
  return { maxResponses, maxBytes, ttlMs, maxTextBytes: config.maxConversationBytes };
}

interface TextLimit {
  /** The size of a text that can be continued. */
  readonly maxTextBytes: number;
}

/** Owns the limits of stored responses. Everything rejects with `not_found` for a response that the client does not have. */
export class StoredResponses {
  readonly #store: ResponseStore;
  readonly #limits: ResponseLimits & TextLimit;
  readonly #clock: Pick<Clock, 'now'>;

  constructor(store: ResponseStore, limits: ResponseLimits & TextLimit, clock: Pick<Clock, 'now'>) {
    this.#store = store;
    this.#limits = limits;
    this.#clock = clock;
  }

  get counts() {
    return this.#store.counts;
  }

  /** Resolves once it is stored. Also rejects with `validation_error` where its text is larger than the limits. */
  async put(response: Omit<ResponseNode, 'createdAt' | 'head'> & { readonly head: ContinuedText }): Promise<void> {
    const head = JSON.stringify(response.head);
    const verdict = await this.#store.put({ ...response, head, createdAt: this.#clock.now() }, this.#limits);
    if (verdict === 'gone') notFound();
    if (verdict === 'full') throw tooLarge();
  }

  /** A piece of its body, from that byte on. */
  async read(key: ResponseKey, from: number): Promise<BodyPiece> {
    return (await this.#store.read(key, from, this.#expiredAt)) ?? notFound();
  }

  /** What a request needs to know that continues its text. Also rejects with `validation_error` if it is too large for that. */
  async head(key: ResponseKey): Promise<ContinuedText> {
    const json = (await this.#store.head(key, this.#expiredAt)) ?? notFound();
    const head = json === '' ? headOf(key, await this.text(key)) : (JSON.parse(json) as ContinuedText);
    const { maxBytes, maxTextBytes: maxBytesEach } = this.#limits;
    checkSize({ maxBytes, maxBytesEach }, head.bytes, 'previous_response_id');
    return head;
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

/** The head of a text that an earlier version has stored. No process waits with it, so any start will do. */
function headOf({ id }: ResponseKey, messages: readonly Message[]): ContinuedText {
  const openCalls = (messages.at(-1)?.calls ?? []).map((call) => ({ ...call, input: '' }));
  const size = { messageCount: messages.length, bytes: bytesOfMessages(messages), hasImages: haveImages(messages) };
  return { id, start: '', hash: messages.reduce(chained, ''), ...size, openCalls };
}

function notFound(): never {
  throw new RelayError('not_found', 'no such response');
}

function tooLarge(): RelayError {
  const limits = 'MODEL_API_MAX_RESPONSES, MODEL_API_MAX_RESPONSE_BYTES';
  return invalid('previous_response_id', `the response with its text is larger than what can be stored (${limits})`);
}
