import { setMaxListeners } from 'node:events';
import { SlotQueue, type Ticket } from '../../../src/primary/jobs/slot-queue.js';
import { settled } from '../../support/settled.js';

const gone = new Error('gone');
const never = new AbortController().signal;
setMaxListeners(0, never);

function queue(maxActive: number) {
  const slots = new SlotQueue({ maxActive, maxWaiting: 100, maxWaitingBytes: 1000 });
  return { slots, admit: (client = 'a') => slots.admit(client, 1), park: (client = 'a') => slots.park(client, 1) };
}

function release(ticket: Ticket): void {
  ticket[Symbol.dispose]();
}

/** What a ticket is told, as it is told it; ends with how the waiting ended. */
function listen(ticket: Ticket, signal = never): (number | string)[] {
  const told: (number | string)[] = [];
  const follow = async () => {
    for await (const position of ticket.positions(signal)) told.push(position);
  };
  void follow().then(
    () => told.push('granted'),
    (error: Error) => told.push(error.message),
  );
  return told;
}

describe('positions', () => {
  it('are none for a job that has its slot', async () => {
    const told = listen(queue(1).admit());
    await settled();
    expect(told).toEqual(['granted']);
  });

  it('count down to the slot, each told once', async () => {
    const { admit } = queue(1);
    const tickets = [admit(), admit(), admit(), admit()];
    const told = tickets.map((ticket) => listen(ticket));
    for (const ticket of tickets) {
      await settled();
      release(ticket);
    }
    await settled();
    expect(told).toEqual([['granted'], [1, 'granted'], [2, 1, 'granted'], [3, 2, 1, 'granted']]);
  });

  it('say how many slots are granted first, in fair order between clients', async () => {
    const { admit } = queue(1);
    const running = admit('a');
    const [a1, a2] = [listen(admit('a')), listen(admit('a'))];
    await settled();
    const b = admit('b');
    const b1 = listen(b);
    await settled();
    expect([a1, a2, b1]).toEqual([[1], [2, 3], [2]]); // the modest client goes before the second of the greedy one
    release(b);
    await settled();
    expect([a1, a2]).toEqual([[1], [2, 3, 2]]);
    release(running);
    await settled();
    expect([a1, a2]).toEqual([
      [1, 'granted'],
      [2, 3, 2, 1],
    ]);
  });

  it('are not told again where others come and go behind', async () => {
    const { admit } = queue(1);
    admit();
    const told = listen(admit());
    await settled();
    for (let count = 0; count < 5; count++) {
      release(admit());
      await settled();
    }
    expect(told).toEqual([1]);
  });

  it('stand behind all in order for a parked job, and change with them', async () => {
    const { admit, park } = queue(1);
    const running = admit();
    const parked = park();
    const told = listen(parked);
    await settled();
    const other = admit();
    await settled();
    expect(told).toEqual([1, 2]);
    parked.unpark();
    await settled();
    release(running);
    await settled();
    release(other);
    await settled();
    expect(told).toEqual([1, 2, 1, 'granted']);
  });

  it('end with the signal, whether the job is parked or in order', async () => {
    const { slots, admit, park } = queue(1);
    admit();
    const controller = new AbortController();
    const told = [listen(admit(), controller.signal), listen(park(), controller.signal)];
    await settled();
    controller.abort(gone);
    await settled();
    expect(told).toEqual([
      [1, 'gone'],
      [2, 'gone'],
    ]);
    expect([slots.active, slots.waiting]).toEqual([1, 0]);
  });

  it('skip what a slow listener has missed', async () => {
    const { admit } = queue(1);
    const tickets = [admit(), admit(), admit()];
    const positions = admit().positions(never);
    expect(await positions.next()).toEqual({ value: 3, done: false });
    for (const ticket of tickets.slice(0, 2)) release(ticket);
    expect(await positions.next()).toEqual({ value: 1, done: false });
    release(tickets[2] as Ticket);
    expect(await positions.next()).toEqual({ value: undefined, done: true });
  });

  it('leave nobody waiting for a change when all have gone', async () => {
    const { slots, admit } = queue(2);
    const tickets = Array.from({ length: 20 }, (_, index) => admit(`client ${index % 3}`));
    const told = tickets.map((ticket) => listen(ticket));
    let changes = 0;
    const changed = slots.changed.bind(slots);
    let waiting = 0;
    slots.changed = () => {
      waiting++;
      return changed().finally(() => {
        waiting--;
        changes++;
      });
    };
    for (const ticket of tickets) {
      await settled();
      release(ticket);
    }
    await settled();
    expect(changes).toBeGreaterThan(100);
    expect(waiting).toBe(0);
    expect(told.every((words) => words.at(-1) === 'granted')).toBe(true);
  });
});
