import { fullCollection, HeapKeeper } from '../../../../src/shared/node-internals/heap.js';
import { FakeClock } from '../../../support/fake-clock.js';
import { settled } from '../../../support/settled.js';

const idleMs = 3000;
/** Well above the growth that is worth a collection. */
const grownBytes = 64 * 1024 ** 2;
const bytesPerNumber = 8;

/** Memory of V8's own heap, as long as it is held. */
function garbage(): number[] {
  return new Array<number>(grownBytes / bytesPerNumber).fill(0);
}

const collect = fullCollection();

/** A keeper of this very heap, from which all garbage has gone. */
function keep() {
  const clock = new FakeClock();
  const state = { collections: 0 };
  collect();
  const keeper = new HeapKeeper(clock, () => {
    state.collections++;
    collect();
  });
  return { clock, keeper, state };
}

describe('The keeper of the heap', () => {
  it('has it collected once nothing was done for three seconds', async () => {
    const { clock, keeper, state } = keep();
    const held = garbage();
    keeper.touch();
    await clock.advance(idleMs - 1);
    expect(state.collections).toBe(0);
    await clock.advance(1);
    expect(state.collections).toBe(1);
    expect(held).not.toHaveLength(0);
  });

  it('waits as long as something is done', async () => {
    const { clock, keeper, state } = keep();
    const held = garbage();
    for (let round = 0; round < 5; round++) {
      keeper.touch();
      await clock.advance(idleMs - 1);
    }
    expect([state.collections, clock.pending]).toEqual([0, 1]);
    await clock.advance(1);
    expect(state.collections).toBe(1);
    expect(held).not.toHaveLength(0);
  });

  it('collects at the first quiet of all, then leaves the heap alone where it has not grown, and sleeps until something is done', async () => {
    const { clock, keeper, state } = keep();
    keeper.touch();
    await clock.advance(idleMs);
    keeper.touch();
    await clock.advance(10 * idleMs);
    expect([state.collections, clock.pending]).toEqual([1, 0]);
  });

  it('has it collected again only where it has grown again', async () => {
    const { clock, keeper, state } = keep();
    const held = [garbage()];
    keeper.touch();
    await clock.advance(idleMs);
    keeper.touch();
    await clock.advance(idleMs);
    expect(state.collections).toBe(1);
    held.push(garbage());
    keeper.touch();
    await clock.advance(idleMs);
    expect(state.collections).toBe(2);
    expect(held).toHaveLength(2);
  });
});

it('A full collection takes what nothing refers to', async () => {
  const lost = new WeakRef(garbage());
  await settled();
  collect();
  expect(lost.deref()).toBeUndefined();
});
