import { consolePart } from '../../support/clients/console-parts.js';

interface FollowedView {
  readonly kind: string;
  readonly status?: Readonly<Record<string, unknown>>;
  readonly sinceMs?: number;
}
interface Follower {
  readonly view: { readonly value: FollowedView };
  start(): () => void;
}
interface Failures {
  readonly ApiError: new (status: number, body: object | null) => Error;
  readonly ServerGone: new () => Error;
}
interface ObservableOf {
  readonly Observable: new (value: string) => { set(value: string): void; subscribe(call: () => void): () => void };
}
interface FollowerPart {
  readonly StatusFollower: new (api: object, link: object, clock: object) => Follower;
}

const parts = Promise.all([
  consolePart<FollowerPart>('now/status-follower.mjs'),
  consolePart<Failures>('base/failures.mjs'),
  consolePart<ObservableOf>('base/observable.mjs'),
]);

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

/** Timers that a test fires. */
class Timers {
  time = 1_000_000;
  #timers: { at: number; call: () => void }[] = [];

  readonly now = () => this.time;
  readonly after = (ms: number, call: () => void) => {
    const timer = { at: this.time + ms, call };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  };

  async pass(ms: number): Promise<void> {
    this.time += ms;
    const due = this.#timers.filter(({ at }) => at <= this.time);
    this.#timers = this.#timers.filter(({ at }) => at > this.time);
    for (const { call } of due) call();
    await settle();
  }
}

const settle = () => new Promise((resolve) => setImmediate(resolve));

async function following() {
  const [{ StatusFollower }, failures, { Observable }] = await parts;
  const feeds: Feed[] = [];
  const clock = new Timers();
  const link = { state: new Observable('up') };
  const api = {
    events: (_: string, { signal }: { signal: AbortSignal }) => {
      feeds.push(new Feed(signal));
      return (feeds.at(-1) as Feed).events();
    },
  };
  const follower = new StatusFollower(api, link, clock);
  const stop = follower.start();
  await settle();
  const tell = async (event: string, data: object) => {
    feeds.at(-1)?.tell(event, data);
    await settle();
  };
  const end = async (error?: Error) => {
    feeds.at(-1)?.end(error);
    await settle();
  };
  return { follower, feeds, clock, link, stop, tell, end, ...failures };
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
    const { follower, feeds, clock, tell, end, stop } = await following();
    await tell('snapshot', { workers: [1] });
    await end();
    expect(follower.view.value).toMatchObject({ kind: 'old', sinceMs: clock.time, status: { workers: [1] } });
    await clock.pass(500);
    expect(feeds).toHaveLength(2);
    expect(follower.view.value.kind).toBe('old');
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
      const begin = clock.time;
      while (feeds.length === before) await clock.pass(250);
      waits.push(clock.time - begin);
    }
    expect(waits).toEqual([500, 1000, 2000, 4000, 8000, 8000]);
    await end(new ServerGone());
    const before = feeds.length;
    link.state.set('gone');
    await settle();
    expect(feeds).toHaveLength(before + 1);
    stop();
  });

  it('reconnects if nothing arrives for more than a minute and a half', async () => {
    const { follower, feeds, clock, tell, stop } = await following();
    await tell('snapshot', {});
    await clock.pass(60_000);
    await tell('change', {});
    await clock.pass(60_000);
    expect(follower.view.value.kind).toBe('live');
    await clock.pass(30_000);
    expect(feeds[0]?.signal.aborted).toBe(true);
    expect(follower.view.value.kind).toBe('old');
    stop();
  });

  it.each([401, 403, 404])('gives up if the answer is %d', async (status) => {
    const { follower, feeds, clock, end, ApiError } = await following();
    await end(new ApiError(status, null));
    expect(follower.view.value.kind).toBe('refused');
    await clock.pass(60_000);
    expect(feeds).toHaveLength(1);
  });

  it('does not give up if the service is busy, and requests nothing after it was stopped', async () => {
    const { follower, feeds, clock, tell, end, stop, ApiError } = await following();
    await end(new ApiError(429, null));
    expect(follower.view.value.kind).toBe('refused');
    await clock.pass(500);
    await tell('snapshot', {});
    expect(follower.view.value.kind).toBe('live');
    stop();
    await settle();
    await clock.pass(60_000);
    expect(feeds).toHaveLength(2);
  });
});
