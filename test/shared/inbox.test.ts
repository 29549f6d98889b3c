import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Inbox } from '../../src/shared/inbox.js';
import { settled } from '../support/settled.js';

const broken = new Error('broken');

async function all<T>(inbox: Inbox<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of inbox) items.push(item);
  return items;
}

function filled(...items: readonly number[]): Inbox<number> {
  const inbox = new Inbox<number>(3);
  for (const item of items) inbox.push(item);
  return inbox;
}

describe('the inbox', () => {
  it('gives items in the order they came, then the end', async () => {
    const inbox = filled(1, 2, 3, 4);
    inbox.finish();
    expect(await all(inbox)).toEqual([1, 2, 3, 4]);
    expect(await inbox.next()).toEqual({ value: undefined, done: true });
  });

  it('keeps the order however reading and writing take turns', async () => {
    const inbox = new Inbox<number>(3);
    const seen: number[] = [];
    let written = 0;
    for (let round = 0; round < 200; round++) {
      for (let more = round % 5; more >= 0; more--) inbox.push(written++);
      for (let taken = round % 3; taken >= 0 && seen.length < written; taken--) {
        seen.push((await inbox.next()).value as number);
      }
    }
    inbox.finish();
    seen.push(...(await all(inbox)));
    expect(seen).toEqual(Array.from({ length: written }, (_, index) => index));
  });

  it('wakes a reader that waits for an item, the end, or an error', async () => {
    const [item, end, error] = [filled(), filled(), filled()];
    const waiting = [item.next(), end.next(), error.next()];
    item.push(7);
    end.finish();
    error.fail(broken);
    expect(await Promise.allSettled(waiting)).toEqual([
      { status: 'fulfilled', value: { value: 7, done: false } },
      { status: 'fulfilled', value: { value: undefined, done: true } },
      { status: 'rejected', reason: broken },
    ]);
  });

  it('gives what was waiting before it fails', async () => {
    const inbox = filled(1, 2);
    inbox.fail(broken);
    expect(await inbox.next()).toEqual({ value: 1, done: false });
    expect(await inbox.next()).toEqual({ value: 2, done: false });
    await expect(inbox.next()).rejects.toBe(broken);
    await expect(inbox.next()).rejects.toBe(broken);
  });

  it('drops what was waiting when it is cut', async () => {
    const inbox = filled(1, 2);
    inbox.cut(broken);
    await expect(inbox.next()).rejects.toBe(broken);
  });

  it('cuts short an end that has not been reached, but not one that has', async () => {
    const unread = filled(1);
    unread.finish();
    unread.cut(broken);
    await expect(unread.next()).rejects.toBe(broken);

    const read = filled();
    read.finish();
    read.cut(broken);
    expect(await read.next()).toEqual({ value: undefined, done: true });
  });

  it('keeps its first end, and takes nothing after it', async () => {
    const inbox = filled(1);
    inbox.finish();
    inbox.fail(broken);
    inbox.push(2);
    expect(await all(inbox)).toEqual([1]);
    expect(inbox.over).toBe(true);
  });

  it('ends for good when its reader leaves the loop', async () => {
    const inbox = filled(1, 2, 3);
    for await (const _ of inbox) break;
    inbox.push(4);
    expect(inbox.over).toBe(true);
    expect(await inbox.next()).toEqual({ value: undefined, done: true });
  });
});

describe('room in the inbox', () => {
  it('is there below the limit', async () => {
    const inbox = filled(1, 2);
    expect(inbox.full).toBe(false);
    await inbox.room();
    inbox.push(3);
    expect(inbox.full).toBe(true);
  });

  it('comes back when the reader has taken enough', async () => {
    const inbox = filled(1, 2, 3, 4);
    let hasRoom = false;
    const room = inbox.room().then(() => {
      hasRoom = true;
    });
    await inbox.next();
    await settled();
    expect(hasRoom).toBe(false); // one above the limit went in: three are left
    await inbox.next();
    await room;
  });

  it.each([
    ['it is finished', (inbox: Inbox<number>) => inbox.finish()],
    ['it fails', (inbox: Inbox<number>) => inbox.fail(broken)],
    ['it is cut', (inbox: Inbox<number>) => inbox.cut(broken)],
    ['its reader leaves', (inbox: Inbox<number>) => void inbox.return()],
  ])('holds no writer back once %s', async (_, end) => {
    const inbox = filled(1, 2, 3);
    const room = inbox.room();
    end(inbox);
    await room;
    await inbox.room();
  });

  it('is told after each item taken', async () => {
    const fullness: boolean[] = [];
    const inbox: Inbox<number> = new Inbox<number>(1, () => fullness.push(inbox.full));
    inbox.push(1);
    inbox.push(2);
    await inbox.next();
    await inbox.next();
    expect(fullness).toEqual([true, false]);
  });
});

it('lets go of what was taken, even if its reader never catches up', async () => {
  setFlagsFromString('--expose_gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  const inbox = new Inbox<object>(16);
  const taken: WeakRef<object>[] = [];
  inbox.push({});
  for (let round = 0; round < 100; round++) {
    inbox.push({});
    taken.push(new WeakRef((await inbox.next()).value as object));
  }
  await settled();
  collectGarbage();
  expect(taken.filter((item) => item.deref() !== undefined).length).toBeLessThan(5);
});
