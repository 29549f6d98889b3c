import type { ClientBounds } from '../../../src/primary/access/clients.js';
import type { Ticket } from '../../../src/primary/jobs/ticket.js';

export const limits = { maxActive: 3, maxWaiting: 6, maxWaitingBytes: 60, cliLimits: { small: 1 } };
/** Places and bytes of one client's share: a quarter of the queue. At most as many places are reserved. */
const ownPlaces = 2;
export const ownBytes = 15;
export const activeMs = 600_000;

const bounds: Readonly<Record<string, ClientBounds>> = {
  'client 1': { maxRunning: 1, maxQueued: null, weight: 1 },
  'client 2': { maxRunning: 2, maxQueued: 1, weight: 1 },
  'client 3': { maxRunning: 1, maxQueued: 4, weight: 1 },
};
const noBounds: ClientBounds = { maxRunning: Number.POSITIVE_INFINITY, maxQueued: null, weight: 1 };

export const boundsOf = (client: string) => bounds[client] ?? noBounds;

export const clis = ['main', 'small'] as const;
/** Age at which a background job ranks as a caller. */
const patienceMs = 60_000;

type Rank = 'caller' | 'background' | 'promoted';

/** Expected state of one ticket. */
export interface ExpectedTicket {
  readonly ticket: Ticket;
  readonly client: string;
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
type Lines = { readonly client: string; readonly members: ExpectedTicket[] }[];

/**
 * Model of the waiting room with plain lists. Everything that can be derived from the tickets is computed on each call.
 */
export class ExpectedRoom {
  readonly all: ExpectedTicket[] = [];
  #callers: Lines = [];
  #background: Lines = [];
  /** Time of the last request, or of the end of the last wait, by client. */
  readonly #lastActiveMs = new Map<string, number>();
  #nowMs = 0;
  readonly refused = { full: 0, bound: 0 };

  /** Must be called with the time before each step. */
  setTime(nowMs: number): void {
    this.#nowMs = nowMs;
  }

  recordRequest(client: string): void {
    this.#lastActiveMs.set(client, this.#nowMs);
  }

  /** Waiting callers, in order of arrival. */
  get waiting(): ExpectedTicket[] {
    return this.in('waiting').filter(({ rank }) => rank === 'caller');
  }

  waitingOf(client: string): ExpectedTicket[] {
    return this.waiting.filter((entry) => entry.client === client);
  }

  in(state: ExpectedTicket['state']): ExpectedTicket[] {
    return this.all.filter((entry) => entry.state === state);
  }

  /** Returns the reason to refuse a job; null to admit it. */
  refusalReason(client: string, bytes: number): 'full' | 'bound' | null {
    const waitingOfClient = this.waitingOf(client);
    const { maxQueued } = boundsOf(client);
    if (maxQueued !== null && waitingOfClient.length >= maxQueued) return 'bound';
    const reserving = this.#activeWithoutPlace(client);
    const isAlone = this.waiting.length === waitingOfClient.length && reserving === 0;
    const isWithin =
      waitingOfClient.length < placesOf(client) &&
      (waitingOfClient.length === 0 || bytesOf(waitingOfClient) + bytes <= ownBytes);
    if (!isAlone && !isWithin) return 'bound';
    const reserved = waitingOfClient.length === 0 ? 0 : Math.min(reserving, ownPlaces);
    const reservedBytes = (reserved * limits.maxWaitingBytes) / limits.maxWaiting;
    const hasPlace = this.waiting.length + reserved < limits.maxWaiting;
    return hasPlace && bytesOf(this.waiting) + reservedBytes + bytes <= limits.maxWaitingBytes ? null : 'full';
  }

  /** Returns the number of other active clients without a waiting job. */
  #activeWithoutPlace(client: string): number {
    const recent = [...this.#lastActiveMs].filter(([other, ms]) => other !== client && this.#nowMs - ms < activeMs);
    return recent.filter(([other]) => this.waitingOf(other).length === 0).length;
  }

  mayRun({ client, cli, isReady }: Pick<ExpectedTicket, 'client' | 'cli' | 'isReady'>): boolean {
    const isFree = this.in('active').length < limits.maxActive;
    return isFree && isReady && !this.isAtItsLimit(client) && !(cli === 'small' && this.#runningAt(cli) >= 1);
  }

  isAtItsLimit(client: string): boolean {
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

  #lineUp(entry: ExpectedTicket, lines: Lines): void {
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
    const lines = which === 'callers' ? this.#callers : this.#background;
    for (const { client, members } of lines) {
      const next = members.find((entry) => this.mayRun(entry));
      if (next === undefined) continue;
      const remainingMembers = members.filter((entry) => entry !== next);
      const otherLines = lines.filter((line) => line.client !== client);
      const left = remainingMembers.length === 0 ? otherLines : [...otherLines, { client, members: remainingMembers }];
      if (which === 'callers') this.#callers = left;
      else this.#background = left;
      this.#grant(next);
      return true;
    }
    return false;
  }

  #moveToEnd(client: string): void {
    const isOf = (line: { readonly client: string }) => line.client === client;
    this.#callers = [...this.#callers.filter((line) => !isOf(line)), ...this.#callers.filter(isOf)];
    this.#background = [...this.#background.filter((line) => !isOf(line)), ...this.#background.filter(isOf)];
  }

  /** Returns the order of the grants: first callers, then background jobs; in rounds with one ticket per client. */
  order(): ExpectedTicket[] {
    return [this.#callers, this.#background].flatMap((lines) => this.#inRounds(lines));
  }

  /** Orders one list in rounds; clients at their slot limit are last in each round. */
  #inRounds(all: Lines): ExpectedTicket[] {
    const isHeld = ({ client }: { readonly client: string }) => this.isAtItsLimit(client);
    const lines = [...all.filter((line) => !isHeld(line)), ...all.filter(isHeld)];
    const longest = Math.max(0, ...lines.map(({ members }) => members.length));
    const rounds = Array.from({ length: longest }, (_, round) => lines.map(({ members }) => members[round]));
    return rounds.flat().filter((entry) => entry !== undefined);
  }
}

function without(lines: Lines, entry: ExpectedTicket): Lines {
  const left = lines.map(({ client, members }) => ({ client, members: members.filter((other) => other !== entry) }));
  return left.filter(({ members }) => members.length > 0);
}

export function isBeyond(client: string, waiting: readonly ExpectedTicket[]): boolean {
  return waiting.length > placesOf(client) || (waiting.length > 1 && bytesOf(waiting) > ownBytes);
}

function placesOf(client: string): number {
  return boundsOf(client).maxQueued ?? ownPlaces;
}

function bytesOf(waiting: readonly ExpectedTicket[]): number {
  return waiting.reduce((sum, { bytes }) => sum + bytes, 0);
}
