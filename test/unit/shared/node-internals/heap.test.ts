import { getHeapSpaceStatistics } from 'node:v8';
import { collectAll, HeapKeeper } from '../../../../src/shared/node-internals/heap.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { settled } from '../../../support/basics/settled.js';

const idleMs = 3000;
/** Well above the growth that triggers a collection. */
const grownBytes = 64 * 1024 ** 2;
const bytesPerNumber = 8;

/** Returns memory of V8's heap, which is garbage once it is unreferenced. */
function garbage(): number[] {
  return new Array<number>(grownBytes / bytesPerNumber).fill(0);
}

/** Creates a keeper of the current heap. `quiet` advances the clock without work, and awaits collections. */
function keep() {
  const clock = new FakeClock();
  const state = { collections: 0, last: Promise.resolve() };
  const keeper = new HeapKeeper(clock, () => {
    state.collections++;
    state.last = collectAll();
    return state.last;
  });
  const quiet = async (forMs: number) => {
    await clock.advance(forMs);
    await state.last;
    await settled();
  };
  return { clock, keeper, state, quiet };
}

describe('The heap keeper', () => {
  it.each([1, 5])('collects garbage after three idle seconds, counted from the last activity of %d', async (rounds) => {
    const { clock, keeper, state } = keep();
    const held = garbage();
    for (let round = 0; round < rounds; round++) {
      keeper.touch();
      await clock.advance(idleMs - 1);
    }
    expect([state.collections, clock.pending]).toEqual([0, 1]);
    await clock.advance(1);
    expect(state.collections).toBe(1);
    expect(held).not.toHaveLength(0);
  });

  it('collects at the first idle period, then leaves the heap alone if it has not grown, and sleeps until the next activity', async () => {
    const { clock, keeper, state, quiet } = keep();
    keeper.touch();
    await quiet(idleMs);
    keeper.touch();
    await quiet(10 * idleMs);
    expect([state.collections, clock.pending]).toEqual([1, 0]);
  });

  it('collects again only if the heap has grown again', async () => {
    const { keeper, state, quiet } = keep();
    const held = [garbage()];
    keeper.touch();
    await quiet(idleMs);
    keeper.touch();
    await quiet(idleMs);
    expect(state.collections).toBe(1);
    held.push(garbage());
    keeper.touch();
    await quiet(idleMs);
    expect(state.collections).toBe(2);
    expect(held).toHaveLength(2);
  });
});

describe('A full garbage collection', () => {
  it('frees unreachable objects', async () => {
    const lost = new WeakRef(garbage());
    await settled();
    await collectAll();
    expect(lost.deref()).toBeUndefined();
  });

  it('shrinks a young generation that has grown', async () => {
    const young = () => getHeapSpaceStatistics().find((space) => space.space_name === 'new_space')?.space_size ?? 0;
    const held = Array.from({ length: 200_000 }, (_, index) => ({ text: `text ${index}` }));
    const grown = young();
    await collectAll();
    expect(grown).toBeGreaterThan(4 * 1024 ** 2);
    expect(young()).toBeLessThan(grown / 2);
    expect(held).toHaveLength(200_000);
  });
});
