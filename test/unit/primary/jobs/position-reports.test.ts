import { setMaxListeners } from 'node:events';
import type { Ticket } from '../../../../src/primary/jobs/ticket.js';
import { randomNumbers } from '../../../support/basics/random.js';
import { TestRoom } from '../../../support/jobs/test-room.js';

/** Minimum time between two reports, in milliseconds. */
const tellEveryMs = 50;
const never = new AbortController().signal;
setMaxListeners(0, never);

/** Creates a waiting room whose only slot is occupied. */
function busyRoom() {
  const test = new TestRoom({ maxActive: 1 });
  return Object.assign(test, { running: test.admit('key running') });
}

/** Collects the positions reported to a ticket from now on. */
function listen(ticket: Ticket): number[] {
  const told: number[] = [];
  ticket.onPosition = (position) => position !== told.at(-1) && told.push(position) > 0;
  return told;
}

describe('Positions', () => {
  it('are reported 50 ms after a change, to every waiting ticket', async () => {
    const { clock, admit, park } = busyRoom();
    const tickets = [admit('key a'), admit('key a'), admit('key b'), park('key b')];
    const told = tickets.map(listen);
    await clock.advance(tellEveryMs - 1);
    expect(told).toEqual([[], [], [], []]);
    await clock.advance(1);
    expect(told).toEqual([[1], [3], [2], [4]]);
  });

  it('are reported to each ticket at most once a second', async () => {
    const { clock, running, admit } = busyRoom();
    const [first, second] = [admit('key a'), admit('key a')];
    const told = listen(second);
    await clock.advance(tellEveryMs);
    running.release();
    await clock.advance(999);
    expect(told).toEqual([2]);
    await clock.advance(1);
    expect(told).toEqual([2, 1]);
    first.release();
    await clock.advance(60_000);
    expect([told, clock.pending]).toEqual([[2, 1], 0]);
  });

  it('are reported with the reason of the wait, and again when the reason changes', async () => {
    const { clock, park, unpark } = busyRoom();
    const parked = park();
    const told: [number, string][] = [];
    parked.onPosition = (...news) => told.push(news) > 0;
    await clock.advance(tellEveryMs);
    unpark(parked);
    await clock.advance(1000);
    expect(told).toEqual([
      [1, 'conversation'],
      [1, 'slot'],
    ]);
  });

  it('are reported once for many changes, with the latest value', async () => {
    const { clock, admit } = busyRoom();
    const earlier = Array.from({ length: 20 }, () => admit());
    const told = listen(admit());
    for (const ticket of earlier) {
      await clock.advance(1);
      ticket.release();
    }
    await clock.advance(tellEveryMs);
    expect(told).toEqual([1]);
  });

  it('are not reported while nothing changes, and need no timer then', async () => {
    const { clock, admit } = busyRoom();
    const told = listen(admit());
    await clock.advance(tellEveryMs);
    await clock.advance(60_000);
    expect([told, clock.pending]).toEqual([[1], 0]);
  });

  it('are reported in slices of 32 in a long queue, 50 ms apart, and again if something changes meanwhile', async () => {
    const { clock, admit } = busyRoom();
    const tickets = Array.from({ length: 100 }, () => admit());
    const told = tickets.map(listen);
    const counts = () => told.reduce((sum, { length }) => sum + length, 0);
    const slices: number[] = [];
    for (let slice = 0; slice < 5; slice++) {
      await clock.advance(tellEveryMs);
      slices.push(counts());
    }
    expect(slices).toEqual([32, 64, 96, 100, 100]);
    tickets[0]?.release();
    await clock.advance(tellEveryMs);
    tickets[1]?.release();
    await clock.advance(60_000);
    expect(told[99]?.at(-1)).toBe(98);
    expect(clock.pending).toBe(0);
  });

  it('do not count towards a slice if they have not changed', async () => {
    const { clock, admit } = busyRoom();
    const tickets = Array.from({ length: 1000 }, () => admit());
    for (const ticket of tickets) ticket.onPosition = () => false;
    const told = listen(tickets.at(-1) as Ticket);
    await clock.advance(tellEveryMs);
    expect(told).toEqual([1000]);
  });

  it('are no longer reported to a ticket that has its slot or has left', async () => {
    const { clock, running, admit } = busyRoom();
    const [granted, left] = [admit(), admit()];
    const last = admit();
    const told = [granted, left, last].map(listen);
    running.release();
    left.release();
    await clock.advance(tellEveryMs);
    expect(told).toEqual([[], [], [1]]);
  });

  it.each([1, 2, 3])('are reported as each ticket itself would compute them (seed %d)', async (seed) => {
    const random = randomNumbers(seed);
    const { clock, running, admit, park, unpark } = busyRoom();
    const tickets: Ticket[] = [];
    for (let step = 0; step < 200; step++) {
      const client = `user ${Math.floor(random() * 5)}` as const;
      if (random() < 0.6) tickets.push(random() < 0.2 ? park(client) : admit(client));
      else tickets.splice(Math.floor(random() * tickets.length), 1)[0]?.release();
      if (random() < 0.1) unpark(tickets[Math.floor(random() * tickets.length)] ?? running);
    }
    const told = tickets.map(listen);
    await clock.advance(10 * tellEveryMs);
    const waiting = tickets.flatMap((ticket, index) => (ticket.isWaiting ? [[ticket.position, told[index]]] : []));
    expect(waiting.length).toBeGreaterThan(10);
    expect(waiting.map(([, positions]) => positions)).toEqual(waiting.map(([position]) => [position]));
  });

  // If each ticket searched for its position, this would be three billion steps and not end in time.
  it('are told to 80,000 tickets of one client in one pass', async () => {
    const { clock, admit } = busyRoom();
    const tickets = Array.from({ length: 80_000 }, () => admit());
    let sum = 0;
    for (const ticket of tickets) {
      ticket.onPosition = (position) => {
        sum += position;
        return false;
      };
    }
    await clock.advance(120 * tellEveryMs);
    expect(sum).toBe((80_000 * 80_001) / 2);
  });
});
