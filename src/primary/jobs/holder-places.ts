import { LinkedList, type Node } from '../fairness/linked-list.js';
import { Sightings } from '../limits/sightings.js';

/** One that waits, as far as its place goes. */
export interface Waiter {
  readonly client: string;
  /** Of its text. */
  readonly bytes: number;
}

/** A client that waits: how many jobs it has waiting, and when the first of them came, milliseconds since the epoch. */
export interface WaitingClient<W> {
  readonly client: string;
  readonly count: number;
  readonly oldestAt: number;
  readonly oldest: W;
}

/** Places, and bytes of text in them. */
export interface Amount {
  readonly count: number;
  readonly bytes: number;
}

/** A place that is taken. */
interface Place<W> {
  readonly waiter: W;
  /** Counts up with each. */
  readonly number: number;
  /** Milliseconds since the epoch. */
  readonly takenAt: number;
}

/** What one name holds. */
interface Holding<W> {
  /** In order of arrival. */
  readonly places: LinkedList<Place<W>>;
  count: number;
  bytes: number;
}

/** Owns the places that one holder has in the queue, by the names that it speaks for: most clients have one, their own. */
export class HolderPlaces<W extends Waiter> {
  readonly #byName = new Map<string, Holding<W>>();
  readonly #nodes = new Map<W, Node<Place<W>>>();
  readonly #sightings = new Sightings();
  readonly #holder: string;
  #hasNames = false;
  #bytes = 0;

  constructor(holder: string) {
    this.#holder = holder;
  }

  /** Whether it has ever spoken for another one than itself. */
  get hasNames(): boolean {
    return this.#hasNames;
  }

  get count(): number {
    return this.#nodes.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** What each name has, and since when it waits, milliseconds since the epoch. */
  get names(): WaitingClient<W>[] {
    return [...this.#byName].flatMap(([client, { places, count }]) => {
      const [oldest] = places;
      return oldest === undefined ? [] : [{ client, count, oldestAt: oldest.takenAt, oldest: oldest.waiter }];
    });
  }

  /** A name has asked for a job, whatever becomes of it. */
  saw(client: string, nowMs: number): void {
    this.#sightings.saw(client, nowMs);
    this.#hasNames ||= client !== this.#holder;
  }

  amountOf(client: string): Amount {
    return this.#byName.get(client) ?? { count: 0, bytes: 0 };
  }

  /** Whether another name waits, or has asked within this time. */
  hasOthersThan(client: string, nowMs: number, withinMs: number): boolean {
    return this.count > this.amountOf(client).count || this.#sightings.sinceOthersThan(client, nowMs) < withinMs;
  }

  take(waiter: W, number: number, takenAt: number): void {
    const { client, bytes } = waiter;
    const holding = this.#byName.get(client) ?? { places: new LinkedList(), count: 0, bytes: 0 };
    this.#byName.set(client, holding);
    this.#nodes.set(waiter, holding.places.append({ waiter, number, takenAt }));
    holding.count++;
    holding.bytes += bytes;
    this.#bytes += bytes;
  }

  /** Does nothing where it has no place any more. Returns whether it had one. */
  leave(waiter: W): boolean {
    const [node, holding] = [this.#nodes.get(waiter), this.#byName.get(waiter.client)];
    if (node === undefined || holding === undefined) return false;
    this.#nodes.delete(waiter);
    holding.places.remove(node);
    holding.count--;
    holding.bytes -= waiter.bytes;
    this.#bytes -= waiter.bytes;
    if (holding.count === 0) this.#byName.delete(waiter.client);
    return true;
  }

  /**
   * Who would give way first: again and again the newest of the name that has most, of those that `mayGive` lets. It is
   * asked before each with what the name has left then. Nothing may change meanwhile.
   */
  *newest(mayGive: (client: string, left: Amount) => boolean = () => true): Generator<W> {
    const names = [...this.#byName].map(([client, { places, count, bytes }]) => {
      const backwards = places.backwards();
      return { client, count, bytes, backwards, next: backwards.next() };
    });
    for (;;) {
      const giving = names.filter((name) => name.next.done !== true && mayGive(name.client, name));
      const [name] = giving.sort((a, b) => b.count - a.count || numberOf(b.next) - numberOf(a.next));
      if (name === undefined || name.next.done === true) return;
      const { waiter } = name.next.value;
      yield waiter;
      name.count--;
      name.bytes -= waiter.bytes;
      name.next = name.backwards.next();
    }
  }
}

function numberOf(next: IteratorResult<{ readonly number: number }, void>): number {
  return next.done === true ? 0 : next.value.number;
}
