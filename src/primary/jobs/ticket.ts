import { orAborted, withResolvers } from '../../shared/async/promises.js';
import type { RelayError } from '../../shared/errors.js';
import type { PlaceHolder } from './queue-places.js';

/** The queue, as its tickets know it. */
interface TicketIssuer {
  positionOf(ticket: Ticket): number;
  /** A slot now, or the end of its client's line. */
  lineUp(ticket: Ticket): void;
  /** A ticket gives back its slot, or its place in the queue. */
  leave(ticket: Ticket, heldSlot: boolean): void;
}

/** The right to a slot, or to a place in the queue, until it is released. */
export class Ticket implements PlaceHolder {
  readonly client: string;
  readonly bytes: number;
  /** Called with its position from time to time while it waits. Returns whether that was news to somebody. */
  onPosition: (position: number) => boolean = () => false;
  readonly #queue: TicketIssuer;
  readonly #granted = withResolvers();
  #state: 'waiting' | 'granted' | 'released' = 'waiting';

  constructor(client: string, bytes: number, queue: TicketIssuer) {
    this.client = client;
    this.bytes = bytes;
    this.#queue = queue;
  }

  /** Called by the queue alone. */
  grant(): void {
    this.#state = 'granted';
    this.#granted.resolve();
  }

  /** Called by the queue alone: `granted` rejects with the reason. */
  giveWay(reason: RelayError): void {
    this.#granted.promise.catch(() => {}); // nobody may be listening yet
    this.#granted.reject(reason);
    this.release();
  }

  get isWaiting(): boolean {
    return this.#state === 'waiting';
  }

  /** Slots that must become free until it has one, as things stand. */
  get position(): number {
    return this.#queue.positionOf(this);
  }

  /** For a parked one: takes a slot, or its place in the order. Does nothing otherwise. */
  unpark(): void {
    if (this.isWaiting) this.#queue.lineUp(this);
  }

  /** Resolves when the slot is granted. Rejects with the signal's reason; its place in the queue is free at once. */
  async granted(signal: AbortSignal): Promise<void> {
    const leave = () => this.isWaiting && this.release();
    signal.addEventListener('abort', leave, { once: true });
    try {
      await orAborted(this.#granted.promise, signal);
    } finally {
      signal.removeEventListener('abort', leave);
      if (signal.aborted) leave(); // it may have been aborted before
    }
  }

  /** Gives back the slot, or the place in the queue. */
  release(): void {
    if (this.#state === 'released') return;
    const heldSlot = this.#state === 'granted';
    this.#state = 'released';
    this.#queue.leave(this, heldSlot);
  }
}
