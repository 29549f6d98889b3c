import { checkSize, maxConversationBytes } from '../../primary/conversations/conversation-limits.js';
import type { Clock } from '../../shared/clock.js';
import type { Config } from '../../shared/config/config.js';
import { invalid, RelayError } from '../../shared/errors.js';
import type { ContinuedText, JobRequest, Message } from '../../shared/job.js';
import { chained } from '../../shared/text/chain.js';
import { inTurns } from '../../shared/text/turns.js';
import { callsAsText } from '../doors/calls-as-text.js';
import type {
  BodyPiece,
  ResponseKey,
  ResponseLimits,
  ResponseNode,
  ResponseStore,
} from '../stores/contract/responses.js';
import { bytesOfMessages, haveImages } from './message-sizes.js';

/** Returns the limits: as many responses as conversations, with a quarter of their text. */
export function responseLimits(
  config: Pick<Config, 'maxConversations' | 'conversationBytes' | 'conversationTtlMs'>,
): ResponseLimits & TextLimit {
  const { maxConversations: maxResponses, conversationBytes, conversationTtlMs: ttlMs } = config;
  return { maxResponses, maxBytes: Math.ceil(conversationBytes / 4), ttlMs, maxTextBytes: maxConversationBytes };
}

/** Largest chain whose messages are listed. Each request for them parses the whole chain. */
const maxInputBytes = 2 * 1024 ** 2;

interface TextLimit {
  /** Largest size of the messages of a chain that can be continued. */
  readonly maxTextBytes: number;
}

/** Applies the limits of stored responses. All methods reject with `not_found` if the client has no such response. */
export class StoredResponses {
  readonly #store: ResponseStore;
  readonly #limits: ResponseLimits & TextLimit;
  readonly #clock: Pick<Clock, 'now'>;

  constructor(store: ResponseStore, limits: ResponseLimits & TextLimit, clock: Pick<Clock, 'now'>) {
    this.#store = store;
    this.#limits = limits;
    this.#clock = clock;
  }

  /**
   * Stores a response. Rejects with `validation_error` if it does not fit within the limits, and with `not_found` if
   * the previous response is missing.
   */
  async putResponse(
    response: Omit<ResponseNode, 'createdAt' | 'head'> & { readonly head: ContinuedText },
  ): Promise<void> {
    const head = JSON.stringify(response.head);
    const verdict = await this.#store.putResponse({ ...response, head, createdAt: this.#clock.now() }, this.#limits);
    if (verdict === 'gone') notFound();
    if (verdict === 'full') throw tooLarge();
  }

  /** Reads a piece of the body, from byte `from`. */
  async readBody(key: ResponseKey, from: number): Promise<BodyPiece> {
    return (await this.#store.readPiece(key, from, this.#expiredAt)) ?? notFound();
  }

  /**
   * Reads the summary of a chain that a continuing request needs. Rejects with `validation_error` if the chain is too
   * large to be continued.
   */
  async readHead(key: ResponseKey): Promise<ContinuedText> {
    const head = await this.#summary(key);
    const { maxBytes, maxTextBytes: maxBytesEach } = this.#limits;
    checkSize({ maxBytes, maxBytesEach }, head.bytes, 'previous_response_id');
    return head;
  }

  /**
   * Reads the messages that this response has answered. Rejects with `validation_error` if the chain is larger than
   * `maxInputBytes`.
   */
  async input(key: ResponseKey): Promise<readonly Message[]> {
    const { bytes } = await this.#summary(key);
    if (bytes > maxInputBytes)
      throw invalid('response_id', 'has more than 2 MB of input and output, and cannot be listed');
    return (await this.readMessages(key)).slice(0, -1);
  }

  async #summary(key: ResponseKey): Promise<ContinuedText> {
    const json = (await this.#store.readHead(key, this.#expiredAt)) ?? notFound();
    return json === '' ? headOf(key, await this.readMessages(key)) : (JSON.parse(json) as ContinuedText);
  }

  /** Reads all messages from the first response of the chain to this one. */
  async readMessages(key: ResponseKey): Promise<readonly Message[]> {
    return (await this.#store.readMessages(key, this.#expiredAt)) ?? notFound();
  }

  /** Puts the text that a request continues before its history. Without tools in the request, calls become text. */
  async readEarlier({ earlier, ...request }: JobRequest): Promise<JobRequest> {
    const { client, offer } = request;
    const texts = earlier === undefined ? [] : await this.readMessages({ id: earlier.id, client });
    const history = inTurns([...texts, ...request.history]);
    return { ...request, ...(earlier && { earlier }), history: offer === undefined ? callsAsText(history) : history };
  }

  async removeResponse(key: ResponseKey): Promise<void> {
    if (!(await this.#store.removeResponse(key))) notFound();
  }

  get #expiredAt(): number {
    return this.#clock.now() - this.#limits.ttlMs;
  }
}

/**
 * Builds the summary of a response that an earlier version stored without one. `start` serves to find a CLI process
 * that still has the conversation. No process is that old, so `start` is empty.
 */
function headOf({ id }: ResponseKey, messages: readonly Message[]): ContinuedText {
  const openCalls = (messages.at(-1)?.calls ?? []).map((call) => ({ ...call, input: '' }));
  const size = { messageCount: messages.length, bytes: bytesOfMessages(messages), hasImages: haveImages(messages) };
  return { id, start: '', hash: messages.reduce(chained, ''), ...size, openCalls };
}

function notFound(): never {
  throw new RelayError('not_found', 'no such response');
}

function tooLarge(): RelayError {
  const limits = 'MODEL_API_MAX_CONVERSATIONS, MODEL_API_CONVERSATION_MEMORY_MB';
  return invalid('previous_response_id', `the response with its text is larger than what can be stored (${limits})`);
}
