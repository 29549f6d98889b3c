import { setMaxListeners } from 'node:events';
import { type BoundsOf, noBounds } from '../../../../src/primary/access/clients.js';
import type { RoomCli, Ticket } from '../../../../src/primary/jobs/ticket.js';
import type { ClientText } from '../../../../src/shared/client.js';
import { loginOf } from '../../../support/agents/logins.js';
import { settled } from '../../../support/basics/settled.js';
import { TestRoom } from '../../../support/jobs/test-room.js';

const gone = new Error('gone');
const never = new AbortController().signal;
setMaxListeners(0, never);

function queue(maxActive: number, maxWaiting: number, maxWaitingBytes = 1000, boundsOf = noBounds): TestRoom {
  return new TestRoom({ maxActive, maxWaiting, maxWaitingBytes }, boundsOf);
}

/** Records which of these tickets get a slot, in order. */
function watch(tickets: Readonly<Record<string, Ticket>>): string[] {
  const granted: string[] = [];
  for (const [name, ticket] of Object.entries(tickets)) void ticket.granted(never).then(() => granted.push(name));
  return granted;
}

function refusalOf(admit: () => Ticket): unknown {
  try {
    admit();
    return null;
  } catch (error) {
    return error;
  }
}

describe('A place in the queue', () => {
  it('is free immediately when its ticket is released', async () => {
    const { room, admit } = queue(1, 1);
    const [running, leaver] = [admit(), admit()];
    leaver.release();
    leaver.release();
    expect([room.active, room.waiting]).toEqual([1, 0]);
    const next = admit();
    const granted = watch({ next, leaver });
    running.release();
    await settled();
    expect(granted).toEqual(['next']);
  });

  it('is free immediately if its signal was aborted before', async () => {
    const { room, admit } = queue(1, 1);
    admit();
    await expect(admit().granted(AbortSignal.abort(gone))).rejects.toBe(gone);
    expect(room.waiting).toBe(0);
  });

  it('does not free the slot if the signal is aborted after the slot was granted', async () => {
    const { room, admit } = queue(1, 1);
    const controller = new AbortController();
    const [running, next] = [admit(), admit()];
    const granted = next.granted(controller.signal);
    running.release();
    controller.abort(gone);
    await granted;
    expect(room.active).toBe(1);
    await expect(next.granted(controller.signal)).rejects.toBe(gone);
    expect(room.active).toBe(1);
    next.release();
    expect(room.active).toBe(0);
  });
});

describe('The upcoming tickets', () => {
  it('are listed in the order in which they get their slots, without parked ones', () => {
    const { room, admit, park } = queue(1, 10);
    admit();
    const [a1, a2, b1] = [admit('key a'), admit('key a'), admit('key b')];
    park('key c', 1);
    expect(room.upcoming(2)).toEqual([a1, b1]);
    expect(room.upcoming(10)).toEqual([a1, b1, a2]);
    expect(room.upcoming(0)).toEqual([]);
  });
});

describe('A CLI with a limit', () => {
  const limited = (small: number, maxActive = 4) => {
    const test = new TestRoom({ maxActive, cliLimits: { small } });
    const at = (cli: string, client: ClientText = 'key a') => test.admit(client, 1, { cli: loginOf(cli), lane: cli });
    return { test, at, isRunning: (...tickets: Ticket[]) => tickets.map(({ isWaiting }) => !isWaiting) };
  };

  it('runs as many jobs at once as its limit allows, and the next ones as these leave', () => {
    const { at, isRunning } = limited(2);
    const [first, second, third] = [at('small'), at('small'), at('small')];
    expect(isRunning(first, second, third)).toEqual([true, true, false]);
    expect(third.reason).toBe('cli');
    first.release();
    expect(isRunning(third)).toEqual([true]);
  });

  it('limits no other CLI, whatever its name', () => {
    const { at, isRunning } = limited(1);
    expect(isRunning(at('constructor'), at('toString'))).toEqual([true, true]);
  });

  it('removes a job that leaves while it waits', () => {
    const { at, test, isRunning } = limited(1);
    const [first, second] = [at('small'), at('small')];
    second.release();
    first.release();
    expect(test.room.hasSlotFor({ client: 'key a', cli: loginOf('small') })).toBe(true);
    expect(isRunning(at('small'))).toEqual([true]);
  });
});

describe('An account with a limit', () => {
  it('runs as many jobs at once as its present limit allows, which the jobs of a removed account of its name leave free', () => {
    const { admit, room } = new TestRoom({ maxActive: 9 });
    const limited = { name: 'ada', maxRunning: 1 };
    const [removed, present] = [loginOf('claude', limited), loginOf('claude', limited)];
    const isWaiting = (cli: RoomCli) => admit('key a', 1, { cli }).isWaiting;
    expect([isWaiting(removed), isWaiting(present), isWaiting(present)]).toEqual([false, false, true]);
    present.account.maxRunning = 2;
    room.next();
    expect(room.waiting).toBe(0);
  });
});

describe('A background job', () => {
  it('counts neither as waiting nor against the queue', () => {
    const test = new TestRoom({ maxActive: 1, maxWaiting: 1 });
    test.admit('key a');
    for (const name of ['1', '2', '3']) test.enter(name);
    expect([test.room.waiting, test.room.waitingInBackground.length, test.room.waitingClients]).toEqual([0, 3, []]);
    expect(test.admit('key a').isWaiting).toBe(true);
    expect(refusalOf(() => test.admit('key a'))).toMatchObject({ code: 'concurrency_limited' });
  });

  it('has the rank of a caller after a minute, the oldest of each client, one at a time, without a queue place', async () => {
    const test = new TestRoom({ maxActive: 1, maxWaiting: 1 });
    const running = test.admit('key caller');
    for (const name of ['a1', 'a2', 'b1']) test.enter(name, `key ${name.slice(0, 1)}`);
    await test.clock.advance(59_999);
    test.room.check();
    expect(test.room.hasPromoted).toBe(false);
    await test.clock.advance(1);
    test.room.check();
    const later = test.admit('key caller');
    expect([test.room.waiting, later.position]).toEqual([1, 3]);
    running.release();
    expect([test.started, later.isWaiting]).toEqual([['a1'], true]);
  });

  it('has the rank of a caller at once if its client follows it, one job of each client at a time', () => {
    const test = new TestRoom({ maxActive: 1 });
    const running = test.admit('key caller');
    test.enter('a1', 'key a');
    for (const name of ['a2', 'a3', 'b1']) test.enter(name, `key ${name.slice(0, 1)}`, { isFollowed: true });
    const later = test.admit('key caller');
    running.release();
    expect([test.started, later.position]).toEqual([['a2'], 2]);
  });
});

it('A client with a weight has that many turns in each round, and the positions show it', async () => {
  const boundsOf: BoundsOf = (client) => ({ ...noBounds(client), weight: client === 'key heavy' ? 2 : 1 });
  const { admit } = queue(1, 10, 1000, boundsOf);
  const first = admit('key first');
  const tickets = [admit('key a'), admit('key a'), ...['one', 'two', 'three'].map(() => admit('key heavy'))];
  const [a1, a2, k1, k2, k3] = tickets as [Ticket, Ticket, Ticket, Ticket, Ticket];
  expect(tickets.map(({ position }) => position)).toEqual([1, 4, 2, 3, 5]);
  const granted = watch({ a1, a2, k1, k2, k3 });
  for (const ticket of [first, a1, k1, k2, a2]) {
    ticket.release();
    await settled();
  }
  expect(granted).toEqual(['a1', 'k1', 'k2', 'a2', 'k3']);
});

describe('A client at its limit of running jobs', () => {
  const oneEach: BoundsOf = () => ({ maxRunning: 1, maxQueued: null, weight: 1 });

  it('is refused if it may not wait, although a slot is free', () => {
    const { room, admit } = queue(2, 0, 1000, oneEach);
    admit('key a');
    expect(refusalOf(() => admit('key a'))).toMatchObject({ code: 'concurrency_limited' });
    expect([room.active, room.waiting]).toEqual([1, 0]);
  });

  it('gets all allowed slots when its limit has been raised', async () => {
    let maxRunning = 1;
    const { room, admit } = queue(4, 10, 1000, () => ({ maxRunning, maxQueued: null, weight: 1 }));
    const [first] = [admit('key a'), admit('key a'), admit('key a'), admit('key a')];
    maxRunning = 2;
    first?.release();
    expect([room.active, room.waiting]).toEqual([2, 1]);
  });

  it('is not overtaken by its next job when its limit has been raised', () => {
    let maxRunning = 1;
    const { room, admit, park, unpark } = queue(3, 10, 1000, () => ({ maxRunning, maxQueued: null, weight: 1 }));
    const tickets = [admit('key a'), admit('key a'), admit('key a')];
    maxRunning = 2;
    tickets.push(admit('key a'));
    expect(tickets.map(({ isWaiting }) => isWaiting)).toEqual([false, false, true, true]);
    maxRunning = 3;
    const parked = park('key a');
    unpark(parked);
    expect([room.active, tickets[2]?.isWaiting, parked.isWaiting]).toEqual([3, false, true]);
  });

  it('gets no slot beyond a limit that has been lowered', () => {
    let maxRunning = 3;
    const { room, admit } = queue(3, 10, 1000, () => ({ maxRunning, maxQueued: null, weight: 1 }));
    const [other, ...own] = [admit('key b'), admit('key a'), admit('key a'), admit('key a'), admit('key c')];
    maxRunning = 1;
    other?.release();
    expect(own.map(({ isWaiting }) => isWaiting)).toEqual([false, false, true, false]);
    for (const ticket of own.slice(0, 2)) ticket?.release();
    expect([room.active, own[2]?.isWaiting]).toEqual([2, false]);
  });
});

it('The room reports when a job arrives, gets its slot or leaves', () => {
  const { counts, admit, park, unpark } = queue(1, 2);
  const [running, parked] = [admit(), park('key a', 1)];
  running.release();
  unpark(parked);
  admit().release();
  parked.release();
  expect(counts).toEqual(['1 0', '1 1', '0 1', '1 0', '1 1', '1 0', '0 0']);
});

describe('Idleness', () => {
  it('is immediate if no job runs or waits', async () => {
    await queue(1, 1).room.untilIdle();
  });

  it('begins when the last job has left, running, waiting or parked, and again after new work', async () => {
    const { room, admit, park } = queue(1, 3);
    const [running, waiting, leaver, parked] = [admit(), admit(), admit(), park()];
    let idle = 0;
    for (let times = 0; times < 2; times++) void room.untilIdle().then(() => idle++);
    for (const ticket of [leaver, running, waiting]) {
      ticket.release();
      await settled();
      expect(idle).toBe(0);
    }
    parked.release();
    await settled();
    expect(idle).toBe(2);
    const again = admit();
    void room.untilIdle().then(() => idle++);
    await settled();
    expect(idle).toBe(2);
    again.release();
    await settled();
    expect(idle).toBe(3);
  });
});

it('The users of one key share its slots', async () => {
  const boundsOf: BoundsOf = (client) => ({ ...noBounds(client), ...(client === 'key app' && { maxRunning: 2 }) });
  const { room, admit } = queue(4, 10, 1000, boundsOf);
  const [ada, bob, eve, other] = (['key app/ada', 'key app/bob', 'key app/eve', 'key other'] as const).map((name) =>
    admit(name),
  );
  const hasSlot = (client: ClientText) => room.hasSlotFor({ client, cli: loginOf('main') });
  expect((['key app/joe', 'key app', 'key other'] as const).map(hasSlot)).toEqual([false, false, true]);
  expect([ada, bob, eve, other].map((ticket) => ticket?.isWaiting)).toEqual([false, false, true, false]);
  bob?.release();
  await settled();
  expect([room.active, eve?.isWaiting]).toEqual([3, false]);
});

describe('A patient caller', () => {
  const patient = { rank: 'patient' } as const;

  it('has a queue place, and gets a free slot at once, else waits behind all other callers', async () => {
    const { room, admit } = queue(1, 3);
    const running = admit('key a', 1, patient);
    const [flex, usual] = [admit('key a', 1, patient), admit('key b')];
    expect([running.isWaiting, flex.position, usual.position, room.waiting]).toEqual([false, 2, 1, 2]);
    const late = admit('key c');
    expect(refusalOf(admit)).toMatchObject({ code: 'concurrency_limited' });
    const granted = watch({ flex, usual, late });
    for (const ticket of [running, usual, late, flex]) {
      ticket.release();
      await settled();
    }
    expect(granted).toEqual(['usual', 'late', 'flex']);
    expect([room.active, room.waiting]).toEqual([0, 0]);
  });

  it('has the rank of a caller after a minute, so that it does not starve: the oldest of each client, one at a time', async () => {
    const test = new TestRoom({ maxActive: 1 });
    const running = test.admit('key b');
    const [first, second] = [test.admit('key a', 1, patient), test.admit('key a', 1, patient)];
    await test.clock.advance(59_999);
    test.room.check();
    expect(test.room.hasPromoted).toBe(false);
    await test.clock.advance(1);
    test.room.check();
    for (let count = 0; count < 5; count++) test.admit('key b');
    expect([first.position, second.position]).toEqual([1, 7]);
    running.release();
    expect([first.isWaiting, second.isWaiting, test.room.hasPromoted]).toEqual([false, true, false]);
    test.room.check();
    expect(second.position).toBe(2);
    second.release();
    expect([test.room.waiting, test.room.waitingInBackground]).toEqual([5, []]);
  });

  it('learns its position', async () => {
    const test = new TestRoom({ maxActive: 1 });
    test.admit('key a');
    const flex = test.admit('key a', 1, patient);
    const positions: number[] = [];
    flex.onPosition = (position) => positions.push(position) > 0;
    const plain = test.admit('key b');
    await test.clock.advance(100);
    plain.release();
    await test.clock.advance(2000);
    expect(positions).toEqual([2, 1]);
  });
});

describe('An urgent caller', () => {
  const urgent = { rank: 'urgent' } as const;

  it('waits before the other jobs of its client, and takes no slot of another client, however many there are', async () => {
    const { admit } = queue(1, 100);
    const running = admit('key b');
    const plain = admit('key a');
    const flood = Array.from({ length: 20 }, () => admit('key a', 1, urgent));
    const [b1, b2] = [admit('key b'), admit('key b')];
    expect([plain.position, b1.position, b2.position]).toEqual([23, 2, 4]);
    expect(flood.slice(0, 3).map(({ position }) => position)).toEqual([1, 3, 5]);
    running.release();
    expect([flood[0]?.isWaiting, b1.position]).toEqual([false, 1]);
  });

  it('takes no slot of another sub-client of its key', () => {
    const { admit } = queue(1, 100);
    admit('key c');
    const [own, other] = [admit('key a/x'), admit('key a/y')];
    const first = admit('key a/x', 1, urgent);
    expect([first.position, other.position, own.position]).toEqual([1, 2, 3]);
  });
});

describe('A gate', () => {
  const limits = { maxRunning: null as number | null, minRunning: 0 };
  const gate = { name: 'group lab', maxRunning: () => limits.maxRunning, minRunning: () => limits.minRunning };
  beforeEach(() => Object.assign(limits, { maxRunning: null, minRunning: 0 }));

  it('with a maximum lets the jobs of others pass, and its own go when one has ended', async () => {
    limits.maxRunning = 1;
    const { room, admit } = queue(3, 10);
    const first = admit('key a', 1, { gates: [gate] });
    const [second, other] = [admit('key b', 1, { gates: [gate] }), admit('key c')];
    const granted = watch({ second, other });
    await settled();
    expect([granted, second.reason, room.runningAtGate('group lab')]).toEqual([['other'], 'client', 1]);
    first.release();
    await settled();
    expect([granted, room.runningAtGate('group lab')]).toEqual([['other', 'second'], 1]);
  });

  it('with a minimum puts its jobs before all others until so many run', async () => {
    limits.minRunning = 1;
    const test = queue(1, 10);
    const { room, admit } = test;
    const running = admit('key x');
    const others = { a: admit('key a'), b: admit('key b') };
    const mine = { m: admit('key m', 1, { gates: [gate] }), n: test.enter('n', 'key n', { gates: [gate] }) };
    const all: Readonly<Record<string, Ticket>> = { ...others, ...mine };
    const granted = watch(all);
    running.release();
    for (let count = 1; count < 4; count++) {
      await settled();
      expect([granted.length, room.active]).toEqual([count, 1]);
      all[granted.at(-1) ?? '']?.release();
    }
    await settled();
    expect(granted).toEqual(['m', 'n', 'a', 'b']);
  });

  it('with a minimum leaves its slots to others while none of its jobs can run', async () => {
    limits.minRunning = 1;
    const test = queue(1, 10);
    const { admit } = test;
    const running = admit('key x');
    const held = test.enter('m', 'key m', { gates: [gate], heldBy: () => 'conversation' });
    const other = admit('key a');
    const granted = watch({ held, other });
    running.release();
    await settled();
    expect(granted).toEqual(['other']);
  });

  it('that has its minimum takes no slot from others', async () => {
    limits.minRunning = 1;
    const { admit } = queue(2, 10);
    const [mine, other] = [admit('key m', 1, { gates: [gate] }), admit('key x')];
    const waiting = { a: admit('key a'), m: admit('key m', 1, { gates: [gate] }) };
    const granted = watch(waiting);
    other.release();
    await settled();
    expect([granted, mine.isWaiting]).toEqual([['a'], false]);
  });
});
