import { FairShare, type Sharer } from '../../../primary/fairness/fair-share.js';
import type { ClientText } from '../../../shared/client.js';
import { answerTtlMs, type ClientKey, nameOfKey, sizeOfAnswer } from '../contract/answers.js';

/** A recorded answer without its text. */
export interface AnswerEntry extends ClientKey {
  readonly bodyBytes: number;
  /** Time in milliseconds since the epoch. */
  readonly recordedAt: number;
}

/** A recorded answer as an item of `FairShare`. */
type SharedAnswer = AnswerEntry & Sharer;

/**
 * Owns the list of recorded answers, and the share of each client. No client can evict the answers of clients with fewer
 * bytes.
 */
export class AnswerShares {
  readonly #maxBytes: number;
  readonly #entries = new Map<string, SharedAnswer>();
  readonly #shares = new FairShare<SharedAnswer>();

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Adds an answer. Returns the answers that are evicted for it. */
  addEntry(entry: AnswerEntry): AnswerEntry[] {
    this.removeEntry(entry);
    const shared = { ...entry, bytes: sizeOfAnswer(entry) };
    this.#entries.set(nameOfKey(entry), shared);
    this.#shares.addMember(shared, entry.recordedAt);
    return [...this.#evict()];
  }

  removeEntry(key: ClientKey): void {
    const entry = this.#entries.get(nameOfKey(key));
    if (entry === undefined) return;
    this.#entries.delete(nameOfKey(key));
    this.#shares.removeMember(entry);
  }

  keysOf(client: ClientText): string[] {
    return [...this.#shares.clientShare(client)].map(({ key }) => key);
  }

  /** Removes and returns the answers of this client. */
  removeOf(client: ClientText): AnswerEntry[] {
    const removed = [...this.#shares.clientShare(client)];
    for (const entry of removed) this.removeEntry(entry);
    return removed;
  }

  /** Removes and returns the expired answers. */
  expireEntries(now: number): AnswerEntry[] {
    const expired = this.#shares.clients.flatMap((share) => [...expiredOf(share, now)]);
    for (const entry of expired) this.removeEntry(entry);
    return expired;
  }

  *#evict(): Generator<AnswerEntry> {
    while (this.#shares.bytes > this.#maxBytes) {
      const victim = this.#shares.pickVictim({ byUser: false });
      if (victim === undefined) return;
      this.removeEntry(victim);
      yield victim;
    }
  }
}

export function isExpired({ recordedAt }: Pick<AnswerEntry, 'recordedAt'>, now: number): boolean {
  return recordedAt + answerTtlMs <= now;
}

/** Yields the expired entries, which come first: entries are in order of age. */
function* expiredOf(entries: Iterable<SharedAnswer>, now: number): Generator<AnswerEntry> {
  for (const entry of entries) {
    if (!isExpired(entry, now)) return;
    yield entry;
  }
}
