import { LinkedList } from '../../shared/linked-list.js';
import type { Conversation } from './conversation.js';

/** What each client has of its own among all conversations. */
export interface ShareLimits {
  readonly maxConversations: number;
  readonly maxBytes: number;
}

/** What one client holds. */
interface Held {
  /** The least recently active first. */
  readonly byActivity: LinkedList<Conversation>;
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
    const held = this.#byClient.get(client) ?? { byActivity: new LinkedList<Conversation>(), count: 0, bytes: 0 };
    this.#byClient.set(client, held);
    conversation.ownPlace = held.byActivity.append(conversation);
    this.#change(held, 1, bytes);
  }

  /** It was active, and has so much more text. */
  grew({ client, ownPlace }: Conversation, bytes: number): void {
    const held = this.#byClient.get(client);
    if (held === undefined || ownPlace === null) return;
    held.byActivity.moveToEnd(ownPlace);
    this.#change(held, 0, bytes);
  }

  remove(conversation: Conversation): void {
    const { client, ownPlace, bytes } = conversation;
    const held = this.#byClient.get(client);
    if (held === undefined || ownPlace === null) return;
    held.byActivity.remove(ownPlace);
    conversation.ownPlace = null;
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
