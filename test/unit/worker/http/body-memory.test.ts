import type { ClientText } from '../../../../src/shared/client.js';
import { BodyMemory, type ReceivedBody } from '../../../../src/worker/http/body-memory.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';

const limitMegabytes = 16;
/** Megabytes of bodies up to which one more whole body has room. */
const fullAfter = 112;
const bound = 128;
const limitBytes = limitMegabytes * 1024 ** 2;

/** Returns this many megabytes. */
function bytes(count: number): Buffer {
  return Buffer.alloc(count * 1024 ** 2);
}

type Fate = 'read' | 'waits' | 'too slow' | 'gave way';

class FakeSource {
  fate: Fate = 'read';

  pause(): void {
    this.fate = 'waits';
  }

  resume(): void {
    this.fate = 'read';
  }

  giveUp(): void {
    this.fate = 'too slow';
  }

  yield(): void {
    this.fate = 'gave way';
  }
}

function start() {
  const clock = new FakeClock();
  const memory = new BodyMemory(limitBytes, clock);
  const sources: FakeSource[] = [];
  const bodies: ReceivedBody[] = [];
  /** Opens a body of which this many megabytes arrive at once. */
  const open = (client: ClientText, come = 0, length = limitBytes): ReceivedBody => {
    const source = new FakeSource();
    sources.push(source);
    const body = memory.open(source, length, client);
    bodies.push(body);
    if (come > 0) body.addBytes(bytes(come));
    return body;
  };
  const fates = () => sources.map(({ fate }) => fate);
  const held = () => bodies.reduce((sum, body) => sum + body.bytes, 0) / 1024 ** 2;
  const close = (body: ReceivedBody) => memory.closeBody(body);
  return { clock, bodies, open, fates, held, close };
}

let { clock, bodies, open, fates, held, close } = start();
beforeEach(() => {
  ({ clock, bodies, open, fates, held, close } = start());
});

/** Fills the memory with eight bodies of 14 MB of this client. */
function fill(client: ClientText): ReceivedBody[] {
  return Array.from({ length: 8 }, () => open(client, fullAfter / 8));
}

describe('Bodies that are being received', () => {
  it('are all read until they reach the limit together, then only those that fit, and the start of any', () => {
    fill('key one').at(-1)?.addBytes(Buffer.alloc(1));
    expect(fates()).toEqual(Array(8).fill('read')); // the remaining 2 MB of each fit
    const late = open('key one');
    expect(fates()[8]).toBe('read');
    late.addBytes(Buffer.alloc(64 * 1024));
    expect(fates()[8]).toBe('read');
    late.addBytes(Buffer.alloc(1));
    expect(fates()[8]).toBe('waits'); // the others may need all of the rest
  });

  it('never exceed the limit, except for their first bytes', () => {
    const piece = Buffer.alloc(64 * 1024);
    const count = 20;
    for (let opened = 0; opened < count; opened++) open('key one');
    const readOnes = () => bodies.filter((body, index) => fates()[index] === 'read' && body.remainingBytes > 0);
    for (let some = readOnes(); some.length > 0; some = readOnes()) for (const body of some) body.addBytes(piece);
    expect(held()).toBeGreaterThan(fullAfter);
    expect(held()).toBeLessThanOrEqual(bound + count / 16);
    expect(fates()).toContain('waits');
  });

  it('are resumed when there is room, starting with the clients that would use least', () => {
    for (let count = 0; count < 8; count++) open('key one', fullAfter / 8, (fullAfter / 8) * 1024 ** 2);
    const first = open('key two', 3);
    open('key one', 1, 8 * 1024 ** 2);
    open('key three', 1, 9 * 1024 ** 2);
    expect(fates().slice(8)).toEqual(['read', 'waits', 'waits']);
    close(first); // 14 MB are free
    expect(fates().slice(9)).toEqual(['waits', 'read']);
  });

  it('are all resumed when memory is no longer short', () => {
    const [first] = fill('key one') as [ReceivedBody];
    for (const client of ['key one', 'key two', 'key three'] as const) open(client, 3);
    expect(fates().slice(8)).toEqual(['waits', 'waits', 'waits']);
    close(first);
    expect(fates().slice(8)).toEqual(['read', 'read', 'read']);
  });

  it('always include one that is read, however large they may be', () => {
    const large = Array.from({ length: 9 }, () => open('key one', 13));
    expect(fates().filter((fate) => fate === 'read').length).toBeGreaterThan(0);
    for (const body of large) close(body);
    expect(fates()).toEqual(Array(9).fill('read'));
  });

  it('are dropped after ten seconds without data', async () => {
    const [talking] = [open('key one'), open('key one')];
    await clock.advance(9000);
    talking.addBytes(bytes(1));
    await clock.advance(999);
    expect(fates()).toEqual(['read', 'read']);
    await clock.advance(500);
    expect(fates()).toEqual(['read', 'too slow']);
  });

  it('need no timer when none is left', () => {
    const both = [open('key one'), open('key two')];
    expect(clock.pending).toBe(1);
    for (const body of both) close(body);
    expect(clock.pending).toBe(0);
  });

  it('are joined in order, and are not counted once they are closed', () => {
    const body = open('key one');
    const pieces = ['one ', 'two ', 'x'.repeat(5000), ' three', ' four ', 'y'.repeat(5000), 'z'];
    for (const piece of pieces) body.addBytes(Buffer.from(piece));
    expect(body.whole().toString()).toBe(pieces.join(''));
    close(body);
    const before = held();
    body.addBytes(bytes(1)); // in transit when the body was given up
    expect(held()).toBe(before);
    expect(body.whole()).toHaveLength(0);
  });

  it('need little more memory than their bytes, however small the pieces', () => {
    const body = open('key one');
    const memory = () => process.memoryUsage().heapUsed + process.memoryUsage().external;
    const before = memory();
    for (let count = 0; count < 200_000; count++) body.addBytes(Buffer.allocUnsafeSlow(1).fill('x'));
    expect(body.whole()).toHaveLength(200_000);
    expect(memory() - before).toBeLessThan(40 * 1024 ** 2); // 90 MB if each piece were stored, without garbage
  });
});

describe('While memory is short', () => {
  it('bodies that receive less than 64 KB in a second are dropped, even after a fast start', async () => {
    const dripping = fill('key one');
    const fast = dripping[7] as ReceivedBody;
    open('key one', 3); // 13 MB more do not fit
    for (let quarters = 0; quarters < 8; quarters++) {
      await clock.advance(125);
      for (const body of dripping) body.addBytes(Buffer.alloc(1));
      fast.addBytes(Buffer.alloc(20 * 1024));
      await clock.advance(125);
    }
    expect(fates()[7]).toBe('read');
    expect(fates().slice(0, 7)).toContain('too slow');
    expect(fates()[8]).toBe('read'); // no more than necessary
    expect(fates().filter((fate) => fate === 'too slow').length).toBeLessThan(7);
  });

  it('slow bodies are not dropped if no body waits', async () => {
    const dripping = fill('key one');
    for (let seconds = 0; seconds < 30; seconds++) {
      for (const body of dripping) body.addBytes(Buffer.alloc(1));
      await clock.advance(1000);
    }
    expect(fates()).toEqual(Array(8).fill('read'));
  });

  it('waiting bodies are not dropped as slow', async () => {
    const busy = fill('key one');
    open('key one', 3);
    for (let quarters = 0; quarters < 60; quarters++) {
      for (const body of busy) body.addBytes(Buffer.alloc(30 * 1024));
      await clock.advance(250);
    }
    expect(fates()).toEqual([...Array(8).fill('read'), 'waits']);
  });

  it('a client that uses more than a waiting one would use loses a body within half a second', async () => {
    const greedy = fill('key greedy');
    open('key modest', 1);
    expect(fates()[8]).toBe('waits');
    for (let quarters = 0; quarters < 2; quarters++) {
      for (const body of greedy) body.addBytes(Buffer.alloc(20 * 1024)); // fast enough
      await clock.advance(250);
    }
    expect(fates()[8]).toBe('read');
    expect(fates().filter((fate) => fate === 'gave way')).toHaveLength(1);
  });

  it('two clients end up with half of it each, and a client with less loses nothing', async () => {
    fill('key greedy');
    const heldBy = (client: ClientText) =>
      bodies.filter(({ owner }, index) => owner.name === client && ['read', 'waits'].includes(fates()[index] ?? ''));
    for (let round = 0; round < 20; round++) {
      open('key other', 1);
      for (const [index, body] of bodies.entries()) {
        if (fates()[index] === 'read' && body.remainingBytes > 1024 ** 2) body.addBytes(bytes(1));
      }
      await clock.advance(250);
    }
    const [greedy, other] = (['key greedy', 'key other'] as const).map((client) =>
      heldBy(client).reduce((sum, body) => sum + body.bytes / 1024 ** 2, 0),
    ) as [number, number];
    expect(greedy).toBeGreaterThanOrEqual(40);
    expect(greedy).toBeLessThanOrEqual(80);
    expect(other).toBeGreaterThan(30);
    expect(greedy + other).toBeLessThanOrEqual(bound + 2);
  });

  it('many clients with a little each leave room for one more', async () => {
    for (let client = 0; client < 126; client++) open(`user ${client}`, 1, 2 * 1024 ** 2);
    const late = open('key late', 0, 200 * 1024);
    late.addBytes(Buffer.alloc(100 * 1024));
    await clock.advance(500);
    expect(fates()[126]).toBe('read');
  });
});
