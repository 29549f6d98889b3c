import type { Config } from '../../shared/config/config.js';
import { invalid, RelayError, retryAfter } from '../../shared/errors.js';

export interface ConversationLimits {
  /** Milliseconds from the last activity until a conversation expires. */
  readonly ttlMs: number;
  readonly maxConversations: number;
  /** Limit for the bytes of all conversations together. */
  readonly maxBytes: number;
  /** Limit for the bytes of one conversation, without its last answer. */
  readonly maxBytesEach: number;
}

/** Largest text of one conversation. Each turn in a new process replays it. */
export const maxConversationBytes = 8 * 1024 ** 2;

export function conversationLimits(config: Config): ConversationLimits {
  const { conversationTtlMs: ttlMs, maxConversations, conversationBytes: maxBytes } = config;
  return { ttlMs, maxConversations, maxBytes, maxBytesEach: maxConversationBytes };
}

type SizesOfConversations = Pick<ConversationLimits, 'maxBytes' | 'maxBytesEach'>;

/** Returns the limit for the bytes of one conversation. */
export function sizeLimit({ maxBytes, maxBytesEach }: SizesOfConversations): number {
  return Math.min(maxBytes, maxBytesEach);
}

/**
 * Throws `validation_error` if a conversation would exceed its limit. An answer may exceed it, because it is already
 * paid for; the next turn may not.
 */
export function checkSize(limits: SizesOfConversations, bytes: number, field = 'message'): void {
  const limit = sizeLimit(limits);
  if (bytes <= limit) return;
  const megabytes = Math.floor((limit / 1024 ** 2) * 10) / 10;
  throw invalid(field, `would make the conversation larger than ${megabytes} MB: start a new conversation`);
}

/** Throws `validation_error` unless the number of messages is the end of a turn. */
export function checkForkPoint(count: number, messageCount: number): void {
  if (count % 2 !== 0) throw invalid('from', 'must be even, because only whole turns are copied');
  if (count > messageCount) throw invalid('from', `must be at most ${messageCount}, the messages of the conversation`);
}

export function everyOneInUse(): RelayError {
  const message = 'every conversation is in use (MODEL_API_MAX_CONVERSATIONS)';
  return new RelayError('concurrency_limited', message, { retryAfterSeconds: retryAfter('conversations') });
}

/** Throws `not_found` with the same message for every cause. */
export function notFound(): never {
  throw new RelayError('not_found', 'no such conversation');
}

export function unusable(field: 'conversation_id' | 'version_of' = 'conversation_id'): never {
  throw invalid(field, 'no such conversation', 'conversation_unknown');
}
