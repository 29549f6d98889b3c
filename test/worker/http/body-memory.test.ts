import { BodyMemory, type ReceivedBody } from '../../../src/worker/http/body-memory.js';
import { FakeClock } from '../../support/fake-clock.js';

const megabyte = Buffer.alloc(1024 ** 2);
/** What may be held while room is left for the whole of the oldest. */
const fullAfter = 112;

/** A client that sends a body, and is read or not. */
class FakeSource {
  isRead = true;
  isGivenUp = false;

  pause(): void {
    this.isRead = false;
  }

  resume(): void {
    this.isRead = true;
  }

  giveUp(): void {
    this.isGivenUp = true;
  }
}

function start() {
  const clock = new FakeClock();
  const memory = new BodyMemory(16 * 1024 ** 2, clock);
  const sources: FakeSource[] = [];
  const bodies: ReceivedBody[] = [];
  const open = (count: number, length = Infinity) => {
    for (let made = 0; made < count; made++)
      bodies.push(memory.open(sources[sources.push(new FakeSource()) - 1] as FakeSource, length));
  };
  const readOnes = () => sources.flatMap(({ isRead }, index) => (isRead ? [index] : []));
  const lost = () => sources.flatMap(({ isGivenUp }, index) => (isGivenUp ? [index] : []));
  const close = (index: number) => memory.close(bodies[index] as ReceivedBody);
  return { clock, bodies, open, readOnes, lost, close };
}

describe('Bodies that are being received', () => {
  it('are all read until they reach the bound together, then the oldest alone', () => {
    const { bodies, open, readOnes } = start();
    open(3);
    for (let count = 0; count < fullAfter - 1; count++) bodies[1]?.add(megabyte);
    expect(readOnes()).toEqual([0, 1, 2]);
    bodies[1]?.add(megabyte);
    expect(readOnes()).toEqual([0]);
    open(1);
    expect(readOnes()).toEqual([0]);
    open(1, 16 * 1024); // so small that waiting would save nothing
    expect(readOnes()).toEqual([0, 4]);
  });

  it('are read on, the next oldest first, when one has ended', () => {
    const { bodies, open, readOnes, close } = start();
    open(3);
    for (let count = 0; count < fullAfter + 10; count++) bodies[1]?.add(megabyte);
    close(0);
    expect(readOnes()).toEqual([0, 1]); // the first has ended: nobody cares
    close(1);
    close(1);
    expect(readOnes()).toEqual([0, 1, 2]);
  });

  it('are given up after ten seconds in which nothing has come', async () => {
    const { clock, bodies, open, lost } = start();
    open(2);
    await clock.advance(9000);
    bodies[0]?.add(megabyte);
    await clock.advance(999);
    expect(lost()).toEqual([]);
    await clock.advance(500);
    expect(lost()).toEqual([1]);
  });

  it('are given up after two seconds where others wait for what they hold, and never while they wait themselves', async () => {
    const { clock, bodies, open, lost } = start();
    open(3);
    for (let count = 0; count < fullAfter; count++) bodies[0]?.add(megabyte);
    await clock.advance(1999);
    expect(lost()).toEqual([]);
    await clock.advance(1);
    expect(lost()).toEqual([0]);
    await clock.advance(9999); // from here on the others are read
    expect(lost()).toEqual([0]);
  });

  it('need no timer when none is left', () => {
    const { clock, open, close } = start();
    open(2);
    expect(clock.pending).toBe(1);
    close(0);
    close(1);
    expect(clock.pending).toBe(0);
  });

  it('are put together as they came', () => {
    const { bodies, open } = start();
    open(1);
    bodies[0]?.add(Buffer.from('one '));
    bodies[0]?.add(Buffer.from('two'));
    expect(bodies[0]?.whole().toString()).toBe('one two');
  });
});
