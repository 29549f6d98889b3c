import { array, constant, constantFrom, nat, oneof, record, tuple } from 'fast-check';
import { SlotQueue } from '../../src/primary/jobs/slot-queue.js';
import { RelayError } from '../../src/shared/errors.js';
import {
  boundsOf,
  ExpectedQueue,
  type ExpectedTicket,
  isBeyond,
  limits,
  mayComeAgainMs,
  ownBytes,
} from '../support/expected-queue.js';
import { FakeClock } from '../support/fake-clock.js';
import { type Player, pick, playAll } from '../support/properties.js';

type QueueStep =
  | { readonly type: 'admit' | 'park'; readonly client: number; readonly bytes: number }
  | { readonly type: 'flood'; readonly client: number; readonly bytes: number; readonly count: number }
  | { readonly type: 'unpark' | 'release' | 'cancel'; readonly which: number }
  | { readonly type: 'pass'; readonly ms: number };

/** Mostly within the share of one client, as a single job need not be. */
const bytes = oneof({ weight: 6, arbitrary: nat(ownBytes) }, nat(limits.maxWaitingBytes + 1));

/** So many at once that their client may hold what belongs to others. */
const flood = record({
  type: constant('flood' as const),
  client: nat(4),
  bytes,
  count: nat(limits.maxActive + limits.maxWaiting),
});

const ways = array(
  oneof(
    { weight: 4, arbitrary: record({ type: constant('admit' as const), client: nat(4), bytes }) },
    record({ type: constant('park' as const), client: nat(4), bytes }),
    record({ type: constant('unpark' as const), which: nat(9) }),
    flood,
    { weight: 3, arbitrary: record({ type: constant('release' as const), which: nat(9) }) },
    record({ type: constant('cancel' as const), which: nat(9) }),
    record({ type: constant('pass' as const), ms: oneof(nat(200), constantFrom(mayComeAgainMs / 2, mayComeAgainMs)) }),
  ),
  { maxLength: 30, size: 'max' },
);

/** Only who comes first, or after a long time, is alone. */
const steps = tuple(flood, ways).map(([first, others]) => [first, ...others]);

/** What a ticket in this state must have told; undefined where there may be several. */
const tellsOf = {
  parked: undefined,
  waiting: undefined,
  active: 'granted',
  done: undefined,
  'gave-way': 'queue_timeout',
};

/** Owns a queue, and lists that say in the plainest way what it should be. */
class QueuePlayer implements Player<QueueStep> {
  readonly #clock = new FakeClock();
  readonly #queue = new SlotQueue(limits, this.#clock, boundsOf);
  readonly #expected = new ExpectedQueue();

  async perform(step: QueueStep): Promise<void> {
    if (step.type === 'pass') await this.#clock.advance(step.ms);
    else if (step.type === 'flood')
      for (let sent = 0; sent < step.count; sent++) this.#enter('admit', `client ${step.client}`, step.bytes);
    else if ('client' in step) this.#enter(step.type, `client ${step.client}`, step.bytes);
    else if (step.type === 'unpark') this.#unpark(pick(this.#expected.in('parked'), step.which));
    else if (step.type === 'release') this.#release(pick(this.#expected.all, step.which));
    else this.#cancel(pick(this.#expected.all, step.which));
  }

  check(): void {
    const [active, waiting] = [this.#expected.in('active').length, this.#expected.waiting.length];
    expect([this.#queue.active, this.#queue.waiting]).toEqual([active, waiting]);
    expect(active).toBeLessThanOrEqual(limits.maxActive);
    expect(waiting).toBeLessThanOrEqual(limits.maxWaiting);
    expect({ full: this.#queue.refused, bound: this.#queue.refusedByBound }).toEqual(this.#expected.refused);
    const [first] = this.#expected.in('waiting').filter(({ client }) => !this.#expected.isAtItsLimit(client));
    expect(first === undefined || active === limits.maxActive).toBe(true); // no slot lies idle
    this.#checkClients();
    const order = this.#expected.order();
    expect(this.#queue.next(order.length + 1)).toEqual(order.map(({ ticket }) => ticket));
    expect(order.map(({ ticket }) => ticket.position)).toEqual(order.map((_, index) => index + 1));
    const isIn = (state: ExpectedTicket['state']) => state === 'parked' || state === 'waiting';
    const wrong = this.#expected.all.filter(({ ticket, state, told }) => {
      const isToldRight = told.length === (ticket.isWaiting ? 0 : 1) && (tellsOf[state] ?? told[0]) === told[0];
      return ticket.isWaiting !== isIn(state) || !isToldRight;
    });
    expect(wrong).toEqual([]);
  }

  async finish(): Promise<void> {
    const idle = this.#queue.idle();
    for (const entry of this.#expected.all) this.#release(entry);
    await idle;
    expect([this.#queue.active, this.#queue.waiting]).toEqual([0, 0]);
    await this.#clock.advance(1000);
    expect(this.#clock.pending).toBe(0);
    const again = Array.from({ length: limits.maxActive }, () => this.#queue.admit('after', 60));
    expect(again.map((ticket) => ticket.isWaiting)).toEqual(again.map(() => false));
    expect(this.#queue.park('after', limits.maxWaitingBytes).isWaiting).toBe(true); // no byte is left counted
  }

  /** Nobody runs more than it may, and at most one client holds more than its share: the one that was alone. */
  #checkClients(): void {
    const clients = [...new Set(this.#expected.all.map(({ client }) => client))];
    const running = (client: string) => this.#expected.in('active').filter((entry) => entry.client === client).length;
    expect(clients.filter((client) => running(client) > boundsOf(client).maxRunning)).toEqual([]);
    expect(clients.filter((client) => isBeyond(client, this.#expected.waitingOf(client))).length).toBeLessThanOrEqual(
      1,
    );
    const counts = clients.map((client) => [client, this.#expected.waitingOf(client).length] as const);
    expect(this.#queue.waitingByClient).toEqual(new Map(counts.filter(([, count]) => count > 0)));
  }

  #enter(how: 'admit' | 'park', client: string, bytes: number): void {
    const hasSlot = how === 'admit' && this.#expected.mayRun(client);
    this.#expected.saw(client, this.#clock.monotonicMs());
    const refusal = hasSlot ? null : this.#expected.refusalOf(client, bytes);
    try {
      const ticket = this.#queue[how](client, bytes);
      expect(refusal).toBe(null);
      if (!hasSlot) this.#expected.makeRoom(client, bytes);
      this.#add({ ticket, client, bytes, caller: new AbortController(), told: [], state: 'parked' });
      if (how === 'admit') this.#expected.lineUp(this.#expected.all.at(-1) as ExpectedTicket);
    } catch (error) {
      if (!(error instanceof RelayError)) throw error;
      expect([error.code, refusal]).toEqual(['concurrency_limited', expect.any(String)]);
      if (refusal !== null) this.#expected.refused[refusal]++;
    }
  }

  #add(entry: ExpectedTicket): void {
    this.#expected.all.push(entry);
    void entry.ticket.granted(entry.caller.signal).then(
      () => entry.told.push('granted'),
      (reason) => entry.told.push(reason instanceof RelayError ? reason.code : 'gone'),
    );
  }

  #unpark(entry: ExpectedTicket | undefined): void {
    if (entry === undefined) return;
    entry.ticket.unpark();
    this.#expected.lineUp(entry);
  }

  /** One that has left already may be released again: nothing happens. One that waits goes without a word. */
  #release(entry: ExpectedTicket | undefined): void {
    if (entry === undefined) return;
    if (entry.ticket.isWaiting) return this.#cancel(entry);
    entry.ticket.release();
    this.#expected.leave(entry);
  }

  #cancel(entry: ExpectedTicket | undefined): void {
    if (entry === undefined) return;
    entry.caller.abort(new Error('gone'));
    if (entry.state !== 'active') this.#expected.leave(entry); // what runs is for its job to end
  }
}

describe('The slot queue', () => {
  it('is what plain lists say, whatever comes in whatever order', async () => {
    await playAll<QueueStep>(steps, () => new QueuePlayer());
  }, 3_600_000);
});
