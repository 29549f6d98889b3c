import { getEventListeners } from 'node:events';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { BoundedQueue, orAborted } from '../../../src/shared/async.js';
import { settled } from '../../support/basics/settled.js';

const reason = new Error('enough');

describe('A promise awaited with a signal', () => {
  it('returns its value or its error, and leaves no listener', async () => {
    const { signal } = new AbortController();
    expect(await orAborted(Promise.resolve(7), signal)).toBe(7);
    await expect(orAborted(Promise.reject(reason), signal)).rejects.toBe(reason);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  it('rejects as soon as the signal aborts', async () => {
    const controller = new AbortController();
    const waiting = orAborted(new Promise(() => {}), controller.signal);
    controller.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
  });

  it('rejects at once if the signal has already aborted', async () => {
    await expect(orAborted(Promise.resolve(7), AbortSignal.abort(reason))).rejects.toBe(reason);
  });

  it('still resolves for others', async () => {
    let finish: (value: number) => void = () => {};
    const shared = new Promise<number>((resolve) => {
      finish = resolve;
    });
    const controller = new AbortController();
    const [one, other] = [orAborted(shared, controller.signal), orAborted(shared, new AbortController().signal)];
    controller.abort(reason);
    await expect(one).rejects.toBe(reason);
    finish(7);
    expect(await other).toBe(7);
  });
});

const broken = new Error('broken');

async function all<T>(queue: BoundedQueue<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of queue) items.push(item);
  return items;
}

function filled(...items: readonly number[]): BoundedQueue<number> {
  const queue = new BoundedQueue<number>();
  for (const item of items) queue.push(item);
  return queue;
}

describe('A queue', () => {
  it('preserves the order for any sequence of reads and writes', async () => {
    const queue = filled();
    const seen: number[] = [];
    let written = 0;
    for (let round = 0; round < 200; round++) {
      for (let more = round % 5; more >= 0; more--) queue.push(written++);
      for (let taken = round % 3; taken >= 0 && seen.length < written; taken--) {
        seen.push((await queue.next()).value as number);
      }
    }
    queue.finish();
    seen.push(...(await all(queue)));
    expect(seen).toEqual(Array.from({ length: written }, (_, index) => index));
  });

  it('wakes a reader that waits for an item, the end, or an error', async () => {
    const [item, end, error, cut] = [filled(), filled(), filled(), filled()];
    const waiting = [item.next(), end.next(), error.next(), cut.next()];
    item.push(7);
    end.finish();
    error.fail(broken);
    cut.cut(broken);
    expect(await Promise.allSettled(waiting)).toEqual([
      { status: 'fulfilled', value: { value: 7, done: false } },
      { status: 'fulfilled', value: { value: undefined, done: true } },
      { status: 'rejected', reason: broken },
      { status: 'rejected', reason: broken },
    ]);
  });

  it('yields waiting items before it fails', async () => {
    const queue = filled(1, 2);
    queue.fail(broken);
    expect(await queue.next()).toEqual({ value: 1, done: false });
    expect(await queue.next()).toEqual({ value: 2, done: false });
    await expect(queue.next()).rejects.toBe(broken);
    await expect(queue.next()).rejects.toBe(broken);
  });

  it('drops waiting items when it is cut', async () => {
    const queue = filled(1, 2);
    queue.cut(broken);
    await expect(queue.next()).rejects.toBe(broken);
  });

  it('can be cut after it is finished and before it is read to its end', async () => {
    const unread = filled(1);
    unread.finish();
    unread.cut(broken);
    await expect(unread.next()).rejects.toBe(broken);

    const read = filled(1);
    read.finish();
    expect(await all(read)).toEqual([1]);
    read.cut(broken);
    expect(await read.next()).toEqual({ value: undefined, done: true });
  });

  it('retains its first end, and accepts nothing afterwards', async () => {
    const queue = filled(1);
    expect(queue.isOver).toBe(false);
    queue.finish();
    queue.fail(broken);
    queue.push(2);
    expect(await all(queue)).toEqual([1]);
    expect(queue.isOver).toBe(true);
  });

  it('ends permanently when its reader leaves the loop', async () => {
    const queue = filled(1, 2, 3);
    for await (const _ of queue) break;
    queue.push(4);
    expect(queue.isOver).toBe(true);
    expect(await queue.next()).toEqual({ value: undefined, done: true });
  });
});

describe('The writer of a queue', () => {
  async function afterTaking(take: (queue: BoundedQueue<number>) => Promise<unknown>): Promise<number> {
    let taken = 0;
    const queue = new BoundedQueue<number>(() => taken++);
    for (const item of [1, 2, 3]) queue.push(item);
    queue.finish();
    await take(queue);
    return taken;
  }

  it('is notified of each item read, and not of the end', async () => {
    expect(await afterTaking((queue) => queue.next())).toBe(1);
    expect(await afterTaking(all)).toBe(3);
  });

  it.each<[string, (queue: BoundedQueue<number>) => Promise<unknown>]>([
    ['its reader leaves', (queue) => queue.return()],
    ['it is cut', async (queue) => queue.cut(broken)],
  ])('is not notified of items that are dropped because %s', async (_, drop) => {
    expect(await afterTaking(drop)).toBe(0);
  });

  it('can enforce a limit by counting the items read', async () => {
    const [bound, total] = [4, 100];
    let [written, waiting, peak] = [0, 0, 0];
    const queue: BoundedQueue<number> = new BoundedQueue(() => {
      waiting--;
      fill();
    });
    const fill = () => {
      for (; waiting < bound && written < total; waiting++) queue.push(written++);
      peak = Math.max(peak, waiting);
      if (written === total) queue.finish();
    };
    fill();
    expect(await all(queue)).toHaveLength(total);
    expect(peak).toBe(bound);
  });
});

it('A queue does not retain items that were read, even if its reader never catches up', async () => {
  setFlagsFromString('--expose_gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  const queue = new BoundedQueue<object>();
  const taken: WeakRef<object>[] = [];
  queue.push({});
  for (let round = 0; round < 100; round++) {
    queue.push({});
    taken.push(new WeakRef((await queue.next()).value as object));
  }
  await settled();
  collectGarbage();
  expect(taken.filter((item) => item.deref() !== undefined).length).toBeLessThan(5);
});
