import { z } from 'zod';

/** Public data of a conversation, without its text. Times are in milliseconds since the epoch. */
export const conversationSnapshot = z
  .object({
    id: z.string(),
    messageCount: z.int(),
    /** Estimate for the conversation's text by the o200k tokenizer; the model's count differs. */
    tokensUsed: z.int(),
    createdAt: z.number(),
    lastActivityAt: z.number(),
    expiresAt: z.number(),
  })
  .readonly();
export type ConversationSnapshot = z.infer<typeof conversationSnapshot>;

/** Conversation with its title: the client's title, otherwise its first words. */
export const titledConversation = conversationSnapshot.unwrap().extend({ title: z.string() }).readonly();
export type TitledConversation = z.infer<typeof titledConversation>;

/** One page of a client's conversations. A search may return an empty page that is not the last. */
export const conversationPage = z
  .object({
    conversations: z.array(titledConversation).readonly(),
    /** Start of the next page; null on the last page. */
    next: z.int().nullable(),
  })
  .readonly();
export type ConversationPage = z.infer<typeof conversationPage>;

export const removalCauses = ['deleted', 'expired', 'evicted'] as const;
export type RemovalCause = (typeof removalCauses)[number];
