import { holderOf } from '../../shared/client.js';
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

/** What the holder of one API key has, for all clients it speaks for, or what any other client has. */
interface Share {
  /** By name, oldest first. */
  readonly entries: Map<string, AnswerEntry>;
  bytes: number;
}

/**
 * Owns which answers are kept, and how much each client has of them. Where one has to go, it is the oldest of whoever has
 * the most: so nobody can push out the answers of those who have less.
 */
export class AnswerShares {
  readonly #maxBytes: number;
  readonly #shares = new Map<string, Share>();
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Returns those that have to go for it. */
  add(entry: AnswerEntry): AnswerEntry[] {
    this.remove(entry);
    const holder = holderOf(entry.client);
    const share = this.#shares.get(holder) ?? { entries: new Map(), bytes: 0 };
    this.#shares.set(holder, share);
    share.entries.set(nameOfKey(entry), entry);
    this.#grow(share, sizeOfAnswer(entry));
    return [...this.#beyond()];
  }

  remove(key: ClientKey): void {
    const holder = holderOf(key.client);
    const share = this.#shares.get(holder);
    const entry = share?.entries.get(nameOfKey(key));
    if (share === undefined || entry === undefined) return;
    share.entries.delete(nameOfKey(key));
    this.#grow(share, -sizeOfAnswer(entry));
    if (share.entries.size === 0) this.#shares.delete(holder);
  }

  /** Removes and returns those of this client. */
  removeOf(client: string): AnswerEntry[] {
    const entries = this.#shares.get(holderOf(client))?.entries.values() ?? [];
    const own = [...entries].filter((entry) => entry.client === client);
    for (const entry of own) this.remove(entry);
    return own;
  }

  /** Removes and returns those that are too old by now. */
  expire(now: number): AnswerEntry[] {
    const expired = [...this.#shares.values()].flatMap(({ entries }) => [...expiredOf(entries, now)]);
    for (const entry of expired) this.remove(entry);
    return expired;
  }

  *#beyond(): Generator<AnswerEntry> {
    while (this.#bytes > this.#maxBytes) {
      const largest = [...this.#shares.values()].reduce((most, share) => (share.bytes > most.bytes ? share : most));
      const [oldest] = largest.entries.values();
      if (oldest === undefined) return;
      this.remove(oldest);
      yield oldest;
    }
  }

  #grow(share: Share, bytes: number): void {
    share.bytes += bytes;
    this.#bytes += bytes;
  }
}

export function isExpired({ recordedAt }: Pick<AnswerEntry, 'recordedAt'>, now: number): boolean {
  return recordedAt + answerTtlMs <= now;
}

function* expiredOf(entries: Share['entries'], now: number): Generator<AnswerEntry> {
  for (const entry of entries.values()) {
    if (!isExpired(entry, now)) return;
    yield entry;
  }
}

/** What it counts as. */
export function sizeOfAnswer({ client, key, bodyBytes }: Omit<AnswerEntry, 'recordedAt'>): number {
  return bodyBytes + client.length + key.length + overheadBytes;
}
