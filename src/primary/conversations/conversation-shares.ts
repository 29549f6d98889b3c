import { ActivityOrder } from './activity-order.js';
import type { Conversation } from './conversation.js';

/** What each client has of its own among all conversations. */
export interface ShareLimits {
  readonly maxConversations: number;
  readonly maxBytes: number;
}

/** What one client holds. */
interface Held {
  readonly byActivity: ActivityOrder;
  /** How often one of them was active, since the client has any. */
  activities: number;
  count: number;
  bytes: number;
}

/**
 * Owns which client holds how much, and in which order its conversations were active. Where something has to go, it is of
 * a client that holds more than its share, so that nobody can push out the conversations of the others.
 */
export class ConversationShares {
  readonly #share: ShareLimits;
  readonly #byClient = new Map<string, Held>();
  /** Those that hold more than their share: with shares of a quarter, never more than a few. */
  readonly #beyond = new Set<Held>();

  constructor(share: ShareLimits) {
    this.#share = share;
  }

  add(conversation: Conversation): void {
    const { client, bytes } = conversation;
    const held = this.#byClient.get(client) ?? { byActivity: new ActivityOrder(), activities: 0, count: 0, bytes: 0 };
    this.#byClient.set(client, held);
    conversation.activity = ++held.activities;
    held.byActivity.append(conversation);
    this.#change(held, 1, bytes);
  }

  /** It was active, and has so much more text. */
  grew(conversation: Conversation, bytes: number): void {
    const held = this.#byClient.get(conversation.client);
    if (held === undefined || conversation.activity === 0) return;
    held.byActivity.remove(conversation);
    conversation.activity = ++held.activities;
    held.byActivity.append(conversation);
    this.#change(held, 0, bytes);
  }

  remove(conversation: Conversation): void {
    const { client, activity, bytes } = conversation;
    const held = this.#byClient.get(client);
    if (held === undefined || activity === 0) return;
    held.byActivity.remove(conversation);
    conversation.activity = 0;
    this.#change(held, -1, -bytes);
    if (held.count === 0) this.#byClient.delete(client);
  }

  /** Of the client that is furthest beyond its share, the least recently active one that is not in use. */
  firstToGo(): Conversation | null {
    const greediest = [...this.#beyond].sort((a, b) => this.#excess(b) - this.#excess(a));
    for (const { byActivity } of greediest) {
      for (const conversation of byActivity) if (conversation.turns === null) return conversation;
    }
    return null;
  }

  /** Of one client, the most recently active first: those with a lower `activity` (null: all), so many at most. */
  latest(client: string, before: number | null, count: number): Conversation[] {
    const found: Conversation[] = [];
    for (const conversation of this.#byClient.get(client)?.byActivity.backwards(before ?? Infinity) ?? []) {
      found.push(conversation);
      if (found.length === count) break;
    }
    return found;
  }

  #change(held: Held, count: number, bytes: number): void {
    held.count += count;
    held.bytes += bytes;
    if (this.#excess(held) > 1) this.#beyond.add(held);
    else this.#beyond.delete(held);
  }

  /** More than 1 beyond the share, in number or in text. */
  #excess({ count, bytes }: Held): number {
    return Math.max(count / this.#share.maxConversations, bytes / this.#share.maxBytes);
  }
}
