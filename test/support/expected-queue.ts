import type { ClientBounds } from '../../src/primary/access/client-bounds.js';
import type { Ticket } from '../../src/primary/jobs/ticket.js';

export const limits = { maxActive: 3, maxWaiting: 6, maxWaitingBytes: 60 };
/** A quarter of each. */
const ownPlaces = 2;
export const ownBytes = 15;
export const mayComeAgainMs = 600_000;

const bounds: Readonly<Record<string, ClientBounds>> = {
  'client 1': { maxRunning: 1, maxQueued: null },
  'client 2': { maxRunning: 2, maxQueued: 1 },
  'client 3': { maxRunning: 1, maxQueued: 4 },
};
const noBounds: ClientBounds = { maxRunning: Number.POSITIVE_INFINITY, maxQueued: null };

export const boundsOf = (client: string) => bounds[client] ?? noBounds;

/** What is expected of one ticket. */
export interface ExpectedTicket {
  readonly ticket: Ticket;
  readonly client: string;
  readonly bytes: number;
  readonly caller: AbortController;
  /** What `granted` has told, each time. */
  readonly told: string[];
  state: 'parked' | 'waiting' | 'active' | 'done' | 'gave-way';
}

/**
 * Owns lists that say in the plainest way what a queue should be. Whatever can be told from the tickets is counted anew
 * each time.
 */
export class ExpectedQueue {
  readonly all: ExpectedTicket[] = [];
  /** Those in order, by client; the clients in order of their turns, but for those that have all the slots they may. */
  #lines: { readonly client: string; readonly members: ExpectedTicket[] }[] = [];
  readonly #seen: { readonly client: string; readonly atMs: number }[] = [];
  readonly refused = { full: 0, bound: 0 };

  /** A client has asked for a job. */
  saw(client: string, atMs: number): void {
    this.#seen.push({ client, atMs });
  }

  /** In order of arrival. */
  get waiting(): ExpectedTicket[] {
    return this.all.filter(({ state }) => state === 'parked' || state === 'waiting');
  }

  waitingOf(client: string): ExpectedTicket[] {
    return this.waiting.filter((entry) => entry.client === client);
  }

  in(state: ExpectedTicket['state']): ExpectedTicket[] {
    return this.all.filter((entry) => entry.state === state);
  }

  /** For the client that was seen last. One that takes its share is refused only where the others take no more than theirs. */
  refusalOf(client: string, bytes: number): 'full' | 'bound' | null {
    const own = this.waitingOf(client);
    const { maxQueued } = boundsOf(client);
    if (maxQueued !== null && own.length >= maxQueued) return 'bound';
    const isAlone = this.waiting.length === own.length && !this.#hasSeenOthersThan(client);
    const isWithin = own.length < placesOf(client) && (own.length === 0 || bytesOf(own) + bytes <= ownBytes);
    if (!isAlone && !isWithin) return 'bound';
    return isRoom(this.waiting, bytes) || isRoom(this.#withinShares(client), bytes) ? null : 'full';
  }

  #hasSeenOthersThan(client: string): boolean {
    const sinceMs = (this.#seen.at(-1)?.atMs ?? 0) - mayComeAgainMs;
    return this.#seen.some((other) => other.client !== client && other.atMs > sinceMs);
  }

  /** Those who wait, but for whatever the others than this client hold beyond their shares. */
  #withinShares(client: string): ExpectedTicket[] {
    return this.waiting.filter((entry) => entry.client === client || !this.#isBorrowed(entry));
  }

  /** Whether its client would hold more than its share also without those that came later. */
  #isBorrowed(entry: ExpectedTicket): boolean {
    const own = this.waitingOf(entry.client);
    return isBeyond(entry.client, own.slice(0, own.indexOf(entry) + 1));
  }

  /** The newest in borrowed places go, as many as it takes. */
  makeRoom(client: string, bytes: number): void {
    while (!isRoom(this.waiting, bytes)) {
      const newest = this.waiting.filter((entry) => entry.client !== client && this.#isBorrowed(entry)).at(-1);
      if (newest === undefined) throw new Error('nobody can give way');
      this.leave(newest);
      newest.state = 'gave-way';
    }
  }

  mayRun(client: string): boolean {
    return this.in('active').length < limits.maxActive && !this.isAtItsLimit(client);
  }

  isAtItsLimit(client: string): boolean {
    return this.in('active').filter((entry) => entry.client === client).length >= boundsOf(client).maxRunning;
  }

  lineUp(entry: ExpectedTicket): void {
    if (this.mayRun(entry.client)) return this.#grant(entry);
    entry.state = 'waiting';
    const line = this.#lines.find(({ client }) => client === entry.client);
    if (line === undefined) this.#lines.push({ client: entry.client, members: [entry] });
    else line.members.push(entry);
  }

  #grant(entry: ExpectedTicket): void {
    entry.state = 'active';
    if (this.isAtItsLimit(entry.client)) this.#moveToEnd(entry.client);
  }

  leave(entry: ExpectedTicket): void {
    if (entry.state === 'done' || entry.state === 'gave-way') return;
    const hadSlot = entry.state === 'active';
    const wasAtItsLimit = this.isAtItsLimit(entry.client);
    entry.state = 'done';
    for (const line of this.#lines)
      if (line.members.includes(entry)) line.members.splice(line.members.indexOf(entry), 1);
    this.#lines = this.#lines.filter(({ members }) => members.length > 0);
    if (hadSlot && wasAtItsLimit) this.#moveToEnd(entry.client);
    if (hadSlot) this.#grantNext();
  }

  #grantNext(): void {
    const line = this.#lines.find(({ client }) => this.mayRun(client));
    const next = line?.members.shift();
    if (line === undefined || next === undefined) return;
    this.#lines = this.#lines.filter((other) => other !== line);
    if (line.members.length > 0) this.#lines.push(line);
    this.#grant(next);
  }

  #moveToEnd(client: string): void {
    const isOf = (line: { readonly client: string }) => line.client === client;
    this.#lines = [...this.#lines.filter((line) => !isOf(line)), ...this.#lines.filter(isOf)];
  }

  /** Round after round, one of each client; in each round those last that have all the slots they may. */
  order(): ExpectedTicket[] {
    const isHeld = ({ client }: { readonly client: string }) => this.isAtItsLimit(client);
    const lines = [...this.#lines.filter((line) => !isHeld(line)), ...this.#lines.filter(isHeld)];
    const longest = Math.max(0, ...lines.map(({ members }) => members.length));
    const rounds = Array.from({ length: longest }, (_, round) => lines.map(({ members }) => members[round]));
    return rounds.flat().filter((entry) => entry !== undefined);
  }
}

function isRoom(waiting: readonly ExpectedTicket[], bytes: number): boolean {
  return waiting.length < limits.maxWaiting && bytesOf(waiting) + bytes <= limits.maxWaitingBytes;
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
