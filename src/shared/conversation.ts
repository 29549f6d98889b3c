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

/** First messages of a conversation, which other conversations may share. `id` differs for other messages. */
const beginning = z.object({ id: z.string(), messageCount: z.int() }).readonly();
export type Beginning = z.infer<typeof beginning>;

/** Number of beginnings that are known of a conversation: those before its last user messages. */
export const maxBeginnings = 32;

/**
 * Chains of hashes over the messages before the text of a job, and including it. `beginnings`: the chains before the last
 * user messages of the history, the longest first.
 */
export const requestChain = z
  .object({ before: z.string(), asked: z.string(), beginnings: z.array(beginning).readonly().optional() })
  .readonly();

/** Earlier conversation with which another one begins, and the number of messages up to which they are the same. */
export interface Origin {
  readonly id: string;
  readonly messageCount: number;
}

/**
 * Encodes the origins of a version: pairs of an ID and a number of messages, separated by spaces, oldest first. The
 * numbers rise: each origin has the messages after those of the origin before it.
 */
function encodeOrigins(origins: readonly Origin[]): string {
  return origins.map(({ id, messageCount }) => `${id} ${messageCount}`).join(' ');
}

export function decodeOrigins(origins: string | null): Origin[] {
  return Array.from(origins?.matchAll(/(\S+) (\d+)/g) ?? [], ([, id = '', count]) => ({
    id,
    messageCount: Number(count),
  }));
}

/** Conversation with its encoded origins; null if it is a version of no other conversation. */
type WithOrigins = Pick<Origin, 'id'> & { readonly origins: string | null };

/**
 * Returns the origins of a version that shares the first messages with `parent`. An origin that shares more messages
 * with the parent is the origin instead of the parent, so a conversation never has more origins than turns, and one.
 */
export function originsOf(parent: WithOrigins, messageCount: number): string {
  const known = decodeOrigins(parent.origins);
  const before = known.filter((origin) => origin.messageCount < messageCount);
  const { id } = known[before.length] ?? parent;
  return encodeOrigins([...before, { id, messageCount }]);
}

/**
 * Returns the beginnings of a conversation up to this number of messages, the longest first. Each is identified by the
 * oldest conversation that has it.
 */
export function beginningsOf({ id, origins }: WithOrigins, messageCount: number): Beginning[] {
  const known = decodeOrigins(origins);
  const beginnings: Beginning[] = [];
  for (let count = messageCount; count > 0 && beginnings.length < maxBeginnings; count -= 2) {
    const origin = known.find((each) => each.messageCount >= count);
    beginnings.push({ id: origin?.id ?? id, messageCount: count });
  }
  return beginnings;
}

/** Returns the ID of the first conversation among all versions. */
export function rootOf({ id, origins }: WithOrigins): string {
  return origins?.split(' ', 1)[0] ?? id;
}

/** Turn of a conversation that waits or runs. `title`: the first words of its message. */
const openTurn = z
  .object({ id: z.string(), title: z.string(), status: z.enum(['queued', 'running']), isBackground: z.boolean() })
  .readonly();
export type TurnInProgress = z.infer<typeof openTurn>;

/**
 * Place of the searched words. `message`: index of the message, from 0; null for the title. `text`: the title, or the
 * text around the first word in one line.
 */
const foundPlace = z.object({ message: z.int().nullable(), text: z.string() }).readonly();
export type FoundPlace = z.infer<typeof foundPlace>;

/**
 * Conversation with its title: the client's title, otherwise its first words. `origins`: see `originsOf`. `openTurn`:
 * the turn that runs, otherwise the first one that waits, on this host. `match`: missing if nothing was searched.
 */
export const titledConversation = conversationSnapshot
  .unwrap()
  .extend({
    title: z.string(),
    origins: z.string().nullable(),
    openTurn: openTurn.optional(),
    match: foundPlace.optional(),
  })
  .readonly();
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
