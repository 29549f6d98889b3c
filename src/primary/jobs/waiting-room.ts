import { type ClientText, holderOf, spendersOf } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import { FairQueue } from '../../shared/fairness/fair-queue.js';
import type { WaitReason } from '../../shared/job.js';
import { type BoundsOf, noBounds } from '../access/clients.js';
import { FullQueue, type PlaceLimits, QueuePlaces } from './queue-places.js';
import {
  type BackgroundEntrant,
  type Entrant,
  type JobGate,
  PositionReports,
  type Positions,
  type RoomCli,
  Ticket,
} from './ticket.js';

/** Wait after which a background job ranks as a caller. */
export const patienceMs = 60_000;

export interface RoomLimits extends PlaceLimits {
  /** Maximum number of jobs with a slot. */
  readonly maxActive: number;
  /** Maximum number of running jobs for each CLI that has a limit, by its name. */
  readonly cliLimits: Readonly<Record<string, number>>;
}

/** Client with waiting jobs, and the reason why the oldest one waits. */
export interface ClientInRoom {
  readonly client: ClientText;
  readonly count: number;
  /** Arrival of the oldest job, in milliseconds since the epoch. */
  readonly oldestAt: number;
  readonly reason: WaitReason;
}

/** Number of running jobs by name, or by login: another login with the same name has none of them. */
class RunningCounts<K> {
  readonly #counts = new Map<K, number>();

  countOf(key: K): number {
    return this.#counts.get(key) ?? 0;
  }

  changeCount(key: K, change: 1 | -1): void {
    const count = this.countOf(key) + change;
    if (count > 0) this.#counts.set(key, count);
    else this.#counts.delete(key);
  }
}

/**
 * Owns the slots and the queue; no other part counts slots or lets a job wait. Admission is decided at once. A slot
 * goes to the next job in fair order whose client, gates and CLI are below their limits, and that no earlier turn or open
 * circuit blocks; before all, to a job of a gate with fewer running jobs than its minimum. Callers go before background jobs and patient callers. After a minute, or at once if its client
 * follows it, such a job ranks as a caller: the oldest of each client, one at a time. A key holder and its sub-clients count as one client.
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
  /** All waiting background jobs and patient callers, whatever their rank. */
  readonly #behind = new Set<Ticket>();
  /** Those of them that rank as callers, by holder. */
  readonly #promoted = new Map<string, Ticket>();
  readonly #idleWaiters: (() => void)[] = [];
  readonly #onChange: () => void;
  readonly #running = new Set<Ticket>();
  readonly #runningOf = new RunningCounts<ClientText>();
  readonly #runningAt = new RunningCounts<string | RoomCli['loginKey']>();
  readonly #runningAtGate = new RunningCounts<string>();
  /** Gates with a minimum at which jobs wait, and the number of these jobs, by name. */
  readonly #waitingAtGate = new Map<string, { readonly gate: JobGate; count: number }>();

  /** `onChange` is called when a job has entered or left. */
  constructor(limits: RoomLimits, clock: Clock, boundsOf: BoundsOf = noBounds, onChange = () => {}) {
    this.#onChange = onChange;
    this.limits = limits;
    this.#clock = clock;
    this.#boundsOf = boundsOf;
    this.#places = new QueuePlaces<Ticket>(limits, boundsOf, clock);
    this.#full = new FullQueue(clock);
    this.#reports = new PositionReports(clock, () => this.#positions());
    const weightOf = (holder: ClientText) => boundsOf(holder).weight;
    const rules = { weightOf, mustWait: (holder: ClientText) => this.#isAtLimit(holder) };
    this.#callers = new FairQueue<Ticket>(rules);
    this.#background = new FairQueue<Ticket>(rules);
  }

  get active(): number {
    return this.#running.size;
  }

  /** Number of waiting jobs of callers. */
  get waiting(): number {
    return this.#places.taken;
  }

  /** Number of waiting jobs of callers, by client; clients without any are omitted. */
  get waitingByClient(): ReadonlyMap<ClientText, number> {
    return this.#places.counts;
  }

  /** Clients with waiting jobs of callers, since when each waits, and why. */
  get waitingClients(): ClientInRoom[] {
    return this.#places.clients.flatMap(({ client, count, oldest }) =>
      oldest === undefined ? [] : [{ client, count, oldestAt: oldest.at, reason: this.reasonOf(oldest.member) }],
    );
  }

  /** Returns the number of running jobs at the gate with this name. */
  runningAtGate(name: string): number {
    return this.#runningAtGate.countOf(name);
  }

  /** Returns the number of waiting jobs at the gate with this name, which has a minimum. */
  waitingAtGate(name: string): number {
    return this.#waitingAtGate.get(name)?.count ?? 0;
  }

  /** Waiting background jobs. */
  get waitingInBackground(): readonly Ticket[] {
    return [...this.#behind].filter(({ background }) => background !== null);
  }

  /** Whether any waiting background job ranks as a caller. */
  get hasPromoted(): boolean {
    return this.#promoted.size > 0;
  }

  /**
   * Time since when the queue has been full, in milliseconds since the epoch; null if it is not full, or only for a
   * short time.
   */
  get fullSince(): number | null {
    return this.#full.since;
  }

  /** Jobs refused because the queue was full, since the start. */
  get refused(): number {
    return this.#places.refused.full;
  }

  /** Jobs refused because their client was at its queue limit, since the start. */
  get refusedByBound(): number {
    return this.#places.refused.bound;
  }

  /** Returns the tickets that will get the next slots, in order, without blocked ones. */
  upcoming(count: number): Ticket[] {
    const found: Ticket[] = [];
    for (const ticket of this.#callers) {
      if (found.length >= count) break;
      if (ticket.entrant.heldBy() === null) found.push(ticket);
    }
    return found;
  }

  /** Whether this job would get a slot at once. */
  hasSlotFor(entrant: Pick<Entrant, 'client' | 'cli' | 'gates'>): boolean {
    return this.#closedGate(entrant) === null;
  }

  /** Grants a slot or a place in the queue, or throws `concurrency_limited`. */
  admit(entrant: Entrant): Ticket {
    this.#places.recordRequest(entrant.client, entrant.share);
    this.#grantNext(); // a limit may have been raised: waiting jobs go first
    const ticket = new Ticket(entrant, null, this, this.#clock.now());
    if (this.#mayGo(ticket) && this.hasSlotFor(entrant)) this.#grant(ticket);
    else {
      this.#places.takePlace(ticket);
      this.#countWaiting(ticket, 1);
      if (entrant.rank === 'patient') {
        this.#behind.add(ticket);
        this.#background.add(ticket);
      } else this.#callers.add(ticket);
    }
    this.#changed();
    return ticket;
  }

  /**
   * Grants a slot, or a place behind all callers without a time limit. The limits of background jobs are checked
   * elsewhere.
   */
  enter(entrant: BackgroundEntrant): Ticket {
    const ticket = new Ticket(entrant, entrant, this, this.#clock.now());
    this.#behind.add(ticket);
    this.#countWaiting(ticket, 1);
    if (entrant.isFirst) this.#background.addFirst(ticket);
    else this.#background.add(ticket);
    if (this.#isPatient(ticket)) this.#promote(ticket);
    this.next();
    return ticket;
  }

  /** Whether a job with a slot would be within the limits of another CLI or account. */
  hasRoomAt({ entrant }: Ticket, cli: RoomCli): boolean {
    this.#countRunning(entrant, -1);
    const isOpen = this.#isOpen(cli);
    this.#countRunning(entrant, 1);
    return isOpen;
  }

  /** Moves a job to another CLI or account, with its slot or its place in the queue. */
  move(ticket: Ticket, cli: RoomCli): void {
    const before = ticket.entrant;
    ticket.entrant = { ...before, cli };
    if (!ticket.isWaiting) {
      this.#countRunning(before, -1);
      this.#countRunning(ticket.entrant, 1);
    }
    this.next();
  }

  /** Grants free slots. Must be called when the reason why a job waits may have ended. */
  next(): void {
    this.#grantNext();
    this.#changed();
  }

  /** Reads the rules of all jobs again, because groups have changed. No waiting job loses its place. */
  readRules(): void {
    if (this.active + this.#callers.size + this.#background.size === 0) return;
    for (const ticket of this.#running) {
      this.#countAtGates(ticket.entrant, -1);
      ticket.entrant = { ...ticket.entrant, ...ticket.entrant.readRules?.() };
      this.#countAtGates(ticket.entrant, 1);
    }
    for (const queue of [this.#callers, this.#background])
      for (const ticket of [...queue]) this.#readRulesOf(ticket, queue);
    this.next();
  }

  /** Reads the rules of a waiting job again. With another share, it goes behind the jobs of its client that have this share. */
  #readRulesOf(ticket: Ticket, queue: FairQueue<Ticket>): void {
    const rules = ticket.entrant.readRules?.() ?? { share: ticket.share };
    const replace = () => {
      this.#countWaiting(ticket, -1);
      ticket.entrant = { ...ticket.entrant, ...rules };
      this.#countWaiting(ticket, 1);
    };
    if (rules.share?.name === ticket.share?.name) return replace();
    queue.remove(ticket);
    this.#places.changeShare(ticket, replace);
    queue.add(ticket);
  }

  /** Runs every second: time passes, and some blockers end without an event. */
  check(): void {
    this.#promoteOldest();
    this.next();
  }

  /** Resolves when no job runs and no caller waits. */
  async untilIdle(): Promise<void> {
    if (this.active + this.waiting === 0) return;
    await new Promise<void>((resolve) => this.#idleWaiters.push(resolve));
  }

  /** Returns the position of a ticket. Only for tickets, like `reasonOf` and `leave`. */
  positionOf(ticket: Ticket): number {
    const amongCallers = this.#callers.positionOf(ticket);
    return amongCallers > 0 ? amongCallers : this.#callers.size + this.#background.positionOf(ticket);
  }

  reasonOf({ entrant }: Ticket): WaitReason {
    return entrant.heldBy() ?? this.#closedGate(entrant) ?? 'slot';
  }

  leave(ticket: Ticket, heldSlot: boolean): void {
    if (heldSlot) this.#release(ticket);
    else this.#withdraw(ticket);
    this.next();
    if (this.active + this.waiting === 0) for (const resolve of this.#idleWaiters.splice(0)) resolve();
  }

  /** Reports a change. A queue without places cannot be full. */
  #changed(): void {
    const { maxWaiting } = this.limits;
    this.#full.changed(maxWaiting === 0 || this.waiting < maxWaiting);
    this.#onChange();
    if (this.waiting > 0 || this.#callers.size > 0) this.#reports.changed();
  }

  *#positions(): Generator<[ticket: Ticket, position: number]> & Positions {
    let position = 0;
    for (const ticket of this.#callers) yield [ticket, ++position];
    if (this.waiting > 0)
      for (const ticket of this.#background) {
        position++;
        if (ticket.background === null) yield [ticket, position];
      }
  }

  /** Returns the limit that blocks jobs like this one, of its client, its CLI or account, or the slots; null if none blocks it. */
  #closedGate(entrant: Pick<Entrant, 'client' | 'cli' | 'gates'>): WaitReason | null {
    if (this.#isAtLimit(entrant.client)) return 'client';
    const full = this.#findFullGate(entrant);
    if (full !== undefined) return full.reason ?? 'client';
    if (!this.#isOpen(entrant.cli)) return 'cli';
    return this.active < this.limits.maxActive ? null : 'slot';
  }

  /** Whether a client, its key or the person of the key has as many running jobs as it may have. */
  #isAtLimit(client: ClientText): boolean {
    return spendersOf(client).some((each) => this.#runningOf.countOf(each) >= this.#boundsOf(each).maxRunning);
  }

  #findFullGate({ gates = [] }: Pick<Entrant, 'gates'>): JobGate | undefined {
    return gates.find(
      (gate) => this.#runningAtGate.countOf(gate.name) >= (gate.maxRunning() ?? Number.POSITIVE_INFINITY),
    );
  }

  #isBelowMinimum(gate: JobGate): boolean {
    return this.#runningAtGate.countOf(gate.name) < (gate.minRunning?.() ?? 0);
  }

  #isOpen({ name, account, loginKey }: RoomCli): boolean {
    const { cliLimits } = this.limits;
    if (account.maxRunning !== null && this.#runningAt.countOf(loginKey) >= account.maxRunning) return false;
    return !Object.hasOwn(cliLimits, name) || this.#runningAt.countOf(name) < (cliLimits[name] ?? 0);
  }

  /** Called for the first ticket of a lane, when a slot is free and its client is below its limit. */
  readonly #mayGo = ({ entrant }: Ticket): boolean =>
    this.#isOpen(entrant.cli) &&
    entrant.heldBy() === null &&
    !this.#isAtLimit(entrant.client) &&
    this.#findFullGate(entrant) === undefined;

  readonly #isPreferred = (ticket: Ticket): boolean =>
    ticket.entrant.gates?.some((gate) => this.#isBelowMinimum(gate)) === true && this.#mayGo(ticket);

  /** Takes the next job of a gate below its minimum. The queue is searched only if such a job waits. */
  #takeFirst(): Ticket | null {
    const isWaiting = [...this.#waitingAtGate.values()].some(({ gate }) => this.#isBelowMinimum(gate));
    if (!isWaiting) return null;
    return this.#callers.takeNext(this.#isPreferred) ?? this.#background.takeNext(this.#isPreferred);
  }

  #grantNext(): void {
    while (this.active < this.limits.maxActive) {
      const next = this.#takeFirst() ?? this.#callers.takeNext(this.#mayGo) ?? this.#background.takeNext(this.#mayGo);
      if (next === null) return;
      this.#withdraw(next);
      this.#grant(next);
    }
  }

  #grant(ticket: Ticket): void {
    const { client } = ticket.entrant;
    this.#running.add(ticket);
    this.#countOf(client, 1);
    this.#countRunning(ticket.entrant, 1);
    this.#countAtGates(ticket.entrant, 1);
    if (this.#isAtLimit(holderOf(client))) this.#toEnd(ticket);
    ticket.grant();
  }

  #release(ticket: Ticket): void {
    const { client, entrant } = ticket;
    if (this.#isAtLimit(holderOf(client))) this.#toEnd(ticket);
    this.#running.delete(ticket);
    this.#countOf(client, -1);
    this.#countRunning(entrant, -1);
    this.#countAtGates(entrant, -1);
  }

  #countAtGates({ gates = [] }: Entrant, change: 1 | -1): void {
    for (const { name } of gates) this.#runningAtGate.changeCount(name, change);
  }

  /** Counts a job that begins or ceases to wait at its gates with a minimum. */
  #countWaiting({ entrant: { gates = [] } }: Ticket, change: 1 | -1): void {
    for (const gate of gates) {
      if (gate.minRunning === undefined) continue;
      const waiting = this.#waitingAtGate.get(gate.name) ?? { gate, count: 0 };
      waiting.count += change;
      if (waiting.count > 0) this.#waitingAtGate.set(gate.name, waiting);
      else this.#waitingAtGate.delete(gate.name);
    }
  }

  #countOf(client: ClientText, change: 1 | -1): void {
    for (const each of spendersOf(client)) this.#runningOf.changeCount(each, change);
  }

  #countRunning({ cli }: Entrant, change: 1 | -1): void {
    this.#runningAt.changeCount(cli.name, change);
    this.#runningAt.changeCount(cli.loginKey, change);
  }

  /** Moves the client of a job, which is at its slot limit, behind the other clients. */
  #toEnd(ticket: Ticket): void {
    this.#callers.toEnd(ticket);
    this.#background.toEnd(ticket);
  }

  /** Removes a ticket from the queue. */
  #withdraw(ticket: Ticket): void {
    this.#callers.remove(ticket);
    this.#background.remove(ticket);
    this.#places.leave(ticket);
    this.#behind.delete(ticket);
    this.#countWaiting(ticket, -1);
    const holder = holderOf(ticket.client);
    if (this.#promoted.get(holder) === ticket) this.#promoted.delete(holder);
  }

  /** Promotes the longest waiting background job of each client that has no promoted job. */
  #promoteOldest(): void {
    const oldest = new Map<string, Ticket>();
    for (const ticket of this.#behind) {
      if (!this.#isPatient(ticket)) continue;
      const holder = holderOf(ticket.client);
      const known = oldest.get(holder);
      if (known === undefined || sinceOf(ticket) < sinceOf(known)) oldest.set(holder, ticket);
    }
    for (const ticket of oldest.values()) this.#promote(ticket);
  }

  /** Whether a background job may rank as a caller. */
  #isPatient(ticket: Ticket): boolean {
    const isDue = ticket.background?.isFollowed === true || sinceOf(ticket) <= this.#clock.now() - patienceMs;
    if (!isDue || this.#promoted.has(holderOf(ticket.client))) return false;
    return ticket.entrant.heldBy() === null;
  }

  #promote(ticket: Ticket): void {
    this.#background.remove(ticket);
    this.#callers.add(ticket);
    this.#promoted.set(holderOf(ticket.client), ticket);
  }
}

function sinceOf({ background, arrivedAt }: Ticket): number {
  return background?.since ?? arrivedAt;
}
