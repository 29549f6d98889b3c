import type { ConversationPage, ConversationSnapshot } from '../../../shared/conversation.js';

type ListedInRedis = ConversationPage['conversations'][number] & { readonly activity: number };

/** `figures`: messages, tokens, when it was made, and when it was last active. */
export function snapshotOf(id: string, figures: readonly unknown[], ttlMs: number): ConversationSnapshot {
  const [messageCount = 0, tokensUsed = 0, createdAt = 0, lastActivityAt = 0] = figures.map(Number);
  return { id, messageCount, tokensUsed, createdAt, lastActivityAt, expiresAt: lastActivityAt + ttlMs };
}

/** `row`: the id, its place in the order of activity, the figures as above, and the title. */
export function listedConversation([id, activity, ...row]: readonly Buffer[], ttlMs: number): ListedInRedis {
  return { ...snapshotOf(String(id), row.slice(0, 4), ttlMs), title: String(row[4]), activity: Number(activity) };
}
