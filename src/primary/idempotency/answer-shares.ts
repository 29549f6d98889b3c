import { FairShare, type Sharer } from '../fairness/fair-share.js';
import { answerTtlMs, type ClientKey, nameOfKey } from '../store/contract/answers.js';

/** All answers together. */
export const maxAnswerBytes = 64 * 1024 * 1024;

/** What an answer takes beside its body. */
const overheadBytes = 1024;

/** An answer that is kept, without its text. */
export interface AnswerEntry extends ClientKey {
  readonly bodyBytes: number;
  /** Milliseconds since the epoch. */
  readonly recordedAt: number;
}

/** One that takes its share. */
type SharedAnswer = AnswerEntry & Sharer;

/**
 * Owns which answers are stored, and how much each client has of them. If one has to go, it is the oldest of the client
 * with the most: so nobody can push out the answers of clients with less.
 */
export class AnswerShares {
  readonly #maxBytes: number;
  readonly #entries = new Map<string, SharedAnswer>();
  readonly #shares = new FairShare<SharedAnswer>();

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Returns those that have to go for it. */
  add(entry: AnswerEntry): AnswerEntry[] {
    this.remove(entry);
    const shared = { ...entry, bytes: sizeOfAnswer(entry) };
    this.#entries.set(nameOfKey(entry), shared);
    this.#shares.add(shared, entry.recordedAt);
    return [...this.#beyond()];
  }

  remove(key: ClientKey): void {
    const entry = this.#entries.get(nameOfKey(key));
    if (entry === undefined) return;
    this.#entries.delete(nameOfKey(key));
    this.#shares.remove(entry);
  }

  /** Removes and returns those of this client. */
  removeOf(client: string): AnswerEntry[] {
    const own = [...this.#shares.of(client)].filter((entry) => entry.client === client);
    for (const entry of own) this.remove(entry);
    return own;
  }

  /** Removes and returns those that are too old by now. */
  expire(now: number): AnswerEntry[] {
    const expired = [...this.#shares.holders.values()].flatMap((share) => [...expiredOf(share, now)]);
    for (const entry of expired) this.remove(entry);
    return expired;
  }

  *#beyond(): Generator<AnswerEntry> {
    while (this.#shares.bytes > this.#maxBytes) {
      const oldest = this.#shares.greediest?.oldest;
      if (oldest === undefined) return;
      this.remove(oldest);
      yield oldest;
    }
  }
}

export function isExpired({ recordedAt }: Pick<AnswerEntry, 'recordedAt'>, now: number): boolean {
  return recordedAt + answerTtlMs <= now;
}

/** They come in the order of their age. */
function* expiredOf(entries: Iterable<SharedAnswer>, now: number): Generator<AnswerEntry> {
  for (const entry of entries) {
    if (!isExpired(entry, now)) return;
    yield entry;
  }
}

/** What it counts as. */
export function sizeOfAnswer({ client, key, bodyBytes }: Omit<AnswerEntry, 'recordedAt'>): number {
  return bodyBytes + client.length + key.length + overheadBytes;
}
