import { FairShare, type Sharer } from '../../../primary/fairness/fair-share.js';
import type { ClientText } from '../../../shared/client.js';
import type {
  PutVerdict,
  ResponseCounts,
  ResponseKey,
  ResponseLimits,
  WrittenResponse,
} from '../contract/responses.js';

/** A response without its texts. */
export interface ResponseHead extends ResponseKey, Pick<WrittenResponse, 'bytes' | 'weight'> {
  readonly previous: string | null;
  readonly createdAt: number;
  /** Whether the response was removed, and exists only for its followers. */
  readonly isRemoved?: boolean;
}

/** A response in the index. For `FairShare`, `bytes` is the weight. */
interface ResponseEntry extends Sharer {
  readonly id: string;
  readonly size: number;
  readonly previous: ResponseEntry | null;
  /** Number of responses that follow directly. */
  followers: number;
  isRemoved: boolean;
  /** Time of its creation, or of the last response that continues it, in milliseconds since the epoch. */
  at: number;
}

/**
 * Owns the list of stored responses, and their eviction. In the order of use, each response is behind its followers:
 * the first one of a client has no follower, and its removal breaks no chain.
 */
export class ResponseIndex {
  readonly #entries = new Map<string, ResponseEntry>();
  readonly #shares = new FairShare<ResponseEntry>();
  #bytes = 0;

  idsOf(client: ClientText): string[] {
    return [...this.#shares.clientShare(client)].map(({ id }) => id);
  }

  /** Clients of all responses, also several times. */
  get clients(): ClientText[] {
    return [...this.#entries.values()].map(({ client }) => client);
  }

  get counts(): ResponseCounts {
    return { count: this.#entries.size, bytes: this.#bytes };
  }

  has(key: ResponseKey, after = Number.NEGATIVE_INFINITY): boolean {
    return this.#find(key, after) !== null;
  }

  /** Returns the ids of a response and all before it; empty if the client has no such response. Counts as use. */
  chain(key: ResponseKey, after: number): string[] {
    const entry = this.#find(key, after);
    if (entry !== null) this.#use(entry, entry.at);
    return [...upwards(entry)].map(({ id }) => id);
  }

  /** Adds a response. Returns the verdict, and the responses that are evicted for it. */
  put(head: ResponseHead, limits: ResponseLimits): { readonly verdict: PutVerdict; readonly evicted: string[] } {
    const previous = head.previous === null ? null : this.#find({ ...head, id: head.previous });
    if (head.previous !== null && previous === null) return { verdict: 'gone', evicted: [] };
    const entry = this.#add(head);
    const evicted: string[] = [];
    const isBeyond = () => this.#entries.size > limits.maxResponses || this.#bytes > limits.maxBytes;
    while (isBeyond()) {
      const victim = this.#shares.pickVictim({ byUser: false });
      if (victim === undefined || victim === entry) {
        this.#drop(entry);
        return { verdict: 'full', evicted };
      }
      evicted.push(...this.#dropLast(victim));
    }
    return { verdict: 'stored', evicted };
  }

  /** Adds stored responses, each after the one that it follows. */
  restoreHeads(heads: Iterable<ResponseHead>): void {
    for (const head of heads) this.#add(head);
  }

  /**
   * Removes a response. Returns the ids whose texts can be deleted, none if others follow; null if the client has no
   * such response.
   */
  removeHead(key: ResponseKey): string[] | null {
    const entry = this.#find(key);
    if (entry === null) return null;
    entry.isRemoved = true;
    return entry.followers > 0 ? [] : this.#dropLast(entry);
  }

  /** Removes and returns the responses of this client. */
  removeOf(client: ClientText): string[] {
    const removed = [...this.#shares.clientShare(client)];
    for (const entry of removed) this.#drop(entry);
    return removed.map(({ id }) => id);
  }

  /** Removes and returns the responses last continued at or before `after`, which always include their followers. */
  expireHeads(after: number): string[] {
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
      this.#shares.removeMember(each);
      this.#shares.addMember(each, each.at);
    }
  }

  /** Drops a response without followers, and the removed responses that existed only for it. */
  #dropLast(last: ResponseEntry): string[] {
    const evicted: string[] = [];
    for (const entry of upwards(last)) {
      if (entry.followers > 0 || (entry !== last && !entry.isRemoved)) break;
      this.#drop(entry);
      evicted.push(entry.id);
    }
    return evicted;
  }

  #drop(entry: ResponseEntry): void {
    this.#entries.delete(entry.id);
    this.#shares.removeMember(entry);
    this.#bytes -= entry.size;
    if (entry.previous !== null) entry.previous.followers--;
  }
}

/** Iterates from a response back to the first of its chain. */
function* upwards(entry: ResponseEntry | null): Generator<ResponseEntry> {
  for (let each = entry; each !== null; each = each.previous) yield each;
}
