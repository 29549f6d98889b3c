import { FakeClock } from '../../support/basics/fake-clock.js';
import { settled } from '../../support/basics/settled.js';
import { consoleParts } from '../../support/clients/console-parts.js';

interface FollowedView {
  readonly kind: string;
  readonly status?: Readonly<Record<string, unknown>>;
  readonly sinceMs?: number;
}
interface Follower {
  readonly view: { readonly value: FollowedView };
  start(): () => void;
}
interface Parts {
  readonly StatusFollower: new (api: object, link: object, clock: object) => Follower;
  readonly ApiError: new (status: number, body: object | null) => Error;
  readonly ServerGone: new () => Error;
  readonly Observable: new (value: string) => { set(value: string): void };
}

const parts = consoleParts<Parts>('now/status-follower.mjs', 'base/failures.mjs', 'base/observable.mjs');

/** A stream that a test writes to and ends. */
class Feed {
  readonly signal: AbortSignal;
  #items: (object | Error | null)[] = [];
  #wake = () => {};

  constructor(signal: AbortSignal) {
    this.signal = signal;
    signal.addEventListener('abort', () => this.end(signal.reason as Error));
  }

  tell(event: string, data: object): void {
    this.#add({ event, data: JSON.stringify(data) });
  }

  end(error: Error | null = null): void {
    this.#add(error);
  }

  #add(item: object | Error | null): void {
    this.#items.push(item);
    this.#wake();
  }

  async *events() {
    for (;;) {
      const item = this.#items.shift();
      if (item === null) return;
      if (item !== undefined && !('data' in item)) throw item; // an error of another realm than Jest's
      if (item !== undefined) yield item;
      else
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
    }
  }
}

async function following() {
  const { StatusFollower, Observable, ...failures } = await parts;
  const feeds: Feed[] = [];
  const clock = new FakeClock();
  const pageClock = { now: () => clock.now(), after: (ms: number, call: () => void) => clock.after(ms, call) };
  const link = { state: new Observable('up') };
  const api = {
    events: (_: string, { signal }: { signal: AbortSignal }) => {
      feeds.push(new Feed(signal));
      return (feeds.at(-1) as Feed).events();
    },
  };
  const follower = new StatusFollower(api, link, pageClock);
  const stop = follower.start();
  await settled();
  const tell = async (event: string, data: object) => {
    feeds.at(-1)?.tell(event, data);
    await settled();
  };
  const end = async (error?: Error) => {
    feeds.at(-1)?.end(error);
    await settled();
  };
  return { follower, feeds, clock, link, stop, tell, end, kind: () => follower.view.value.kind, ...failures };
}

describe('The status follower', () => {
  it('starts with a snapshot and replaces whole sections that change', async () => {
    const { follower, tell, stop } = await following();
    expect(follower.view.value).toEqual({ kind: 'opening' });
    await tell('snapshot', { service: { status: 'ok' }, workers: [1, 2] });
    await tell('change', { workers: [3] });
    expect(follower.view.value).toMatchObject({ kind: 'live', status: { service: { status: 'ok' }, workers: [3] } });
    stop();
  });

  it('is stale once the stream has ended, and live again with the next snapshot', async () => {
    const { follower, kind, feeds, clock, tell, end, stop } = await following();
    await tell('snapshot', { workers: [1] });
    await end();
    expect(follower.view.value).toMatchObject({ kind: 'old', sinceMs: clock.now(), status: { workers: [1] } });
    await clock.advance(500);
    expect(feeds).toHaveLength(2);
    expect(kind()).toBe('old');
    await tell('snapshot', { breaker: {} });
    expect(follower.view.value).toMatchObject({ kind: 'live', status: { breaker: {} } });
    expect(follower.view.value.status).not.toHaveProperty('workers');
    stop();
  });

  it('reconnects after longer and longer waits while the server is gone, and at once when it is back', async () => {
    const { feeds, clock, link, end, stop, ServerGone } = await following();
    const waits: number[] = [];
    for (let attempt = 0; attempt < 6; attempt++) {
      await end(new ServerGone());
      const before = feeds.length;
      const begin = clock.now();
      while (feeds.length === before) await clock.advance(250);
      waits.push(clock.now() - begin);
    }
    expect(waits).toEqual([500, 1000, 2000, 4000, 8000, 8000]);
    await end(new ServerGone());
    const before = feeds.length;
    link.state.set('gone');
    await settled();
    expect(feeds).toHaveLength(before + 1);
    stop();
  });

  it('reconnects if nothing arrives for more than a minute and a half', async () => {
    const { kind, feeds, clock, tell, stop } = await following();
    await tell('snapshot', {});
    await clock.advance(60_000);
    await tell('change', {});
    await clock.advance(60_000);
    expect(kind()).toBe('live');
    await clock.advance(30_000);
    expect(feeds[0]?.signal.aborted).toBe(true);
    expect(kind()).toBe('old');
    stop();
  });

  it.each([401, 403, 404])('gives up if the answer is %d', async (status) => {
    const { kind, feeds, clock, end, ApiError } = await following();
    await end(new ApiError(status, null));
    expect(kind()).toBe('refused');
    await clock.advance(60_000);
    expect(feeds).toHaveLength(1);
  });

  it('does not give up if the service is busy, and requests nothing after it was stopped', async () => {
    const { kind, feeds, clock, tell, end, stop, ApiError } = await following();
    await end(new ApiError(429, null));
    expect(kind()).toBe('refused');
    await clock.advance(500);
    await tell('snapshot', {});
    expect(kind()).toBe('live');
    stop();
    await settled();
    await clock.advance(60_000);
    expect(feeds).toHaveLength(2);
  });
});
