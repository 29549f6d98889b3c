import type { ClientText } from '../../shared/client.js';
import type { Conversation } from './conversation.js';

/** The share of each client among all conversations. */
export interface ShareLimits {
  readonly maxConversations: number;
  readonly maxBytes: number;
}

/** The conversations of one client. */
interface ClientConversations {
  readonly byActivity: ActivityOrder;
  /** Number of activities of this client; starts again after its last conversation is removed. */
  activities: number;
  count: number;
  bytes: number;
}

/**
 * Tracks the conversations of each client, and the order of their activity. The conversation to evict belongs to a
 * client beyond its share, so that no client can evict the conversations of others. `FairShare` does not fit:
 * conversations grow, their order changes with each turn, and pages are read from the middle of the order.
 */
export class ConversationShares {
  readonly #limits: ShareLimits;
  readonly #byClient = new Map<string, ClientConversations>();
  /** Clients beyond their share. With shares of a quarter, there are only a few. */
  readonly #beyond = new Set<ClientConversations>();

  constructor(limits: ShareLimits) {
    this.#limits = limits;
  }

  addConversation(conversation: Conversation): void {
    const { client, bytes } = conversation;
    const share = this.#byClient.get(client) ?? { byActivity: new ActivityOrder(), activities: 0, count: 0, bytes: 0 };
    this.#byClient.set(client, share);
    conversation.activity = ++share.activities;
    share.byActivity.append(conversation);
    this.#change(share, 1, bytes);
  }

  /** Records an activity, and the bytes by which the conversation has grown. */
  grew(conversation: Conversation, bytes: number): void {
    const share = this.#byClient.get(conversation.client);
    if (share === undefined || conversation.activity === 0) return;
    share.byActivity.removeConversation(conversation);
    conversation.activity = ++share.activities;
    share.byActivity.append(conversation);
    this.#change(share, 0, bytes);
  }

  removeConversation(conversation: Conversation): void {
    const { client, activity, bytes } = conversation;
    const share = this.#byClient.get(client);
    if (share === undefined || activity === 0) return;
    share.byActivity.removeConversation(conversation);
    conversation.activity = 0;
    this.#change(share, -1, -bytes);
    if (share.count === 0) this.#byClient.delete(client);
  }

  /**
   * Returns the least recently active idle conversation of the client furthest beyond its share. null if no client
   * beyond its share has an idle one.
   */
  firstToGo(): Conversation | null {
    const greediest = [...this.#beyond].sort((a, b) => this.#excess(b) - this.#excess(a));
    for (const { byActivity } of greediest) {
      for (const conversation of byActivity) if (conversation.turns === null) return conversation;
    }
    return null;
  }

  /**
   * Returns up to `count` conversations of a client with an `activity` below `before` (null: all), the most recently
   * active first.
   */
  latest(client: ClientText, before: number | null, count: number): Conversation[] {
    const found: Conversation[] = [];
    for (const conversation of this.#byClient.get(client)?.byActivity.backwards(before ?? Infinity) ?? []) {
      found.push(conversation);
      if (found.length === count) break;
    }
    return found;
  }

  #change(share: ClientConversations, count: number, bytes: number): void {
    share.count += count;
    share.bytes += bytes;
    if (this.#excess(share) > 1) this.#beyond.add(share);
    else this.#beyond.delete(share);
  }

  /** Returns the used fraction of the share, by number or bytes, whichever is larger; above 1 is beyond the share. */
  #excess({ count, bytes }: ClientConversations): number {
    return Math.max(count / this.#limits.maxConversations, bytes / this.#limits.maxBytes);
  }
}

/**
 * Longest run; a longer order continues in a new run. Two neighbours are joined if they are together at most half as
 * long.
 */
const maxRunLength = 256;

/**
 * Orders the conversations of one client by activity, in runs of limited length, so that even among a million of them
 * an entry is found and removed in microseconds. `activity` rises along the order.
 */
export class ActivityOrder {
  /** Runs in order; no run is empty. */
  readonly #runs: Conversation[][] = [];

  append(conversation: Conversation): void {
    const last = this.#runs.at(-1);
    if (last !== undefined && last.length < maxRunLength) last.push(conversation);
    else this.#runs.push([conversation]);
  }

  /** Removes a conversation, whose `activity` must be the same as when it was appended. */
  removeConversation({ activity }: Conversation): void {
    const at = this.#runAt(activity);
    const run = this.#runs[at] ?? [];
    run.splice(
      firstFrom(run, ({ activity: other }) => other >= activity),
      1,
    );
    if (run.length === 0) this.#runs.splice(at, 1);
    else this.#join(at);
  }

  /** Iterates from the least recently active conversation. The order may not change during the iteration. */
  *[Symbol.iterator](): Generator<Conversation> {
    for (const run of this.#runs) yield* run;
  }

  /**
   * Iterates from the most recently active conversation with an `activity` below `before`. The order may not change
   * during the iteration.
   */
  *backwards(before: number): Generator<Conversation> {
    const first = Math.min(this.#runAt(before), this.#runs.length - 1);
    for (let at = first; at >= 0; at--) {
      const run = this.#runs[at] ?? [];
      for (let index = run.length - 1; index >= 0; index--) {
        const conversation = run[index];
        if (conversation !== undefined && conversation.activity < before) yield conversation;
      }
    }
  }

  /** Returns the index of the first run that ends at or after this activity. */
  #runAt(activity: number): number {
    return firstFrom(this.#runs, (run) => (run.at(-1)?.activity ?? 0) >= activity);
  }

  #join(at: number): void {
    const [run = [], next] = this.#runs.slice(at, at + 2);
    if (next !== undefined && run.length + next.length <= maxRunLength / 2) this.#runs.splice(at, 2, [...run, ...next]);
  }
}

/**
 * Returns the index of the first item that fits; the length if none fits. All items after a fitting one must fit too.
 */
function firstFrom<T>(sorted: readonly T[], fits: (item: T) => boolean): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (fits(sorted[middle] as T)) high = middle;
    else low = middle + 1;
  }
  return low;
}
