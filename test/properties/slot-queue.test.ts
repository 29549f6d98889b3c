import { array, constant, nat, oneof, record } from 'fast-check';
import { SlotQueue, type Ticket } from '../../src/primary/jobs/slot-queue.js';
import { RelayError } from '../../src/shared/errors.js';
import { FakeClock } from '../support/fake-clock.js';
import { type Player, pick, playAll } from '../support/properties.js';

const limits = { maxActive: 2, maxWaiting: 6, maxWaitingBytes: 60 };

type QueueStep =
  | { readonly type: 'admit' | 'park'; readonly client: number; readonly bytes: number }
  | { readonly type: 'unpark' | 'release' | 'cancel'; readonly which: number }
  | { readonly type: 'pass'; readonly ms: number };

const steps = array(
  oneof(
    { weight: 4, arbitrary: record({ type: constant('admit' as const), client: nat(3), bytes: nat(15) }) },
    record({ type: constant('park' as const), client: nat(3), bytes: nat(15) }),
    record({ type: constant('unpark' as const), which: nat(9) }),
    { weight: 3, arbitrary: record({ type: constant('release' as const), which: nat(9) }) },
    record({ type: constant('cancel' as const), which: nat(9) }),
    record({ type: constant('pass' as const), ms: nat(200) }),
  ),
  { maxLength: 30, size: 'max' },
);

/** What is expected of one ticket. */
interface ExpectedTicket {
  readonly ticket: Ticket;
  readonly client: string;
  readonly bytes: number;
  readonly caller: AbortController;
  /** What `granted` has told, each time. */
  readonly told: string[];
  state: 'parked' | 'waiting' | 'active' | 'done';
}

/** Owns a queue, and lists that say in the plainest way what it should be. */
class QueuePlayer implements Player<QueueStep> {
  readonly #clock = new FakeClock();
  readonly #queue = new SlotQueue(limits, this.#clock);
  readonly #all: ExpectedTicket[] = [];
  /** Those in order, by client; the clients in order of their turns. */
  #lines: { readonly client: string; readonly members: ExpectedTicket[] }[] = [];
  #refused = 0;

  async perform(step: QueueStep): Promise<void> {
    if (step.type === 'pass') await this.#clock.advance(step.ms);
    else if ('client' in step) this.#enter(step.type, `client ${step.client}`, step.bytes);
    else if (step.type === 'unpark') this.#unpark(pick(this.#in('parked'), step.which));
    else if (step.type === 'release') this.#release(pick(this.#all, step.which));
    else this.#cancel(pick(this.#all, step.which));
  }

  check(): void {
    const [active, waiting] = [this.#in('active').length, this.#waiting.length];
    expect([this.#queue.active, this.#queue.waiting]).toEqual([active, waiting]);
    expect(active).toBeLessThanOrEqual(limits.maxActive);
    expect(waiting).toBeLessThanOrEqual(limits.maxWaiting);
    expect(this.#queue.refused).toBe(this.#refused);
    expect(this.#in('waiting').length === 0 || active === limits.maxActive).toBe(true); // no slot lies idle
    const order = this.#order();
    expect(this.#queue.next(order.length + 1)).toEqual(order.map(({ ticket }) => ticket));
    expect(order.map(({ ticket }) => ticket.position)).toEqual(order.map((_, index) => index + 1));
    const isIn = (state: ExpectedTicket['state']) => state === 'parked' || state === 'waiting';
    const wrong = this.#all.filter(({ ticket, state, told }) => {
      const isToldRight = told.length === (ticket.isWaiting ? 0 : 1) && (state !== 'active' || told[0] === 'granted');
      return ticket.isWaiting !== isIn(state) || !isToldRight;
    });
    expect(wrong).toEqual([]);
  }

  async finish(): Promise<void> {
    const idle = this.#queue.idle();
    for (const entry of this.#all) this.#release(entry);
    await idle;
    expect([this.#queue.active, this.#queue.waiting]).toEqual([0, 0]);
    await this.#clock.advance(1000);
    expect(this.#clock.pending).toBe(0);
    const again = Array.from({ length: limits.maxActive }, () => this.#queue.admit('after', 60));
    expect(again.map((ticket) => ticket.isWaiting)).toEqual(again.map(() => false));
    expect(this.#queue.park('after', limits.maxWaitingBytes).isWaiting).toBe(true); // no byte is left counted
  }

  get #waiting(): ExpectedTicket[] {
    return [...this.#in('parked'), ...this.#in('waiting')];
  }

  #in(state: ExpectedTicket['state']): ExpectedTicket[] {
    return this.#all.filter((entry) => entry.state === state);
  }

  #enter(how: 'admit' | 'park', client: string, bytes: number): void {
    const hasSlot = how === 'admit' && this.#in('active').length < limits.maxActive;
    try {
      const ticket = this.#queue[how](client, bytes);
      expect(hasSlot || this.#hasPlace(bytes)).toBe(true);
      this.#add({ ticket, client, bytes, caller: new AbortController(), told: [], state: 'parked' });
      if (how === 'admit') this.#lineUp(this.#all.at(-1) as ExpectedTicket);
    } catch (error) {
      if (!(error instanceof RelayError)) throw error;
      expect([error.code, hasSlot || this.#hasPlace(bytes)]).toEqual(['concurrency_limited', false]);
      this.#refused++;
    }
  }

  #hasPlace(bytes: number): boolean {
    const held = this.#waiting.reduce((sum, entry) => sum + entry.bytes, 0);
    return this.#waiting.length < limits.maxWaiting && held + bytes <= limits.maxWaitingBytes;
  }

  #add(entry: ExpectedTicket): void {
    this.#all.push(entry);
    void entry.ticket.granted(entry.caller.signal).then(
      () => entry.told.push('granted'),
      () => entry.told.push('rejected'),
    );
  }

  #lineUp(entry: ExpectedTicket): void {
    if (this.#in('active').length < limits.maxActive) {
      entry.state = 'active';
      return;
    }
    entry.state = 'waiting';
    const line = this.#lines.find(({ client }) => client === entry.client);
    if (line === undefined) this.#lines.push({ client: entry.client, members: [entry] });
    else line.members.push(entry);
  }

  #unpark(entry: ExpectedTicket | undefined): void {
    if (entry === undefined) return;
    entry.ticket.unpark();
    this.#lineUp(entry);
  }

  /** One that has left already may be released again: nothing happens. One that waits goes without a word. */
  #release(entry: ExpectedTicket | undefined): void {
    if (entry === undefined) return;
    if (entry.ticket.isWaiting) return this.#cancel(entry);
    entry.ticket.release();
    this.#leave(entry);
  }

  #cancel(entry: ExpectedTicket | undefined): void {
    if (entry === undefined) return;
    entry.caller.abort(new Error('gone'));
    if (entry.state !== 'active') this.#leave(entry); // what runs is for its job to end
  }

  #leave(entry: ExpectedTicket): void {
    const hadSlot = entry.state === 'active';
    entry.state = 'done';
    for (const line of this.#lines)
      if (line.members.includes(entry)) line.members.splice(line.members.indexOf(entry), 1);
    this.#lines = this.#lines.filter(({ members }) => members.length > 0);
    if (hadSlot) this.#grantNext();
  }

  #grantNext(): void {
    const [line, ...others] = this.#lines;
    const next = line?.members.shift();
    if (line === undefined || next === undefined) return;
    next.state = 'active';
    this.#lines = line.members.length === 0 ? others : [...others, line];
  }

  /** Round after round, one of each client. */
  #order(): ExpectedTicket[] {
    const longest = Math.max(0, ...this.#lines.map(({ members }) => members.length));
    const rounds = Array.from({ length: longest }, (_, round) => this.#lines.map(({ members }) => members[round]));
    return rounds.flat().filter((entry) => entry !== undefined);
  }
}

describe('The slot queue', () => {
  it('is what plain lists say, whatever comes in whatever order', async () => {
    await playAll<QueueStep>(steps, () => new QueuePlayer());
  }, 3_600_000);
});
