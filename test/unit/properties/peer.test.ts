import { deepEqual, equal, ok } from 'node:assert/strict';
import { array, constant, constantFrom, nat, oneof, record } from 'fast-check';
import { z } from 'zod';
import { BoundedQueue, withResolvers } from '../../../src/shared/async.js';
import { cancelled, RelayError } from '../../../src/shared/errors.js';
import { type Handlers, Peer, streamWindow } from '../../../src/shared/ipc/peer.js';
import { type Player, pick, playAll } from '../../support/basics/properties.js';
import { settled } from '../../support/basics/settled.js';
import { ChannelPair } from '../../support/jobs/channel-pair.js';

const calls = {
  follow: { request: z.object({ number: z.int() }), item: z.int() },
  ask: { request: z.object({ number: z.int() }), answer: z.int() },
};
type FollowCalls = typeof calls;

type PeerStep =
  | { readonly type: 'ask' | 'follow'; readonly side: number }
  | { readonly type: 'answer' | 'refuse' | 'finish' | 'break-off' | 'cancel' | 'leave'; readonly which: number }
  | { readonly type: 'produce' | 'take'; readonly which: number; readonly count: number }
  | { readonly type: 'close' };

const steps = array(
  oneof(
    { weight: 3, arbitrary: record({ type: constantFrom('ask', 'follow'), side: nat(1) }) },
    {
      weight: 3,
      arbitrary: record({
        type: constantFrom('answer', 'refuse', 'finish', 'break-off', 'cancel', 'leave'),
        which: nat(9),
      }),
    },
    { weight: 6, arbitrary: record({ type: constantFrom('produce', 'take'), which: nat(9), count: nat(20) }) },
    record({ type: constant('close' as const) }),
  ),
  { maxLength: 30, size: 'max' },
);

/** A call as both ends see it. */
class Watched {
  readonly controller = new AbortController();
  /** Numbers of items that the server has yielded and the caller has taken. */
  yielded = 0;
  produced = 0;
  taken = 0;
  /** Every end that the caller has seen. */
  readonly ends: string[] = [];
  /** Number of items that the caller still wants. */
  wanted = 0;
  isRead = false;
  isLeft = false;
  isServed = false;
  wasServed = false;
  items: AsyncGenerator<number> | null = null;
  readonly answer = withResolvers<number>();
  readonly source = new BoundedQueue<number>();

  constructor() {
    this.answer.promise.catch(() => {}); // may be rejected before anything awaits it
  }
}

/** Runs steps on two peers that call each other, and observes every call at both ends. */
class PeerPlayer implements Player<PeerStep> {
  readonly #pair = new ChannelPair();
  readonly #faults: unknown[] = [];
  readonly #calls: Watched[] = [];
  readonly #peers = [this.#pair.left, this.#pair.right].map(
    (end) => new Peer(end, calls, calls, this.#handlers, (fault) => this.#faults.push(fault)),
  );
  #isClosed = false;

  async perform(step: PeerStep): Promise<void> {
    if (step.type === 'close') return this.#close();
    if ('side' in step) return this.#begin(step.type, step.side);
    const call = pick(this.#calls, step.which);
    if (call === undefined) return;
    if ('count' in step) return step.type === 'take' ? take(call, step.count) : produce(call, step.count);
    if (step.type === 'answer') call.answer.resolve(1);
    else if (step.type === 'refuse') call.answer.reject(new RelayError('not_found', 'none'));
    else if (step.type === 'finish') call.source.finish();
    else if (step.type === 'break-off') call.source.fail(new RelayError('not_found', 'none'));
    else if (step.type === 'cancel') call.controller.abort(cancelled('enough'));
    else void leave(call);
  }

  check(): void {
    for (const call of this.#calls) {
      ok(call.ends.length <= 1);
      ok(call.yielded >= call.taken);
      ok(call.yielded - call.taken <= streamWindow + 1); // the last one waits for credit
    }
    deepEqual(
      this.#calls.flatMap(({ ends }) => ends).filter((end) => end === 'ERR_ASSERTION'),
      [],
    ); // each item came in its order
    deepEqual(this.#faults, []);
  }

  async finish(): Promise<void> {
    this.#close();
    for (const call of this.#calls) await take(call, 1000);
    await settled();
    this.check();
    deepEqual(
      this.#calls.filter(({ isServed }) => isServed),
      [],
    );
    deepEqual(
      this.#calls.map(({ ends }) => ends.length),
      this.#calls.map(() => 1),
    );
    for (const peer of this.#peers) await expect(peer.call('ask', { number: 0 })).rejects.toMatchObject(asClosed);
  }

  get #handlers(): Handlers<FollowCalls> {
    return {
      ask: ({ number }) => (this.#calls[number] as Watched).answer.promise,
      follow: ({ number }, signal) => serve(this.#calls[number] as Watched, signal),
    };
  }

  #begin(type: 'ask' | 'follow', side: number): void {
    const call = new Watched();
    const number = this.#calls.push(call) - 1;
    const peer = this.#peers[side] as Peer<FollowCalls, FollowCalls>;
    if (type === 'follow') call.items = peer.stream('follow', { number }, call.controller.signal);
    else
      void peer.call('ask', { number }).then(
        () => call.ends.push('answered'),
        (error) => call.ends.push((error as RelayError).code),
      );
  }

  #close(): void {
    if (!this.#isClosed) this.#pair.close();
    this.#isClosed = true;
  }
}

const asClosed = { code: 'cancelled' };

function produce(call: Watched, count: number): void {
  for (let more = 0; more < count; more++) call.source.push(++call.produced);
}

/** Takes items in order, without gaps. Later items are taken when they arrive. */
async function take(call: Watched, count: number): Promise<void> {
  call.wanted = Math.min(call.wanted + count, 1000);
  if (call.items !== null && !call.isRead && !call.isLeft) void read(call, call.items);
  await settled(4);
}

async function read(call: Watched, items: AsyncGenerator<number>): Promise<void> {
  call.isRead = true;
  try {
    while (call.wanted > 0 && call.ends.length === 0 && !call.isLeft) {
      const { value, done } = await items.next();
      if (done === true) call.ends.push('finished');
      else equal(value, ++call.taken);
      call.wanted--;
    }
  } catch (error) {
    call.ends.push((error as Partial<RelayError>).code ?? String(error));
  }
  call.isRead = false;
}

/** Stops reading at any moment. */
async function leave(call: Watched): Promise<void> {
  if (call.items === null || call.isLeft || call.ends.length > 0) return;
  call.isLeft = true;
  await call.items.return(undefined);
  if (call.ends.length === 0) call.ends.push('left');
}

async function* serve(call: Watched, signal: AbortSignal): AsyncGenerator<number> {
  equal(call.wasServed, false); // no call is served twice
  [call.isServed, call.wasServed] = [true, true];
  const stop = () => call.source.fail(signal.reason);
  signal.addEventListener('abort', stop, { once: true });
  try {
    for await (const item of call.source) {
      call.yielded++;
      yield item;
    }
  } finally {
    call.isServed = false;
  }
}

it('The peer ends each call once at both ends, and delivers each item once and in order', async () => {
  await playAll<PeerStep>(steps, () => new PeerPlayer());
}, 3_600_000);
