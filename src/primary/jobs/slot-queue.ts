import { RelayError } from '../../shared/errors.js';
import { FairOrder, type Place } from './fair-order.js';

export interface SlotLimits {
  /** Jobs that may hold a slot at once. */
  readonly maxActive: number;
  /** Jobs that may wait for one. */
  readonly maxWaiting: number;
  /** Bytes of text that waiting jobs may hold together. */
  readonly maxWaitingBytes: number;
}

/**
 * Owns the slots and the jobs that wait for one. Nothing else counts slots.
 * Admission is decided at once; a slot goes to the next in fair order at the very moment one is released.
 */
export class SlotQueue {
  readonly limits: SlotLimits;
  readonly #waiting = new FairOrder<Ticket>();
  readonly #idleWaiters: (() => void)[] = [];
  /** Admitted and not yet in order: they wait for something else first. */
  readonly #parked = new Set<Ticket>();
  /** Called once each at the next change of the order. */
  #onChange: (() => void)[] = [];
  #waitingBytes = 0;
  #active = 0;
  #refused = 0;

  constructor(limits: SlotLimits) {
    this.limits = limits;
  }

  get active(): number {
    return this.#active;
  }

  get waiting(): number {
    return this.#waiting.size + this.#parked.size;
  }

  /** Jobs refused because the queue was full, since the start. */
  get refused(): number {
    return this.#refused;
  }

  /** A slot now, a place in the queue, or `concurrency_limited`. `bytes` is the size of the job's text. */
  admit(client: string, bytes: number): Ticket {
    const ticket = new Ticket(client, bytes, this);
    if (this.#active >= this.limits.maxActive) this.#takePlace(ticket);
    this.lineUp(ticket);
    return ticket;
  }

  /** A place in the queue for a job that must not run before `ticket.unpark()`. */
  park(client: string, bytes: number): Ticket {
    const ticket = new Ticket(client, bytes, this);
    this.#takePlace(ticket);
    return ticket;
  }

  /** Resolves when no job runs or waits; at once where that is so. */
  async idle(): Promise<void> {
    if (this.#active + this.waiting === 0) return;
    await new Promise<void>((resolve) => this.#idleWaiters.push(resolve));
  }

  /** Slots to be granted until this waiting ticket has one; a parked ticket stands behind all that are in order. */
  positionOf(ticket: Ticket): number {
    return ticket.place === null ? this.#waiting.size + 1 : this.#waiting.positionOf(ticket.place);
  }

  /** Resolves when somebody has come or gone. */
  changed(): Promise<void> {
    return new Promise((resolve) => this.#onChange.push(resolve));
  }

  /** For tickets alone, as `leave` is: a slot now, or the end of its client's line. */
  lineUp(ticket: Ticket): void {
    if (this.#active < this.limits.maxActive) {
      this.#leaveQueue(ticket);
      this.#grant(ticket);
    } else if (this.#parked.delete(ticket)) ticket.place = this.#waiting.add(ticket.client, ticket);
    this.#announceChange();
  }

  /** A ticket gives back its slot, or its place in the queue. */
  leave(ticket: Ticket, heldSlot: boolean): void {
    if (ticket.place !== null) this.#waiting.remove(ticket.place);
    if (heldSlot) this.#release();
    else this.#leaveQueue(ticket);
    this.#announceChange();
    if (this.#active + this.waiting === 0) for (const resolve of this.#idleWaiters.splice(0)) resolve();
  }

  #announceChange(): void {
    for (const resolve of this.#onChange.splice(0)) resolve();
  }

  #takePlace(ticket: Ticket): void {
    const bytes = this.#waitingBytes + ticket.bytes;
    if (this.waiting >= this.limits.maxWaiting || bytes > this.limits.maxWaitingBytes) {
      this.#refused++;
      throw new RelayError('concurrency_limited', 'all slots are taken and the queue is full', {
        retryAfterSeconds: 1,
      });
    }
    this.#parked.add(ticket);
    this.#waitingBytes = bytes;
  }

  #leaveQueue(ticket: Ticket): void {
    if (ticket.place === null && !this.#parked.delete(ticket)) return;
    ticket.place = null;
    this.#waitingBytes -= ticket.bytes;
  }

  #grant(ticket: Ticket): void {
    this.#active++;
    ticket.grant();
  }

  #release(): void {
    this.#active--;
    const next = this.#waiting.takeNext();
    if (next === null) return;
    this.#leaveQueue(next);
    this.#grant(next);
  }
}

/** The right to a slot, or to a place in the queue, until it is disposed. */
export class Ticket implements Disposable {
  readonly client: string;
  readonly bytes: number;
  /** Where it stands in the order; null while it is parked, and once it holds a slot. Written by the queue alone. */
  place: Place<Ticket> | null = null;
  readonly #queue: SlotQueue;
  #state: 'waiting' | 'granted' | 'left' = 'waiting';
  #wake: (() => void) | undefined;

  constructor(client: string, bytes: number, queue: SlotQueue) {
    this.client = client;
    this.bytes = bytes;
    this.#queue = queue;
  }

  /** Called by the queue alone. */
  grant(): void {
    this.#state = 'granted';
    this.#wake?.();
  }

  /** Slots to be granted until it has one, as things stand. */
  get position(): number {
    return this.#queue.positionOf(this);
  }

  /** For a parked one: takes a slot, or its place in the order. Later calls, and calls on others, do nothing. */
  unpark(): void {
    if (this.#state === 'waiting' && this.place === null) this.#queue.lineUp(this);
  }

  /** Resolves when the slot is granted; rejects with the signal's reason, and the place in the queue is free at once. */
  async granted(signal: AbortSignal): Promise<void> {
    if (this.#state === 'granted') return signal.throwIfAborted();
    await new Promise<void>((resolve, reject) => {
      const abort = () => {
        this[Symbol.dispose]();
        reject(signal.reason);
      };
      this.#wake = () => {
        signal.removeEventListener('abort', abort);
        resolve();
      };
      if (signal.aborted) abort();
      else signal.addEventListener('abort', abort, { once: true });
    });
  }

  /** The position, again whenever it changes, until the slot is granted; throws the signal's reason. */
  async *positions(signal: AbortSignal): AsyncGenerator<number> {
    let told = 0;
    const granted = this.granted(signal);
    granted.catch(() => {}); // thrown below, where it is awaited
    while (this.#state === 'waiting') {
      const changed = this.#queue.changed(); // from before the look: what changes while the listener is slow counts
      const { position } = this;
      if (position !== told) yield position;
      told = position;
      await Promise.race([granted, changed]);
    }
    await granted;
  }

  /** Releases the slot, or leaves the queue. */
  [Symbol.dispose](): void {
    if (this.#state === 'left') return;
    const heldSlot = this.#state === 'granted';
    this.#state = 'left';
    this.#queue.leave(this, heldSlot);
  }
}
