import { orAborted, withResolvers } from '../../shared/async.js';
import { type Clock, delay } from '../../shared/clock.js';
import type { RelayError } from '../../shared/errors.js';
import type { WaitReason } from '../../shared/job.js';
import type { Member } from '../fairness/fair-queue.js';
import type { PlaceHolder } from './queue-places.js';

/** What a job brings into the waiting room. */
export interface Entrant extends Member {
  /** Of its texts and images. */
  readonly bytes: number;
  /** The name of its CLI. */
  readonly cli: string;
  /** Why it may have no slot, whatever else is free; null where it may. */
  heldBy(): WaitReason | null;
}

/** One that waits for as long as it takes. */
export interface BackgroundEntrant extends Entrant {
  /** When it was accepted, milliseconds since the epoch. */
  readonly since: number;
  /** It goes before the others of its client. */
  readonly isFirst: boolean;
  /** Called at the very moment it gets its slot. */
  granted(): void;
}

/** The room, as its tickets know it. */
interface TicketIssuer {
  positionOf(ticket: Ticket): number;
  reasonOf(ticket: Ticket): WaitReason;
  /** A ticket gives back its slot, or its place in the room. */
  leave(ticket: Ticket, heldSlot: boolean): void;
}

/** The right to a slot, or to a place in the waiting room, until it is released. */
export class Ticket implements PlaceHolder, Member {
  readonly entrant: Entrant;
  /** Null for the job of a caller. */
  readonly background: BackgroundEntrant | null;
  /** Called with its position from time to time while it waits. Returns whether that was news to its reader. */
  onPosition: (position: number, reason: WaitReason) => boolean = () => false;
  /** When its reader got the last position, monotonic. */
  positionMs = Number.NEGATIVE_INFINITY;
  readonly #room: TicketIssuer;
  readonly #granted = withResolvers();
  #state: 'waiting' | 'granted' | 'released' = 'waiting';

  constructor(entrant: Entrant, background: BackgroundEntrant | null, room: TicketIssuer) {
    this.entrant = entrant;
    this.background = background;
    this.#room = room;
  }

  get client(): string {
    return this.entrant.client;
  }

  get lane(): string {
    return this.entrant.lane;
  }

  get bytes(): number {
    return this.entrant.bytes;
  }

  /** Called by the room alone. */
  grant(): void {
    this.#state = 'granted';
    this.background?.granted();
    this.#granted.resolve();
  }

  /** Called by the room alone: `granted` rejects with the reason. */
  giveWay(reason: RelayError): void {
    if (!this.isWaiting) return;
    this.#granted.promise.catch(() => {}); // nobody may be listening yet
    this.#granted.reject(reason);
    this.release();
  }

  get isWaiting(): boolean {
    return this.#state === 'waiting';
  }

  /** Slots that must become free until it has one, as things stand. */
  get position(): number {
    return this.#room.positionOf(this);
  }

  /** Why it waits. */
  get reason(): WaitReason {
    return this.#room.reasonOf(this);
  }

  /** Resolves when the slot is granted. Rejects with the signal's reason; its place in the room is free at once. */
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

  /** Gives back the slot, or the place in the room. */
  release(): void {
    if (this.#state === 'released') return;
    const heldSlot = this.#state === 'granted';
    this.#state = 'released';
    this.#room.leave(this, heldSlot);
  }
}

/** All who wait, each with its position. Is left alone for a while now and then, and goes on with what is there by then. */
export type Positions = Iterator<readonly [ticket: Ticket, position: number]>;

/** Time before a pass and between two slices of one, milliseconds. */
const pauseMs = 50;
/** No reader gets positions more often. */
const leastMs = 1000;
/** Each report is a message to a worker and a write to a client, and everything else waits for those of one slice. */
const maxReports = 32;
/** To ask one without news costs little, but not nothing. */
const maxAsked = 2000;

/**
 * Owns when the readers of those who wait get their positions: in passes over all of them, cut into slices. A long queue
 * takes longer than a short one, and costs no more. A change during a pass makes for another one.
 */
export class PositionReports {
  readonly #clock: Clock;
  readonly #positions: () => Positions;
  #hasNews = false;
  /** When the first reader may get its next position, of those that were passed over; else infinite. */
  #dueMs = Number.POSITIVE_INFINITY;
  #isReporting = false;

  constructor(clock: Clock, positions: () => Positions) {
    this.#clock = clock;
    this.#positions = positions;
  }

  changed(): void {
    this.#hasNews = true;
    if (!this.#isReporting) void this.#report();
  }

  async #report(): Promise<void> {
    this.#isReporting = true;
    while (this.#hasNews) {
      await delay(this.#clock, this.#pauseMs);
      this.#hasNews = false;
      this.#dueMs = Number.POSITIVE_INFINITY;
      const pass = this.#positions();
      while (!this.#reportSlice(pass)) await delay(this.#clock, pauseMs);
    }
    this.#isReporting = false;
  }

  get #pauseMs(): number {
    const untilDueMs = this.#dueMs - this.#clock.monotonicMs();
    return Number.isFinite(untilDueMs) ? Math.max(pauseMs, untilDueMs) : pauseMs;
  }

  /** Returns whether it was the last one. */
  #reportSlice(pass: Positions): boolean {
    const nowMs = this.#clock.monotonicMs();
    let reports = 0;
    for (let asked = 0; asked < maxAsked && reports < maxReports; asked++) {
      const next = pass.next();
      if (next.done === true) return true;
      const [ticket, position] = next.value;
      if (nowMs - ticket.positionMs < leastMs) this.#reportLater(ticket.positionMs + leastMs);
      else if (ticket.onPosition(position, ticket.reason)) {
        ticket.positionMs = nowMs;
        reports++;
      }
    }
    return false;
  }

  #reportLater(dueMs: number): void {
    this.#hasNews = true;
    this.#dueMs = Math.min(this.#dueMs, dueMs);
  }
}
