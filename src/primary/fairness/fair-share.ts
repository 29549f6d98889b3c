import { type ClientText, holderOf } from '../../shared/client.js';
import { LinkedList, type Node } from '../../shared/fairness/linked-list.js';

/** An item that uses a part of a shared resource. Client and bytes may not change while it is counted. */
export interface Sharer {
  readonly client: ClientText;
  readonly bytes: number;
}

/** Number of items, and their total bytes. */
export interface Amount {
  readonly count: number;
  readonly bytes: number;
}

/** Whether one more item of this size stays within a limit. A first item does, whatever its size. */
export function fits(used: Amount, bytes: number, limit: Amount): boolean {
  return used.count < limit.count && (used.count === 0 || used.bytes + bytes <= limit.bytes);
}

/** Largest number of quarters for one client. The other clients always have one quarter. */
const maxQuarters = 3;

/** Returns the share of one client of a shared resource: a quarter per unit of weight, rounded up, at least 1. */
export function quarterOf(whole: number, weight = 1): number {
  return Math.max(1, Math.ceil((whole * Math.min(weight, maxQuarters)) / 4));
}

/** An item with the time of its arrival, in milliseconds since the epoch. */
interface Arrived<M> {
  readonly member: M;
  readonly at: number;
}

/** Items of one client, in order of arrival. */
export class ClientShare<M extends Sharer> implements Amount {
  readonly client: ClientText;
  readonly #items = new LinkedList<Arrived<M>>();
  #count = 0;
  #bytes = 0;

  constructor(client: ClientText) {
    this.client = client;
  }

  get count(): number {
    return this.#count;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get oldest(): Arrived<M> | undefined {
    return this.#items.first;
  }

  /** Iterates in order of arrival. */
  *[Symbol.iterator](): Generator<M> {
    for (const { member } of this.#items) yield member;
  }

  /** Adds an item. Only for `FairShare`, like `removeMember`. */
  append(item: Arrived<M>): Node<Arrived<M>> {
    this.#count++;
    this.#bytes += item.member.bytes;
    return this.#items.append(item);
  }

  removeMember(node: Node<Arrived<M>>): void {
    this.#count--;
    this.#bytes -= node.value.member.bytes;
    this.#items.remove(node);
  }
}

/** Items of one key holder and its sub-clients. Most clients have no sub-clients. */
class HolderShare<M extends Sharer> {
  readonly total: ClientShare<M>;
  readonly clients = new Map<string, ClientShare<M>>();

  constructor(holder: ClientText) {
    this.total = new ClientShare<M>(holder);
  }
}

interface ItemNodes<M> {
  readonly inClient: Node<Arrived<M>>;
  readonly inHolder: Node<Arrived<M>>;
}

/**
 * Counts the part of a shared resource that each client uses. A key holder and all its sub-clients count as one client.
 */
export class FairShare<M extends Sharer> implements Amount {
  readonly #holders = new Map<string, HolderShare<M>>();
  readonly #nodes = new Map<M, ItemNodes<M>>();
  #bytes = 0;

  get count(): number {
    return this.#nodes.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  has(member: M): boolean {
    return this.#nodes.has(member);
  }

  /** Whether the holder with this text has items. */
  hasHolder(holder: string): boolean {
    return this.#holders.has(holder);
  }

  /** Clients that have items; each sub-client is listed separately. */
  get clients(): ClientShare<M>[] {
    return [...this.#holders.values()].flatMap(({ clients }) => [...clients.values()]);
  }

  /** Returns the items of one client, without the items of its sub-clients or of its key holder. */
  clientShare(client: ClientText): ClientShare<M> {
    return this.#holders.get(holderOf(client))?.clients.get(client) ?? new ClientShare<M>(client);
  }

  /** Returns what the key holder of this client uses, including all its sub-clients. */
  holderShare(client: ClientText): Amount {
    return this.#holders.get(holderOf(client))?.total ?? new ClientShare<M>(client);
  }

  /** Adds an item. `at` is the time in milliseconds since the epoch. */
  addMember(member: M, at: number): void {
    const { client, bytes } = member;
    const holder = this.#holders.get(holderOf(client)) ?? new HolderShare<M>(holderOf(client));
    const share = holder.clients.get(client) ?? new ClientShare<M>(client);
    this.#holders.set(holderOf(client), holder);
    holder.clients.set(client, share);
    const item = { member, at };
    this.#nodes.set(member, { inClient: share.append(item), inHolder: holder.total.append(item) });
    this.#bytes += bytes;
  }

  /** Removes an item. Returns whether it was counted. */
  removeMember(member: M): boolean {
    const { client, bytes } = member;
    const [nodes, holder] = [this.#nodes.get(member), this.#holders.get(holderOf(client))];
    const share = holder?.clients.get(client);
    if (nodes === undefined || holder === undefined || share === undefined) return false;
    this.#nodes.delete(member);
    share.removeMember(nodes.inClient);
    holder.total.removeMember(nodes.inHolder);
    this.#bytes -= bytes;
    if (share.count === 0) holder.clients.delete(client);
    if (holder.total.count === 0) this.#holders.delete(holderOf(client));
    return true;
  }

  /**
   * Returns the item to evict if space is needed: the oldest item of the key holder with the most bytes; with
   * `byUser`, of its sub-client with the most bytes. No client can evict the items of a client with fewer bytes.
   */
  pickVictim({ byUser }: { readonly byUser: boolean }): M | undefined {
    const holder = largest(this.#holders.values(), ({ total }) => total.bytes);
    const share = byUser ? largest(holder?.clients.values() ?? [], ({ bytes }) => bytes) : holder?.total;
    return share?.oldest?.member;
  }
}

/** Returns the first of the items with the highest size. */
function largest<T>(items: Iterable<T>, sizeOf: (item: T) => number): T | undefined {
  let found: T | undefined;
  for (const item of items) if (found === undefined || sizeOf(item) > sizeOf(found)) found = item;
  return found;
}
