import { holderOf } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import { FairOrder } from '../../shared/fair-order.js';
import { type BoundsOf, noBounds } from '../access/client-bounds.js';
import { FullQueue } from './full-queue.js';
import { type Positions, PositionTeller } from './position-teller.js';
import { type PlaceLimits, QueuePlaces, type WaitingClient } from './queue-places.js';
import { Ticket } from './ticket.js';

export interface SlotLimits extends PlaceLimits {
  /** Jobs that may hold a slot at once. */
  readonly maxActive: number;
}

/**
 * Owns the slots and the jobs that wait for one. Nothing else counts slots. Admission is decided at once; a slot goes to
 * the next job in fair order at the very moment one is released. The jobs of a client that has as many slots as it may
 * wait, and others go before them. All names that the holder of a key speaks for count as the holder.
 */
export class SlotQueue {
  readonly limits: SlotLimits;
  readonly #boundsOf: BoundsOf;
  readonly #places: QueuePlaces;
  readonly #full: FullQueue;
  readonly #teller: PositionTeller;
  readonly #order = new FairOrder<Ticket>();
  /** Admitted and not in order yet: they wait for something else first. */
  readonly #parked = new Set<Ticket>();
  readonly #idleWaiters: (() => void)[] = [];
  #onChange: () => void = () => {};
  #active = 0;
  /** Slots by holder, without those who have none. */
  readonly #running = new Map<string, number>();

  constructor(limits: SlotLimits, clock: Clock, boundsOf: BoundsOf = noBounds) {
    this.limits = limits;
    this.#teller = new PositionTeller(clock, () => this.#positions());
    this.#boundsOf = boundsOf;
    this.#places = new QueuePlaces(limits, boundsOf, clock);
    this.#full = new FullQueue(clock);
  }

  get active(): number {
    return this.#active;
  }

  get waiting(): number {
    return this.#order.size + this.#parked.size;
  }

  /** Jobs that wait, by client; those who have none are left out. */
  get waitingByClient(): ReadonlyMap<string, number> {
    return this.#places.counts;
  }

  /** The same, with since when each client waits. */
  get waitingClients(): WaitingClient[] {
    return this.#places.clients;
  }

  /** Since when the queue has been full, milliseconds since the epoch; null where it is not, or not for long enough. */
  get fullSince(): number | null {
    return this.#full.since;
  }

  /** Jobs refused because the queue was full, since the start. */
  get refused(): number {
    return this.#places.refused.full;
  }

  /** Jobs refused because their client had as much of the queue as it may, since the start. */
  get refusedByBound(): number {
    return this.#places.refused.bound;
  }

  /** `listener` is called when a job has come or gone. There is one listener. */
  onChange(listener: () => void): void {
    this.#onChange = listener;
  }

  /** The tickets in fair order, in the order in which they are to get a slot. */
  next(count: number): Ticket[] {
    const order = this.#order[Symbol.iterator]();
    return Array.from({ length: Math.min(count, this.#order.size) }, () => order.next().value as Ticket);
  }

  /** Whether a job of this client would get a slot at once. */
  hasSlotFor(client: string): boolean {
    return this.#mayRun(client);
  }

  /** Whether this client has as many slots as it may. */
  isAtLimit(client: string): boolean {
    return this.#isAtItsLimit(client);
  }

  /** A slot now, a place in the queue, or `concurrency_limited`. `bytes` is the size of the job's text. */
  admit(client: string, bytes: number): Ticket {
    const ticket = new Ticket(client, bytes, this);
    this.#places.saw(client);
    this.#resume(client);
    if (!this.#mayRun(client)) this.#takePlace(ticket);
    this.lineUp(ticket);
    return ticket;
  }

  /** A place in the queue for a job that must not run before `ticket.unpark()`. */
  park(client: string, bytes: number): Ticket {
    const ticket = new Ticket(client, bytes, this);
    this.#places.saw(client);
    this.#takePlace(ticket);
    return ticket;
  }

  /** Resolves when no job runs or waits; at once where that is so. */
  async idle(): Promise<void> {
    if (this.#active + this.waiting === 0) return;
    await new Promise<void>((resolve) => this.#idleWaiters.push(resolve));
  }

  /** For tickets alone, as the two below. A parked one stands behind all that are in order. */
  positionOf(ticket: Ticket): number {
    return this.#parked.has(ticket) ? this.#order.size + 1 : this.#order.positionOf(ticket.client, ticket);
  }

  /** A slot now, or the end of its client's line. */
  lineUp(ticket: Ticket): void {
    this.#resume(ticket.client);
    if (this.#mayRun(ticket.client)) {
      this.#leaveQueue(ticket);
      this.#grant(ticket);
    } else if (this.#parked.delete(ticket)) this.#order.add(ticket.client, ticket);
    this.#changed();
  }

  /** A ticket gives back its slot, or its place in the queue. */
  leave(ticket: Ticket, heldSlot: boolean): void {
    if (heldSlot) this.#release(ticket.client);
    else this.#leaveQueue(ticket);
    this.#changed();
    if (this.#active + this.waiting === 0) for (const resolve of this.#idleWaiters.splice(0)) resolve();
  }

  /** A queue without places can not be full. */
  #lookForPlace(): void {
    const { maxWaiting } = this.limits;
    this.#full.changed(maxWaiting === 0 || this.#places.taken < maxWaiting);
  }

  #changed(): void {
    this.#lookForPlace();
    this.#onChange();
    if (this.waiting > 0) this.#teller.changed();
  }

  *#positions(): Generator<[ticket: Ticket, position: number]> & Positions {
    let position = 0;
    for (const ticket of this.#order) yield [ticket, ++position];
    for (const ticket of this.#parked) yield [ticket, this.#order.size + 1];
  }

  #takePlace(ticket: Ticket): void {
    this.#places.take(ticket);
    this.#lookForPlace();
    this.#parked.add(ticket);
  }

  #leaveQueue(ticket: Ticket): void {
    this.#places.leave(ticket);
    if (!this.#parked.delete(ticket)) this.#order.remove(ticket.client, ticket);
  }

  /** Nobody who could have the slot waits where this is so: a slot that is free goes to them at once. */
  #mayRun(client: string): boolean {
    return this.#active < this.limits.maxActive && !this.#isAtItsLimit(client);
  }

  #isAtItsLimit(client: string): boolean {
    const holder = holderOf(client);
    return (this.#running.get(holder) ?? 0) >= this.#boundsOf(holder).maxRunning;
  }

  #grant(ticket: Ticket): void {
    const { client } = ticket;
    this.#active++;
    const holder = holderOf(client);
    this.#running.set(holder, (this.#running.get(holder) ?? 0) + 1);
    if (this.#isAtItsLimit(client)) this.#order.hold(client);
    ticket.grant();
  }

  #release(client: string): void {
    this.#active--;
    const holder = holderOf(client);
    const left = (this.#running.get(holder) ?? 0) - 1;
    if (left > 0) this.#running.set(holder, left);
    else this.#running.delete(holder);
    this.#resume(client);
    this.#grantNext();
  }

  /** Its limit may have been raised: then those who wait already go first. */
  #resume(client: string): void {
    if (this.#isAtItsLimit(client) || !this.#order.resume(client)) return;
    this.#grantNext();
    this.#changed();
  }

  /** More than one where a limit has been raised meanwhile; none of a client whose limit has been lowered. */
  #grantNext(): void {
    while (this.#active < this.limits.maxActive) {
      const next = this.#order.takeNext((client) => this.#isAtItsLimit(client));
      if (next === null) return;
      this.#places.leave(next);
      this.#grant(next);
    }
  }
}
