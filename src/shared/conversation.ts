import { z } from 'zod';

/** What may be known of a conversation: everything but its text. Times are milliseconds since the epoch. */
export const conversationSnapshot = z
  .object({
    id: z.string(),
    messageCount: z.int(),
    /** Estimated from the conversation's own text with the o200k tokenizer; the model's own count differs. */
    tokensUsed: z.int(),
    createdAt: z.number(),
    lastActivityAt: z.number(),
    expiresAt: z.number(),
  })
  .readonly();
export type ConversationSnapshot = z.infer<typeof conversationSnapshot>;

/** With what it is called: what its client named it, else its first words. */
export const titledConversation = conversationSnapshot.unwrap().extend({ title: z.string() }).readonly();
export type TitledConversation = z.infer<typeof titledConversation>;

/** One page of the conversations of a client. A search may find none on a page that is not the last. */
export const conversationPage = z
  .object({
    conversations: z.array(titledConversation).readonly(),
    /** Where the next page begins; null on the last. */
    next: z.int().nullable(),
  })
  .readonly();
export type ConversationPage = z.infer<typeof conversationPage>;

export const removalCauses = ['deleted', 'expired', 'evicted'] as const;
export type RemovalCause = (typeof removalCauses)[number];
