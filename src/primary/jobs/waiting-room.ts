import { holderOf } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import type { WaitReason } from '../../shared/job.js';
import { type BoundsOf, noBounds } from '../access/clients.js';
import { FairQueue } from '../fairness/fair-queue.js';
import type { NameShare } from '../fairness/fair-share.js';
import { FullQueue, type PlaceLimits, QueuePlaces } from './queue-places.js';
import { type BackgroundEntrant, type Entrant, PositionReports, type Positions, Ticket } from './ticket.js';

/** After this time a background job ranks as a caller. */
export const patienceMs = 60_000;

export interface RoomLimits extends PlaceLimits {
  /** Jobs that may hold a slot at once. */
  readonly maxActive: number;
  /** The same for each CLI with a limit of its own, by its name. */
  readonly cliLimits: Readonly<Record<string, number>>;
}

/** A client whose jobs wait, and why the oldest one does. */
export interface ClientInRoom extends Pick<NameShare<Ticket>, 'client' | 'count' | 'oldestAt'> {
  readonly reason: WaitReason;
}

/** How many jobs run, by name. A name without any has no entry. */
class RunningCounts {
  readonly #counts = new Map<string, number>();

  of(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  add(name: string, change: 1 | -1): void {
    const count = this.of(name) + change;
    if (count > 0) this.#counts.set(name, count);
    else this.#counts.delete(name);
  }
}

/**
 * Owns the slots and all jobs that wait for one. Nothing else counts slots, and nothing else lets a job wait. Admission
 * is decided at once. A slot goes to the next job in fair order for which every gate is open: its client and its CLI
 * are below their limits, and nothing of its own holds it. Jobs of callers go before those in the background. A
 * background job that has waited for a minute ranks as a caller: the oldest of each client, one at a time. All names
 * that the holder of a key speaks for count as the holder.
 */
export class WaitingRoom {
  readonly limits: RoomLimits;
  readonly #boundsOf: BoundsOf;
  readonly #clock: Clock;
  readonly #places: QueuePlaces<Ticket>;
  readonly #full: FullQueue;
  readonly #reports: PositionReports;
  readonly #callers: FairQueue<Ticket>;
  readonly #background: FairQueue<Ticket>;
  /** All background jobs that wait, whatever their rank. */
  readonly #inBackground = new Set<Ticket>();
  /** Those of them that rank as callers, by holder. */
  readonly #promoted = new Map<string, Ticket>();
  readonly #idleWaiters: (() => void)[] = [];
  readonly #onChange: () => void;
  #active = 0;
  readonly #runningOf = new RunningCounts();
  readonly #runningAt = new RunningCounts();

  /** `onChange` is called when a job has come or gone. */
  constructor(limits: RoomLimits, clock: Clock, boundsOf: BoundsOf = noBounds, onChange = () => {}) {
    this.#onChange = onChange;
    this.limits = limits;
    this.#clock = clock;
    this.#boundsOf = boundsOf;
    this.#places = new QueuePlaces<Ticket>(limits, boundsOf, clock);
    this.#full = new FullQueue(clock);
    this.#reports = new PositionReports(clock, () => this.#positions());
    const weightOf = (holder: string) => boundsOf(holder).weight;
    const rules = { weightOf, mustWait: (holder: string) => this.#isAtLimit(holder) };
    this.#callers = new FairQueue<Ticket>(rules);
    this.#background = new FairQueue<Ticket>(rules);
  }

  get active(): number {
    return this.#active;
  }

  /** Jobs of callers that wait. */
  get waiting(): number {
    return this.#places.taken;
  }

  /** Jobs of callers that wait, by client; those who have none are left out. */
  get waitingByClient(): ReadonlyMap<string, number> {
    return this.#places.counts;
  }

  /** The same, with since when each client waits, and why. */
  get waitingClients(): ClientInRoom[] {
    return this.#places.clients.map(({ client, count, oldestAt, oldest }) => {
      return { client, count, oldestAt, reason: this.reasonOf(oldest) };
    });
  }

  /** Background jobs that wait. */
  get waitingInBackground(): readonly Ticket[] {
    return [...this.#inBackground];
  }

  /** Whether a background job waits that ranks as a caller. */
  get hasPromoted(): boolean {
    return this.#promoted.size > 0;
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

  /** The tickets that are to get a slot next, in that order, without those that something else holds. */
  upcoming(count: number): Ticket[] {
    const found: Ticket[] = [];
    for (const ticket of this.#callers) {
      if (found.length >= count) break;
      if (ticket.entrant.heldBy() === null) found.push(ticket);
    }
    return found;
  }

  /** Whether this job would get a slot at once. */
  hasSlotFor(entrant: Pick<Entrant, 'client' | 'cli'>): boolean {
    return this.#closedGate(entrant) === null;
  }

  /** A slot now, a place in the room, or `concurrency_limited`. */
  admit(entrant: Entrant): Ticket {
    this.#places.saw(entrant.client);
    this.#grantNext(); // a limit may have been raised: those who wait go first
    const ticket = new Ticket(entrant, null, this);
    if (this.#mayGo(ticket) && this.hasSlotFor(entrant)) this.#grant(ticket);
    else {
      this.#places.take(ticket);
      this.#callers.add(ticket);
    }
    this.#changed();
    return ticket;
  }

  /** A slot now, or a place behind all callers, for as long as it takes. Whether there is room for it is not asked here. */
  enter(entrant: BackgroundEntrant): Ticket {
    const ticket = new Ticket(entrant, entrant, this);
    this.#inBackground.add(ticket);
    if (entrant.isFirst) this.#background.addFirst(ticket);
    else this.#background.add(ticket);
    if (this.#isPatient(ticket)) this.#promote(ticket);
    this.next();
    return ticket;
  }

  /** Grants what can be granted. Called when what held a job may have gone. */
  next(): void {
    this.#grantNext();
    this.#changed();
  }

  /** Called every second: time passes, and not all that holds a job says when it has gone. */
  check(): void {
    this.#promoteOldest();
    this.next();
  }

  /** Resolves when no job runs and none of a caller waits; at once where that is so. */
  async idle(): Promise<void> {
    if (this.#active + this.waiting === 0) return;
    await new Promise<void>((resolve) => this.#idleWaiters.push(resolve));
  }

  /** For tickets alone, as the two below. */
  positionOf(ticket: Ticket): number {
    const amongCallers = this.#callers.positionOf(ticket);
    return amongCallers > 0 ? amongCallers : this.#callers.size + this.#background.positionOf(ticket);
  }

  reasonOf({ entrant }: Ticket): WaitReason {
    return entrant.heldBy() ?? this.#closedGate(entrant) ?? 'slot';
  }

  leave(ticket: Ticket, heldSlot: boolean): void {
    if (heldSlot) this.#release(ticket.entrant);
    else this.#withdraw(ticket);
    this.next();
    if (this.#active + this.waiting === 0) for (const resolve of this.#idleWaiters.splice(0)) resolve();
  }

  /** A queue without places can not be full. */
  #changed(): void {
    const { maxWaiting } = this.limits;
    this.#full.changed(maxWaiting === 0 || this.waiting < maxWaiting);
    this.#onChange();
    if (this.#callers.size > 0) this.#reports.changed();
  }

  *#positions(): Generator<[ticket: Ticket, position: number]> & Positions {
    let position = 0;
    for (const ticket of this.#callers) yield [ticket, ++position];
  }

  /** Which of the gates that concern more than this job is closed for it. */
  #closedGate({ client, cli }: Pick<Entrant, 'client' | 'cli'>): WaitReason | null {
    if (this.#isAtLimit(client)) return 'client';
    if (!this.#isOpen(cli)) return 'cli';
    return this.#active < this.limits.maxActive ? null : 'slot';
  }

  #isAtLimit(client: string): boolean {
    const holder = holderOf(client);
    return this.#runningOf.of(holder) >= this.#boundsOf(holder).maxRunning;
  }

  #isOpen(cli: string): boolean {
    const limit = this.limits.cliLimits[cli];
    return limit === undefined || this.#runningAt.of(cli) < limit;
  }

  /** Asked of one that is next in its lane, where a slot is free and its client may have it. */
  readonly #mayGo = ({ entrant }: Ticket): boolean => this.#isOpen(entrant.cli) && entrant.heldBy() === null;

  #grantNext(): void {
    while (this.#active < this.limits.maxActive) {
      const next = this.#callers.takeNext(this.#mayGo) ?? this.#background.takeNext(this.#mayGo);
      if (next === null) return;
      this.#withdraw(next);
      this.#grant(next);
    }
  }

  #grant(ticket: Ticket): void {
    const { client, cli } = ticket.entrant;
    this.#active++;
    this.#runningOf.add(holderOf(client), 1);
    this.#runningAt.add(cli, 1);
    if (this.#isAtLimit(client)) this.#toEnd(client);
    ticket.grant();
  }

  #release({ client, cli }: Entrant): void {
    if (this.#isAtLimit(client)) this.#toEnd(client);
    this.#active--;
    this.#runningOf.add(holderOf(client), -1);
    this.#runningAt.add(cli, -1);
  }

  /** A client that had all the slots it may comes back behind the others. */
  #toEnd(client: string): void {
    this.#callers.toEnd(client);
    this.#background.toEnd(client);
  }

  /** It waits no longer. */
  #withdraw(ticket: Ticket): void {
    this.#callers.remove(ticket);
    this.#background.remove(ticket);
    this.#places.leave(ticket);
    this.#inBackground.delete(ticket);
    const holder = holderOf(ticket.client);
    if (this.#promoted.get(holder) === ticket) this.#promoted.delete(holder);
  }

  /** Of each client the one that has waited longest, where none of its jobs ranks as a caller yet. */
  #promoteOldest(): void {
    const oldest = new Map<string, Ticket>();
    for (const ticket of this.#inBackground) {
      if (!this.#isPatient(ticket)) continue;
      const holder = holderOf(ticket.client);
      const known = oldest.get(holder);
      if (known === undefined || sinceOf(ticket) < sinceOf(known)) oldest.set(holder, ticket);
    }
    for (const ticket of oldest.values()) this.#promote(ticket);
  }

  /** Whether it may rank as a caller. */
  #isPatient(ticket: Ticket): boolean {
    if (sinceOf(ticket) > this.#clock.now() - patienceMs || this.#promoted.has(holderOf(ticket.client))) return false;
    return ticket.entrant.heldBy() === null;
  }

  #promote(ticket: Ticket): void {
    this.#background.remove(ticket);
    this.#callers.add(ticket);
    this.#promoted.set(holderOf(ticket.client), ticket);
  }
}

function sinceOf({ background }: Ticket): number {
  return background?.since ?? Number.POSITIVE_INFINITY;
}
