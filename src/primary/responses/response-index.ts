import { FairShare, type Sharer } from '../fairness/fair-share.js';
import type {
  PutVerdict,
  ResponseCounts,
  ResponseKey,
  ResponseLimits,
  WrittenResponse,
} from '../store/contract/responses.js';

/** A response without its texts. */
export interface ResponseHead extends ResponseKey, Pick<WrittenResponse, 'bytes' | 'weight'> {
  readonly previous: string | null;
  readonly createdAt: number;
  /** It is only there for those that follow it. */
  readonly isRemoved?: boolean;
}

/** As a sharer, its `bytes` are its weight. */
interface ResponseEntry extends Sharer {
  readonly id: string;
  readonly size: number;
  readonly previous: ResponseEntry | null;
  /** How many follow it. */
  followers: number;
  isRemoved: boolean;
  /** When it was created, or the last one that continues its text. */
  at: number;
}

/**
 * Owns which responses are stored, and which have to go. In the order of use each response stands behind all that follow
 * it. So the first one of a client is followed by none, and its removal cuts no text.
 */
export class ResponseIndex {
  readonly #entries = new Map<string, ResponseEntry>();
  readonly #shares = new FairShare<ResponseEntry>();
  #bytes = 0;

  get counts(): ResponseCounts {
    return { count: this.#entries.size, bytes: this.#bytes };
  }

  has(key: ResponseKey, after = Number.NEGATIVE_INFINITY): boolean {
    return this.#find(key, after) !== null;
  }

  /** The response and all before it, to the beginning of the text; empty if there is none. */
  chain(key: ResponseKey, after: number): string[] {
    const entry = this.#find(key, after);
    if (entry !== null) this.#use(entry, entry.at);
    return [...upwards(entry)].map(({ id }) => id);
  }

  /** Also returns those that have to go for it. */
  put(head: ResponseHead, limits: ResponseLimits): { readonly verdict: PutVerdict; readonly gone: string[] } {
    const previous = head.previous === null ? null : this.#find({ ...head, id: head.previous });
    if (head.previous !== null && previous === null) return { verdict: 'gone', gone: [] };
    const entry = this.#add(head);
    const gone: string[] = [];
    const isBeyond = () => this.#entries.size > limits.maxResponses || this.#bytes > limits.maxBytes;
    while (isBeyond()) {
      const oldest = this.#shares.greediest?.oldest;
      if (oldest === undefined || oldest === entry) {
        this.#drop(entry);
        return { verdict: 'full', gone };
      }
      gone.push(...this.#dropLast(oldest));
    }
    return { verdict: 'stored', gone };
  }

  /** Adds what is stored already, each response after the one that it follows. */
  restore(heads: Iterable<ResponseHead>): void {
    for (const head of heads) this.#add(head);
  }

  /** null if there is none. `gone` is empty if others follow it. */
  remove(key: ResponseKey): string[] | null {
    const entry = this.#find(key);
    if (entry === null) return null;
    entry.isRemoved = true;
    return entry.followers > 0 ? [] : this.#dropLast(entry);
  }

  /** Removes and returns those of this client. */
  removeOf(client: string): string[] {
    const own = [...this.#shares.of(client)].filter((entry) => entry.client === client);
    for (const entry of own) this.#drop(entry);
    return own.map(({ id }) => id);
  }

  /** Removes and returns those that were last continued by that time. With each go all that follow it. */
  expire(after: number): string[] {
    const expired = [...this.#entries.values()].filter(({ at }) => at <= after);
    for (const entry of expired) this.#drop(entry);
    return expired.map(({ id }) => id);
  }

  #find({ id, client }: ResponseKey, after = Number.NEGATIVE_INFINITY): ResponseEntry | null {
    const entry = this.#entries.get(id);
    return entry?.client === client && !entry.isRemoved && entry.at > after ? entry : null;
  }

  #add({ id, client, previous, createdAt, bytes, weight, isRemoved = false }: ResponseHead): ResponseEntry {
    const before = this.#entries.get(previous ?? '') ?? null;
    const at = Math.max(createdAt, before?.at ?? createdAt); // the clock may have been set back
    const entry: ResponseEntry = {
      ...{ id, client, isRemoved, size: bytes, bytes: weight },
      ...{ previous: before, followers: 0, at },
    };
    if (entry.previous !== null) entry.previous.followers++;
    this.#entries.set(id, entry);
    this.#bytes += bytes;
    this.#use(entry, at);
    return entry;
  }

  #use(entry: ResponseEntry, at: number): void {
    for (const each of upwards(entry)) {
      each.at = Math.max(each.at, at);
      this.#shares.remove(each);
      this.#shares.add(each, each.at);
    }
  }

  /** Drops one that none follows, and with it the removed ones that were there for it alone. */
  #dropLast(last: ResponseEntry): string[] {
    const gone: string[] = [];
    for (const entry of upwards(last)) {
      if (entry.followers > 0 || (entry !== last && !entry.isRemoved)) break;
      this.#drop(entry);
      gone.push(entry.id);
    }
    return gone;
  }

  #drop(entry: ResponseEntry): void {
    this.#entries.delete(entry.id);
    this.#shares.remove(entry);
    this.#bytes -= entry.size;
    if (entry.previous !== null) entry.previous.followers--;
  }
}

/** It, the one that it follows, and so on. */
function* upwards(entry: ResponseEntry | null): Generator<ResponseEntry> {
  for (let each = entry; each !== null; each = each.previous) yield each;
}
