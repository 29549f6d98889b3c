import { deepEqual, equal, ok } from 'node:assert/strict';
import { array, constant, constantFrom, nat, oneof, record, tuple } from 'fast-check';
import type { ClientBounds } from '../../../src/primary/access/clients.js';
import type { Entrant, Ticket } from '../../../src/primary/jobs/ticket.js';
import { WaitingRoom } from '../../../src/primary/jobs/waiting-room.js';
import type { ClientText } from '../../../src/shared/client.js';
import { RelayError } from '../../../src/shared/errors.js';
import { loginOf } from '../../support/agents/logins.js';
import { FakeClock } from '../../support/basics/fake-clock.js';
import { type Player, pick, playAll } from '../../support/basics/properties.js';
import { entrant } from '../../support/jobs/test-room.js';

const limits = { maxActive: 3, maxWaiting: 6, maxWaitingBytes: 60, cliLimits: { small: 1 } };
/** Places and bytes of one client's share: a quarter of the queue. At most as many places are reserved. */
const ownPlaces = 2;
const ownBytes = 15;
const activeMs = 600_000;

const bounds: Readonly<Record<string, ClientBounds>> = {
  'user 1': { maxRunning: 1, maxQueued: null, weight: 1 },
  'user 2': { maxRunning: 2, maxQueued: 1, weight: 1 },
  'user 3': { maxRunning: 1, maxQueued: 4, weight: 1 },
};
const noBounds: ClientBounds = { maxRunning: Number.POSITIVE_INFINITY, maxQueued: null, weight: 1 };

const boundsOf = (client: ClientText) => bounds[client] ?? noBounds;

/** Share that two of the clients divide. */
const groupShare = { name: 'group', weight: () => 1 };
const isInGroup = (client: ClientText) => client === 'user 3' || client === 'user 4';
const shareOf = (client: ClientText) => (isInGroup(client) ? groupShare : null);
/** Returns what takes turns with others: a client, or the group of a client. */
const topOf = (client: ClientText) => shareOf(client)?.name ?? client;

const clis = ['main', 'small'] as const;
/** Age at which a background job ranks as a caller. */
const patienceMs = 60_000;

type Rank = 'caller' | 'background' | 'promoted';

/** Expected state of one ticket. */
interface ExpectedTicket {
  readonly ticket: Ticket;
  readonly client: ClientText;
  readonly bytes: number;
  readonly cli: string;
  readonly caller: AbortController;
  readonly sinceMs: number;
  /** How `granted` settled: at most one entry. */
  readonly results: string[];
  rank: Rank;
  /** Whether the ticket is not blocked by an earlier turn of its conversation. */
  isReady: boolean;
  state: 'waiting' | 'active' | 'done';
}

/** Waiting tickets by client; the clients are in the order of their turns. */
type Lines = { readonly client: ClientText; readonly members: ExpectedTicket[] }[];
/** The same by client or group. */
type Tops = { readonly top: string; readonly lines: Lines }[];

/**
 * Model of the waiting room with plain lists. Everything that can be derived from the tickets is computed on each call.
 */
class ExpectedRoom {
  readonly all: ExpectedTicket[] = [];
  #callers: Tops = [];
  #background: Tops = [];
  /** Time of the last request, or of the end of the last wait, by client. */
  readonly #lastActiveMs = new Map<ClientText, number>();
  #nowMs = 0;
  readonly refused = { full: 0, bound: 0 };

  /** Must be called with the time before each step. */
  setTime(nowMs: number): void {
    this.#nowMs = nowMs;
  }

  recordRequest(client: ClientText): void {
    this.#lastActiveMs.set(client, this.#nowMs);
  }

  /** Waiting callers, in order of arrival. */
  get waiting(): ExpectedTicket[] {
    return this.in('waiting').filter(({ rank }) => rank === 'caller');
  }

  waitingOf(client: ClientText): ExpectedTicket[] {
    return this.waiting.filter((entry) => entry.client === client);
  }

  in(state: ExpectedTicket['state']): ExpectedTicket[] {
    return this.all.filter((entry) => entry.state === state);
  }

  /** Returns the reason to refuse a job; null to admit it. */
  refusalReason(client: ClientText, bytes: number): 'full' | 'bound' | null {
    const queue = { room: [limits.maxWaiting, limits.maxWaitingBytes], used: this.waiting } as const;
    const top = this.#divide(queue, topOf, client, bytes);
    if (top.isBeyond) return 'bound';
    const inGroup = { room: top.room, used: this.#waitingOf(topOf, client) };
    const member = isInGroup(client) ? this.#divide(inGroup, (each) => each, client, bytes) : null;
    if (member?.isBeyond) return 'bound';
    const { maxWaiting, maxWaitingBytes } = limits;
    if (this.waiting.length >= maxWaiting || bytesOf(this.waiting) + bytes > maxWaitingBytes) return 'full';
    if (top.takesReserved) return 'full';
    return member?.takesReserved ? 'bound' : null;
  }

  #waitingOf(nameOf: (client: ClientText) => string, client: ClientText): ExpectedTicket[] {
    return this.waiting.filter((entry) => nameOf(entry.client) === nameOf(client));
  }

  /** Applies the rule for places to one level. */
  #divide({ room, used }: ExpectedLevel, nameOf: (client: ClientText) => string, client: ClientText, bytes: number) {
    const own = this.#waitingOf(nameOf, client);
    const isInside = (other: ClientText) => nameOf === topOf || isInGroup(other);
    const recent = [...this.#lastActiveMs].filter(([other, ms]) => isInside(other) && this.#nowMs - ms < activeMs);
    const others = new Set(recent.map(([other]) => nameOf(other)).filter((name) => name !== nameOf(client)));
    const reserving = [...others].filter((name) => !used.some((entry) => nameOf(entry.client) === name)).length;
    const isAlone = used.length === own.length && reserving === 0;
    const [places, size] = room.map((whole) => Math.max(1, Math.ceil(whole / 4))) as [number, number];
    const maxQueued = nameOf(client) === client ? boundsOf(client).maxQueued : null;
    const share = [maxQueued ?? (isAlone ? Infinity : places), isAlone ? Infinity : size] as const;
    const fits = (jobs: number, sum: number, [maxJobs, maxSum]: readonly [number, number]) =>
      jobs < maxJobs && (jobs === 0 || sum + bytes <= maxSum);
    const reserved = own.length === 0 ? 0 : Math.min(reserving, places);
    const reservedBytes = (reserved * limits.maxWaitingBytes) / limits.maxWaiting;
    return {
      isBeyond: !fits(own.length, bytesOf(own), share),
      takesReserved: reserved > 0 && !fits(used.length + reserved, bytesOf(used) + reservedBytes, room),
      room: [Math.min(room[0], share[0]), Math.min(room[1], share[1])] as const,
    };
  }

  mayRun({ client, cli, isReady }: Pick<ExpectedTicket, 'client' | 'cli' | 'isReady'>): boolean {
    const isFree = this.in('active').length < limits.maxActive;
    return isFree && isReady && !this.isAtItsLimit(client) && !(cli === 'small' && this.#runningAt(cli) >= 1);
  }

  isAtItsLimit(client: ClientText): boolean {
    return this.in('active').filter((entry) => entry.client === client).length >= boundsOf(client).maxRunning;
  }

  #runningAt(cli: string): number {
    return this.in('active').filter((entry) => entry.cli === cli).length;
  }

  enter(entry: ExpectedTicket): void {
    if (entry.rank === 'caller' && this.mayRun(entry)) return this.#grant(entry);
    this.#lineUp(entry, entry.rank === 'caller' ? this.#callers : this.#background);
    this.grantAll();
  }

  #lineUp(entry: ExpectedTicket, tops: Tops): void {
    const name = topOf(entry.client);
    if (!tops.some(({ top }) => top === name)) tops.push({ top: name, lines: [] });
    const lines = tops.find(({ top }) => top === name)?.lines ?? [];
    const line = lines.find(({ client }) => client === entry.client);
    if (line === undefined) lines.push({ client: entry.client, members: [entry] });
    else line.members.push(entry);
  }

  /**
   * Models the check of each second: the oldest due background job of each client ranks as a caller, one at a time per
   * client.
   */
  check(nowMs: number): void {
    const waiting = this.in('waiting');
    const old = waiting.filter(
      (entry) => entry.rank === 'background' && entry.isReady && entry.sinceMs <= nowMs - patienceMs,
    );
    for (const oldest of old) {
      const candidates = waiting.filter(({ client }) => client === oldest.client);
      if (candidates.some(({ rank }) => rank === 'promoted')) continue;
      this.#background = without(this.#background, oldest);
      oldest.rank = 'promoted';
      this.#lineUp(oldest, this.#callers);
    }
    this.grantAll();
  }

  /** Makes the client of a caller's job active from now on. */
  #endWait({ rank, client }: ExpectedTicket): void {
    if (rank === 'caller') this.#lastActiveMs.set(client, this.#nowMs);
  }

  #grant(entry: ExpectedTicket): void {
    this.#endWait(entry);
    entry.state = 'active';
    if (this.isAtItsLimit(entry.client)) this.#moveToEnd(entry.client);
  }

  leave(entry: ExpectedTicket): void {
    if (entry.state === 'done') return;
    const hadSlot = entry.state === 'active';
    if (!hadSlot) this.#endWait(entry);
    if (hadSlot && this.isAtItsLimit(entry.client)) this.#moveToEnd(entry.client);
    entry.state = 'done';
    this.#callers = without(this.#callers, entry);
    this.#background = without(this.#background, entry);
    this.grantAll();
  }

  grantAll(): void {
    while (this.#grantOne('callers') || this.#grantOne('background'));
  }

  #grantOne(which: 'callers' | 'background'): boolean {
    const tops = which === 'callers' ? this.#callers : this.#background;
    const lines = tops.flatMap((each) => each.lines);
    const next = lines.flatMap(({ members }) => members.find((entry) => this.mayRun(entry)) ?? [])[0];
    if (next === undefined) return false;
    const { client } = next;
    const left = toEnd(without(tops, next), ({ top }) => top === topOf(client)).map(({ top, lines: inTop }) => ({
      ...{ top, lines: toEnd(inTop, (line) => line.client === client) },
    }));
    if (which === 'callers') this.#callers = left;
    else this.#background = left;
    this.#grant(next);
    return true;
  }

  #moveToEnd(client: ClientText): void {
    const moved = (tops: Tops) =>
      isInGroup(client)
        ? tops.map(({ top, lines }) => ({ top, lines: toEnd(lines, (line) => line.client === client) }))
        : toEnd(tops, ({ top }) => top === client);
    this.#callers = moved(this.#callers);
    this.#background = moved(this.#background);
  }

  /** Returns the order of the grants: first callers, then background jobs; in rounds with one ticket per client. */
  order(): ExpectedTicket[] {
    return [this.#callers, this.#background].flatMap((tops) =>
      this.#inRounds(tops.map(({ top, lines }) => ({ client: top as ClientText, members: this.#inRounds(lines) }))),
    );
  }

  /** Orders one list in rounds; clients at their slot limit are last in each round. */
  #inRounds(all: Lines): ExpectedTicket[] {
    const lines = toEnd(all, ({ client }) => this.isAtItsLimit(client));
    const longest = Math.max(0, ...lines.map(({ members }) => members.length));
    const rounds = Array.from({ length: longest }, (_, round) => lines.map(({ members }) => members[round]));
    return rounds.flat().filter((entry) => entry !== undefined);
  }
}

/** Places and bytes that some clients divide, and the tickets that have them. */
interface ExpectedLevel {
  readonly room: readonly [number, number];
  readonly used: readonly ExpectedTicket[];
}

/** Returns a list with some elements behind the others. */
function toEnd<T>(all: readonly T[], isMoved: (each: T) => boolean): T[] {
  return [...all.filter((each) => !isMoved(each)), ...all.filter(isMoved)];
}

function without(tops: Tops, entry: ExpectedTicket): Tops {
  const left = tops.map(({ top, lines }) => {
    const rest = lines.map(({ client, members }) => ({ client, members: members.filter((other) => other !== entry) }));
    return { top, lines: rest.filter(({ members }) => members.length > 0) };
  });
  return left.filter(({ lines }) => lines.length > 0);
}

function isBeyond(client: ClientText, waiting: readonly ExpectedTicket[]): boolean {
  return waiting.length > placesOf(client) || (waiting.length > 1 && bytesOf(waiting) > ownBytes);
}

function placesOf(client: ClientText): number {
  return boundsOf(client).maxQueued ?? ownPlaces;
}

function bytesOf(waiting: readonly ExpectedTicket[]): number {
  return waiting.reduce((sum, { bytes }) => sum + bytes, 0);
}

/** `cli`: index of the CLI. `isHeld`: whether the job waits for a separate condition. */
type Coming = { readonly client: number; readonly bytes: number; readonly cli: number; readonly isHeld: boolean };
type RoomStep =
  | ({ readonly type: 'admit' } & Coming)
  | ({ readonly type: 'enter' } & Coming)
  | { readonly type: 'flood'; readonly client: number; readonly bytes: number; readonly count: number }
  | { readonly type: 'ready' | 'release' | 'cancel'; readonly which: number }
  | { readonly type: 'pass'; readonly ms: number };

/** Size in bytes, mostly within the share of one client; a single job may exceed it. */
const bytes = oneof({ weight: 6, arbitrary: nat(ownBytes) }, nat(limits.maxWaitingBytes + 1));

/** A burst of jobs, which may fill the queue if its client is the only active one. */
const flood = record({
  type: constant('flood' as const),
  client: nat(4),
  bytes,
  count: nat(limits.maxActive + limits.maxWaiting),
});

const coming = { client: nat(4), bytes, cli: nat(1), isHeld: constantFrom(false, false, true) };

const ways = array(
  oneof(
    { weight: 4, arbitrary: record({ type: constant('admit' as const), ...coming }) },
    { weight: 2, arbitrary: record({ type: constant('enter' as const), ...coming }) },
    { weight: 2, arbitrary: record({ type: constant('ready' as const), which: nat(9) }) },
    flood,
    { weight: 3, arbitrary: record({ type: constant('release' as const), which: nat(9) }) },
    record({ type: constant('cancel' as const), which: nat(9) }),
    record({
      type: constant('pass' as const),
      ms: oneof(nat(200), constantFrom(30_000, 60_000, activeMs / 2, activeMs)),
    }),
  ),
  { maxLength: 30, size: 'max' },
);

/** A client is alone only at the start, or after a long time. */
const steps = tuple(flood, ways).map(([first, others]) => [first, ...others]);

const gone = new Error('gone');

/** Runs steps on a waiting room, and computes its expected state in plain lists. */
class RoomPlayer implements Player<RoomStep> {
  readonly #clock = new FakeClock();
  readonly #room = new WaitingRoom(limits, this.#clock, boundsOf);
  readonly #expected = new ExpectedRoom();
  readonly #held = new Set<Entrant>();
  #lanes = 0;

  async perform(step: RoomStep): Promise<void> {
    if (step.type === 'pass') await this.#pass(step.ms);
    else if (step.type === 'flood') {
      const coming: Coming = { ...step, cli: 0, isHeld: false };
      for (let sent = 0; sent < step.count; sent++) this.#admit(coming);
    } else if (step.type === 'admit') this.#admit(step);
    else if (step.type === 'enter') this.#enter(step);
    else if (step.type === 'ready') this.#ready(pick(this.#expected.in('waiting'), step.which));
    else if (step.type === 'release') this.#release(pick(this.#expected.all, step.which));
    else this.#cancel(pick(this.#expected.all, step.which));
  }

  check(): void {
    const [active, waiting] = [this.#expected.in('active').length, this.#expected.waiting.length];
    deepEqual([this.#room.active, this.#room.waiting], [active, waiting]);
    ok(active <= limits.maxActive);
    ok(waiting <= limits.maxWaiting);
    deepEqual({ full: this.#room.refused, bound: this.#room.refusedByBound }, this.#expected.refused);
    equal(
      this.#expected.in('waiting').some((entry) => this.#expected.mayRun(entry)),
      false,
    ); // no slot is idle
    this.#checkClients();
    const order = this.#expected.order();
    deepEqual(
      order.map(({ ticket }) => ticket.position),
      order.map((_, index) => index + 1),
    );
    const upcoming = order.filter(({ rank, isReady }) => rank !== 'background' && isReady);
    deepEqual(
      this.#room.upcoming(order.length + 1),
      upcoming.map(({ ticket }) => ticket),
    );
    const wrong = this.#expected.all.filter(({ ticket, state, results }) => {
      const isSettled = results.length === 1 && (state !== 'active' || results[0] === 'granted');
      return ticket.isWaiting !== (state === 'waiting') || (ticket.isWaiting ? results.length > 0 : !isSettled);
    });
    deepEqual(wrong, []);
    deepEqual(
      this.#expected.all.filter(({ results }) => results.includes('lost')),
      [],
    );
    for (const entry of order) equal(entry.ticket.reason, this.#reasonOf(entry));
  }

  async finish(): Promise<void> {
    const idle = this.#room.untilIdle();
    for (const entry of this.#expected.all) this.#release(entry);
    await idle;
    deepEqual([this.#room.active, this.#room.waiting, this.#room.waitingInBackground], [0, 0, []]);
    await this.#clock.advance(3000);
    equal(this.#clock.pending, 0);
    const again = Array.from({ length: limits.maxActive }, () => this.#room.admit(entrant('key after', 60)));
    deepEqual(
      again.map((ticket) => ticket.isWaiting),
      again.map(() => false),
    );
    const held = entrant('key after', limits.maxWaitingBytes, { heldBy: () => 'conversation' });
    equal(this.#room.admit(held).isWaiting, true); // no byte is still counted
  }

  /** Returns the first gate that is closed. */
  #reasonOf({ client, cli, isReady }: ExpectedTicket): string {
    if (!isReady) return 'conversation';
    if (this.#expected.isAtItsLimit(client)) return 'client';
    const isBusy = cli === 'small' && this.#expected.in('active').some((entry) => entry.cli === cli);
    return isBusy ? 'cli' : 'slot';
  }

  /**
   * Expects that no client runs more jobs than it may, and that at most one exceeds its share: a client that was alone.
   */
  #checkClients(): void {
    const clients = [...new Set(this.#expected.all.map(({ client }) => client))];
    const running = (client: ClientText) =>
      this.#expected.in('active').filter((entry) => entry.client === client).length;
    deepEqual(
      clients.filter((client) => running(client) > boundsOf(client).maxRunning),
      [],
    );
    const beyond = clients.filter((client) => isBeyond(client, this.#expected.waitingOf(client)));
    ok(beyond.length <= 1);
    const counts = clients.map((client) => [client, this.#expected.waitingOf(client).length] as const);
    deepEqual(this.#room.waitingByClient, new Map(counts.filter(([, count]) => count > 0)));
  }

  async #pass(ms: number): Promise<void> {
    await this.#clock.advance(ms);
    this.#expected.setTime(this.#clock.monotonicMs());
    this.#room.check();
    this.#expected.check(this.#clock.monotonicMs());
  }

  #admit(coming: Coming): void {
    const visitor = this.#visitor(coming);
    const { client, bytes } = visitor;
    const cli = visitor.cli.name;
    const hasSlot = this.#expected.mayRun({ client, cli, isReady: !coming.isHeld });
    this.#expected.recordRequest(client);
    const refusal = hasSlot ? null : this.#expected.refusalReason(client, bytes);
    try {
      const ticket = this.#room.admit(visitor);
      equal(refusal, null);
      this.#expected.enter(this.#add(visitor, ticket, 'caller'));
    } catch (error) {
      if (!(error instanceof RelayError)) throw error;
      expect([error.code, refusal]).toEqual(['concurrency_limited', expect.any(String)]);
      if (refusal !== null) this.#expected.refused[refusal]++;
    }
  }

  #enter(coming: Coming): void {
    const visitor = this.#visitor(coming);
    const ticket = this.#room.enter(
      Object.assign(visitor, { since: this.#clock.now(), isFollowed: false, isFirst: false, granted: () => {} }),
    );
    this.#expected.enter(this.#add(visitor, ticket, 'background'));
  }

  /** Creates a job. A held job has a separate lane, like each conversation. */
  #visitor({ client, bytes, cli, isHeld }: Coming): Entrant {
    const name = clis[cli] ?? clis[0];
    const visitor: Entrant = entrant(`user ${client}`, bytes, {
      ...{ cli: loginOf(name), share: shareOf(`user ${client}`) },
      lane: isHeld ? `turn ${++this.#lanes}` : name,
      heldBy: () => (this.#held.has(visitor) ? 'conversation' : null),
    });
    if (isHeld) this.#held.add(visitor);
    return visitor;
  }

  #add(visitor: Entrant, ticket: Ticket, rank: ExpectedTicket['rank']): ExpectedTicket {
    const { client, bytes } = visitor;
    const cli = visitor.cli.name;
    const isReady = !this.#held.has(visitor);
    const entry: ExpectedTicket = {
      ...{ ticket, client, bytes, cli, rank, isReady },
      ...{ caller: new AbortController(), sinceMs: this.#clock.monotonicMs(), results: [], state: 'waiting' },
    };
    this.#expected.all.push(entry);
    void ticket.granted(entry.caller.signal).then(
      () => entry.results.push('granted'),
      (reason) => entry.results.push(reason === gone ? 'gone' : 'lost'),
    );
    return entry;
  }

  #ready(entry: ExpectedTicket | undefined): void {
    if (entry === undefined) return;
    this.#held.delete(entry.ticket.entrant);
    entry.isReady = true;
    this.#room.next();
    this.#expected.grantAll();
  }

  /** Releases a job. A second release has no effect. A waiting job leaves without an event. */
  #release(entry: ExpectedTicket | undefined): void {
    if (entry === undefined) return;
    if (entry.ticket.isWaiting) return this.#cancel(entry);
    entry.ticket.release();
    this.#expected.leave(entry);
  }

  #cancel(entry: ExpectedTicket | undefined): void {
    if (entry === undefined) return;
    entry.caller.abort(gone);
    if (entry.state !== 'active') this.#expected.leave(entry); // a running job is ended by its owner
  }
}

it('The waiting room matches simple lists after any sequence of operations', async () => {
  await playAll<RoomStep>(steps, () => new RoomPlayer());
}, 3_600_000);
