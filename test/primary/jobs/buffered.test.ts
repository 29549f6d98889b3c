import { buffered } from '../../../src/primary/jobs/buffered.js';
import { settled } from '../../support/settled.js';

const broken = new Error('broken');

/** Counts without end, or up to `to`; says how far it has come and whether it was left well. */
class Source {
  produced = 0;
  finished = false;

  async *items(to = Number.POSITIVE_INFINITY, signal?: AbortSignal): AsyncGenerator<number> {
    try {
      while (this.produced < to && !signal?.aborted) yield ++this.produced;
    } finally {
      this.finished = true;
    }
  }
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const taken: T[] = [];
  for await (const item of items) taken.push(item);
  return taken;
}

const never = new AbortController().signal;

describe('a buffered source', () => {
  it('gives all its items in order, then its end', async () => {
    expect(await all(buffered(new Source().items(100), never, 8))).toHaveLength(100);
  });

  it('starts by itself, and runs as far ahead as it may', async () => {
    const source = new Source();
    const items = buffered(source.items(), never, 8);
    await settled();
    expect(source.produced).toBe(8);
    await items.next();
    await settled();
    expect(source.produced).toBe(9);
  });

  it('gives what came before it failed, then the error', async () => {
    async function* failing() {
      yield 1;
      throw broken;
    }
    const items = buffered(failing(), never, 8);
    await settled();
    expect(await items.next()).toEqual({ value: 1, done: false });
    await expect(items.next()).rejects.toBe(broken);
  });

  it('is held back no longer once the signal is aborted, read or not', async () => {
    const source = new Source();
    const controller = new AbortController();
    const items = buffered(source.items(Number.POSITIVE_INFINITY, controller.signal), controller.signal, 8);
    await settled();
    expect(source.finished).toBe(false);
    controller.abort(broken);
    await settled();
    expect(source.finished).toBe(true);
    expect(await all(items)).toHaveLength(8);
  });

  it('is not held back at all by a signal that was aborted before', async () => {
    const source = new Source();
    const items = buffered(source.items(100), AbortSignal.abort(broken), 8);
    await settled(50);
    expect(source.finished).toBe(true);
    expect(await all(items)).toHaveLength(100);
  });

  it('comes to its end when its reader leaves', async () => {
    const source = new Source();
    for await (const _ of buffered(source.items(100), never, 8)) break;
    await settled(50);
    expect(source.finished).toBe(true);
  });
});
