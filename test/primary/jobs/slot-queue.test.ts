import { SlotQueue, type Ticket } from '../../../src/primary/jobs/slot-queue.js';
import { RelayError } from '../../../src/shared/errors.js';
import { randomNumbers } from '../../support/random.js';
import { settled } from '../../support/settled.js';

const gone = new Error('gone');
const never = new AbortController().signal;

function queue(maxActive: number, maxWaiting: number, maxWaitingBytes = 1000) {
  const slots = new SlotQueue({ maxActive, maxWaiting, maxWaitingBytes });
  return { slots, admit: (client = 'a', bytes = 1) => slots.admit(client, bytes) };
}

function release(ticket: Ticket): void {
  ticket[Symbol.dispose]();
}

/** Which of these hold a slot, in the order they got it. */
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

describe('admission', () => {
  it('is decided at once: a slot, a place, or a refusal', () => {
    const { slots, admit } = queue(2, 1);
    admit();
    expect([slots.active, slots.waiting, slots.refused]).toEqual([1, 0, 0]);
    admit();
    admit();
    expect([slots.active, slots.waiting, slots.refused]).toEqual([2, 1, 0]);
    const refusal = refusalOf(admit);
    expect(refusal).toBeInstanceOf(RelayError);
    expect(refusal).toMatchObject({ code: 'concurrency_limited', retryAfterSeconds: 1 });
    expect([slots.active, slots.waiting, slots.refused]).toEqual([2, 1, 1]);
  });

  it('refuses exactly as many as are too many', () => {
    const { slots, admit } = queue(4, 100);
    const refusals = Array.from({ length: 150 }, () => refusalOf(admit)).filter((refusal) => refusal !== null);
    expect(refusals).toHaveLength(46);
    expect([slots.active, slots.waiting, slots.refused]).toEqual([4, 100, 46]);
  });

  it('does without a queue where nobody may wait', () => {
    const { admit } = queue(1, 0);
    const only = admit();
    expect(refusalOf(admit)).toMatchObject({ code: 'concurrency_limited' });
    release(only);
    expect(refusalOf(admit)).toBeNull();
  });

  it('bounds the bytes that wait, and only those', () => {
    const { slots, admit } = queue(1, 10, 100);
    admit('a', 5000);
    admit('a', 60);
    expect(refusalOf(() => admit('a', 41))).toMatchObject({ code: 'concurrency_limited' });
    expect(refusalOf(() => admit('a', 40))).toBeNull();
    expect(refusalOf(() => admit('a', 1))).toMatchObject({ code: 'concurrency_limited' });
    expect([slots.waiting, slots.refused]).toEqual([2, 2]);
  });

  it('gives the bytes back to the queue with the place, however it is left', async () => {
    const { admit } = queue(1, 10, 100);
    const running = admit('a', 0);
    const [granted, left, aborted] = [admit('a', 40), admit('a', 30), admit('a', 30)];
    const controller = new AbortController();
    const waiting = aborted.granted(controller.signal);
    const isFull = () => refusalOf(() => admit('a', 1)) !== null;

    expect(isFull()).toBe(true);
    release(left);
    release(admit('a', 30));
    controller.abort(gone);
    await expect(waiting).rejects.toBe(gone);
    release(admit('a', 60));
    release(running);
    await granted.granted(never);
    release(admit('a', 100));
    admit('a', 100);
    expect(isFull()).toBe(true);
  });
});

describe('a slot', () => {
  it('goes to the next at the very moment one is released', async () => {
    const { slots, admit } = queue(1, 2);
    const [first, second, third] = [admit(), admit(), admit()];
    const granted = watch({ first, second, third });
    release(first);
    expect([slots.active, slots.waiting]).toEqual([1, 1]);
    await settled();
    expect(granted).toEqual(['first', 'second']);
    release(second);
    await settled();
    expect(granted).toEqual(['first', 'second', 'third']);
  });

  it('is never taken by a newcomer before those who wait', async () => {
    const { slots, admit } = queue(1, 5);
    const running = admit();
    const waiting = admit();
    release(running);
    const late = admit();
    const granted = watch({ late, waiting });
    await settled();
    expect(granted).toEqual(['waiting']);
    expect([slots.active, slots.waiting]).toEqual([1, 1]);
  });

  it('goes round between clients', async () => {
    const { admit } = queue(1, 10);
    const running = admit('greedy');
    const tickets: Record<string, Ticket> = {
      greedy1: admit('greedy'),
      greedy2: admit('greedy'),
      greedy3: admit('greedy'),
      modest: admit('modest'),
    };
    const granted = watch(tickets);
    release(running);
    for (let turn = 0; turn < 4; turn++) {
      await settled();
      release(tickets[granted.at(-1) as string] as Ticket);
    }
    expect(granted).toEqual(['greedy1', 'modest', 'greedy2', 'greedy3']);
  });

  it('is released once, however often its ticket is disposed', () => {
    const { slots, admit } = queue(2, 5);
    const [first] = [admit(), admit(), admit(), admit()];
    release(first as Ticket);
    release(first as Ticket);
    expect([slots.active, slots.waiting]).toEqual([2, 1]);
  });
});

describe('a place in the queue', () => {
  it('is free at once when its ticket is disposed', async () => {
    const { slots, admit } = queue(1, 1);
    const [running, leaver] = [admit(), admit()];
    release(leaver);
    release(leaver);
    expect([slots.active, slots.waiting]).toEqual([1, 0]);
    const next = admit();
    const granted = watch({ next, leaver });
    release(running);
    await settled();
    expect(granted).toEqual(['next']);
  });

  it('is free at once when its signal is aborted, and its owner hears why', async () => {
    const { slots, admit } = queue(1, 1);
    admit();
    const controller = new AbortController();
    const waiting = admit().granted(controller.signal);
    controller.abort(gone);
    expect(slots.waiting).toBe(0);
    await expect(waiting).rejects.toBe(gone);
    expect(slots.active).toBe(1);
  });

  it('is free at once when its signal was aborted before', async () => {
    const { slots, admit } = queue(1, 1);
    admit();
    await expect(admit().granted(AbortSignal.abort(gone))).rejects.toBe(gone);
    expect(slots.waiting).toBe(0);
  });

  it('is not given up when the signal is aborted after the slot was granted', async () => {
    const { slots, admit } = queue(1, 1);
    const controller = new AbortController();
    const [running, next] = [admit(), admit()];
    const granted = next.granted(controller.signal);
    release(running);
    controller.abort(gone);
    await granted;
    expect(slots.active).toBe(1);
    await expect(next.granted(controller.signal)).rejects.toBe(gone);
    expect(slots.active).toBe(1);
    release(next);
    expect(slots.active).toBe(0);
  });
});

describe('idleness', () => {
  it('is there at once when nobody runs or waits', async () => {
    await queue(1, 1).slots.idle();
  });

  it('comes when the last one has left, running or waiting', async () => {
    const { slots, admit } = queue(1, 2);
    const [running, waiting, leaver] = [admit(), admit(), admit()];
    let idle = 0;
    for (let times = 0; times < 2; times++) void slots.idle().then(() => idle++);
    release(leaver);
    release(running);
    await settled();
    expect(idle).toBe(0);
    release(waiting);
    await settled();
    expect(idle).toBe(2);
  });

  it('is not there while one that was admitted waits for something else first', async () => {
    const { slots, admit } = queue(2, 1);
    const [running, parked] = [admit(), slots.park('a', 1)];
    let isIdle = false;
    void slots.idle().then(() => {
      isIdle = true;
    });
    release(running);
    await settled();
    expect(isIdle).toBe(false);
    release(parked);
    await settled();
    expect(isIdle).toBe(true);
  });

  it('comes again after new work', async () => {
    const { slots, admit } = queue(1, 0);
    release(admit());
    await slots.idle();
    const ticket = admit();
    let isIdle = false;
    void slots.idle().then(() => {
      isIdle = true;
    });
    await settled();
    expect(isIdle).toBe(false);
    release(ticket);
    await settled();
    expect(isIdle).toBe(true);
  });
});

it.each([1, 2, 3])('never exceeds a limit and never leaves a slot unused, whatever happens (seed %d)', async (seed) => {
  const random = randomNumbers(seed);
  const { slots, admit } = queue(3, 7, 50);
  const controllers = new Map<Ticket, AbortController>();
  for (let step = 0; step < 2000; step++) {
    const held = [...controllers.keys()][Math.floor(random() * controllers.size)];
    if (random() < 0.5 || held === undefined) {
      const refusal = refusalOf(() => {
        const ticket = admit(`client ${Math.floor(random() * 4)}`, Math.floor(random() * 12));
        const controller = new AbortController();
        controllers.set(ticket, controller);
        ticket.granted(controller.signal).catch(() => {});
        return ticket;
      });
      if (refusal !== null) expect(slots.active).toBe(3);
    } else {
      if (random() < 0.5) controllers.get(held)?.abort(gone);
      release(held);
      controllers.delete(held);
    }
    expect(slots.active).toBeLessThanOrEqual(3);
    expect(slots.waiting).toBeLessThanOrEqual(7);
    if (slots.waiting > 0) expect(slots.active).toBe(3);
    if (step % 100 === 0) await settled(1);
  }
  for (const ticket of controllers.keys()) release(ticket);
  await slots.idle();
  expect([slots.active, slots.waiting]).toEqual([0, 0]);
});
