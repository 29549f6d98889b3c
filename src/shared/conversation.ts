/** What may be known of a conversation: everything but its text. Times are milliseconds since the epoch. */
export interface ConversationSnapshot {
  readonly id: string;
  readonly messageCount: number;
  /** Estimated from the conversation's own text with the o200k tokenizer; the model's own count differs. */
  readonly tokensUsed: number;
  readonly createdAt: number;
  readonly lastActivityAt: number;
  readonly expiresAt: number;
}

export const removalCauses = ['deleted', 'expired', 'evicted'] as const;
export type RemovalCause = (typeof removalCauses)[number];
