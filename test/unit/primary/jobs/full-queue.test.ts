import { FullQueue } from '../../../../src/primary/jobs/queue-places.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { TestRoom } from '../../../support/jobs/test-room.js';

describe('A full queue', () => {
  function create() {
    const clock = new FakeClock();
    return { clock, queue: new FullQueue(clock), startedAt: clock.now() };
  }

  it('is reported after ten seconds', async () => {
    const { clock, queue, startedAt } = create();
    expect(queue.since).toBeNull();
    queue.changed(false);
    await clock.advance(9999);
    expect(queue.since).toBeNull();
    await clock.advance(1);
    expect(queue.since).toBe(startedAt);
  });

  it('remains reported if free places are taken again soon', async () => {
    const { clock, queue, startedAt } = create();
    queue.changed(false);
    for (let turn = 0; turn < 10; turn++) {
      await clock.advance(2000);
      queue.changed(true);
      await clock.advance(2000);
      queue.changed(false);
    }
    expect(queue.since).toBe(startedAt);
  });

  it('is no longer reported once a place has been free for five seconds, and starts anew later', async () => {
    const { clock, queue } = create();
    queue.changed(false);
    await clock.advance(20_000);
    queue.changed(true);
    await clock.advance(2500);
    queue.changed(true); // another place is free
    await clock.advance(2499);
    expect(queue.since).not.toBeNull();
    await clock.advance(1);
    expect(queue.since).toBeNull();
    const againAt = clock.now();
    queue.changed(false);
    await clock.advance(9999);
    expect(queue.since).toBeNull();
    await clock.advance(1);
    expect(queue.since).toBe(againAt);
  });
});

describe('The queue of the waiting room', () => {
  function create(maxWaiting: number) {
    return new TestRoom({ maxWaiting });
  }

  it('reports since when it has been full', async () => {
    const queue = create(2);
    const { clock, room } = queue;
    const tickets = (['key a', 'key b', 'key c'] as const).map((client) => queue.admit(client, 1));
    const startedAt = clock.now();
    expect(() => queue.admit('key d', 1)).toThrow('the queue is full');
    await clock.advance(10_000);
    expect(room.fullSince).toBe(startedAt);
    tickets[0]?.release();
    await clock.advance(5000);
    expect(room.fullSince).toBeNull();
  });

  it('is not reported as full while a place is free, nor if its size is zero', async () => {
    for (const maxWaiting of [0, 2]) {
      const queue = create(maxWaiting);
      const { clock, room } = queue;
      queue.admit('key a', 1);
      if (maxWaiting === 0) expect(() => queue.admit('key b', 1)).toThrow('the queue is full');
      else queue.admit('key b', 1);
      await clock.advance(60_000);
      expect(room.fullSince).toBeNull();
    }
  });
});
