import type { Conversation } from './conversation.js';

/** What each client has of its own among all conversations. */
export interface ShareLimits {
  readonly maxConversations: number;
  readonly maxBytes: number;
}

/** The conversations of one client. */
interface OfClient {
  readonly byActivity: ActivityOrder;
  /** How often one of them was active, since the client has any. */
  activities: number;
  count: number;
  bytes: number;
}

/**
 * Owns how many conversations each client has, and in which order they were active. If one has to go, it is of a client
 * that has more than its share, so that nobody can push out the conversations of the others. This is no `FairShare`: the
 * size of a conversation grows, their order changes with each turn, and pages are read from the middle of that order.
 */
export class ConversationShares {
  readonly #share: ShareLimits;
  readonly #byClient = new Map<string, OfClient>();
  /** Those that have more than their share: with shares of a quarter, never more than a few. */
  readonly #beyond = new Set<OfClient>();

  constructor(share: ShareLimits) {
    this.#share = share;
  }

  add(conversation: Conversation): void {
    const { client, bytes } = conversation;
    const own = this.#byClient.get(client) ?? { byActivity: new ActivityOrder(), activities: 0, count: 0, bytes: 0 };
    this.#byClient.set(client, own);
    conversation.activity = ++own.activities;
    own.byActivity.append(conversation);
    this.#change(own, 1, bytes);
  }

  /** It was active, and has so much more text. */
  grew(conversation: Conversation, bytes: number): void {
    const own = this.#byClient.get(conversation.client);
    if (own === undefined || conversation.activity === 0) return;
    own.byActivity.remove(conversation);
    conversation.activity = ++own.activities;
    own.byActivity.append(conversation);
    this.#change(own, 0, bytes);
  }

  remove(conversation: Conversation): void {
    const { client, activity, bytes } = conversation;
    const own = this.#byClient.get(client);
    if (own === undefined || activity === 0) return;
    own.byActivity.remove(conversation);
    conversation.activity = 0;
    this.#change(own, -1, -bytes);
    if (own.count === 0) this.#byClient.delete(client);
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

  #change(own: OfClient, count: number, bytes: number): void {
    own.count += count;
    own.bytes += bytes;
    if (this.#excess(own) > 1) this.#beyond.add(own);
    else this.#beyond.delete(own);
  }

  /** More than 1 beyond the share, in number or in text. */
  #excess({ count, bytes }: OfClient): number {
    return Math.max(count / this.#share.maxConversations, bytes / this.#share.maxBytes);
  }
}

/** A run this long is followed by a new one; two neighbours that are together half as long become one. */
const maxRunLength = 256;

/**
 * Owns the order in which the conversations of one client were active, in runs of at most a few hundred. So even among a
 * million of them a place is found and removed in microseconds. Each has a higher `activity` than all before it.
 */
export class ActivityOrder {
  /** None is empty. */
  readonly #runs: Conversation[][] = [];

  append(conversation: Conversation): void {
    const last = this.#runs.at(-1);
    if (last !== undefined && last.length < maxRunLength) last.push(conversation);
    else this.#runs.push([conversation]);
  }

  /** For one that is in the order. Its `activity` is still what it was when it was appended. */
  remove({ activity }: Conversation): void {
    const at = this.#runAt(activity);
    const run = this.#runs[at] ?? [];
    run.splice(
      firstFrom(run, ({ activity: other }) => other >= activity),
      1,
    );
    if (run.length === 0) this.#runs.splice(at, 1);
    else this.#join(at);
  }

  /** The least recently active first. The order may not change during the iteration. */
  *[Symbol.iterator](): Generator<Conversation> {
    for (const run of this.#runs) yield* run;
  }

  /** The most recently active first, of those with a lower `activity` than this. The order may not change during the iteration. */
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

  /** The first run that ends with this activity or a later one. */
  #runAt(activity: number): number {
    return firstFrom(this.#runs, (run) => (run.at(-1)?.activity ?? 0) >= activity);
  }

  #join(at: number): void {
    const [run = [], next] = this.#runs.slice(at, at + 2);
    if (next !== undefined && run.length + next.length <= maxRunLength / 2) this.#runs.splice(at, 2, [...run, ...next]);
  }
}

/** The index of the first item that fits, as all after it do; the length if none fits. */
function firstFrom<T>(sorted: readonly T[], fits: (item: T) => boolean): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (fits(sorted[middle] as T)) high = middle;
    else low = middle + 1;
  }
  return low;
}
