import { withResolvers } from '../../shared/async/promises.js';
import type { Clock, StopTimer } from '../../shared/clock.js';
import { RelayError } from '../../shared/errors.js';
import { EventStream } from '../http/event-stream.js';
import type { Primary, Reply } from '../http/exchange.js';
import { untilGone } from '../http/responses.js';
import { Audience } from './status-audience.js';

/** Each holds a connection, and what its client has not taken yet. */
const maxViewers = 200;
/** A key that is revoked or has expired shows nothing any more after this time. */
const betweenChecksMs = 5000;
const retryAfterSeconds = 10;

/** What a viewer sees, and whether it still may: asked again and again. */
export interface View {
  readonly client: string;
  readonly withNames: boolean;
  readonly isAllowed: () => boolean;
}

interface OpenView extends View {
  readonly end: () => void;
}

/**
 * Owns the open answers to GET /status/stream of this worker. They end when the client goes, when it may no longer see
 * what it sees, and when the worker is about to exit: whoever wants to see more comes again.
 */
export class StatusViewers {
  readonly #clock: Clock;
  readonly #closing: AbortSignal;
  readonly #audiences: Readonly<Record<'named' | 'nameless', Audience>>;
  readonly #views = new Map<Reply, OpenView>();
  #stopChecks: StopTimer = () => {};

  /** `closing` is aborted when the worker is about to exit. */
  constructor(primary: Primary, clock: Clock, closing: AbortSignal) {
    this.#clock = clock;
    this.#closing = closing;
    const audience = (withNames: boolean) =>
      new Audience(primary, withNames, () => this.#endAll((view) => view.withNames === withNames));
    this.#audiences = { named: audience(true), nameless: audience(false) };
    closing.addEventListener('abort', () => this.#endAll(() => true), { once: true });
  }

  /** Answers with the stream, until it ends. Throws `concurrency_limited`. */
  async show(res: Reply, view: View): Promise<void> {
    if (this.#views.size >= maxViewers) this.#makeRoomFor(view.client);
    using client = untilGone(res);
    using out = new EventStream(res, this.#clock);
    res.set('Connection', 'close'); // else whoever comes again comes to a worker that is about to exit
    out.begin();
    if (res.req.method === 'HEAD') return out.end();
    const ended = withResolvers();
    client.signal.addEventListener('abort', () => ended.resolve(), { once: true });
    if (this.#closing.aborted || client.signal.aborted) ended.resolve();
    this.#enter(res, { ...view, end: ended.resolve });
    await ended.promise;
    this.#leave(res, view);
    endOrCut(res);
  }

  /** The client with most of them gives one up to a client with fewer: nobody can keep others from looking. */
  #makeRoomFor(client: string): void {
    const counts = new Map<string, number>([[client, 0]]);
    for (const view of this.#views.values()) counts.set(view.client, (counts.get(view.client) ?? 0) + 1);
    const [greediest, most] = [...counts].reduce((one, other) => (other[1] > one[1] ? other : one));
    if (most <= (counts.get(client) ?? 0) + 1) throw full();
    const [res, view] = [...this.#views].findLast(([, each]) => each.client === greediest) ?? [];
    if (res === undefined) return;
    this.#views.delete(res);
    view?.end();
  }

  #enter(res: Reply, view: OpenView): void {
    if (this.#views.size === 0) this.#stopChecks = this.#clock.every(betweenChecksMs, () => this.#check());
    this.#views.set(res, view);
    this.#audienceOf(view).join(res);
  }

  #leave(res: Reply, view: View): void {
    this.#views.delete(res);
    this.#audienceOf(view).leave(res);
    if (this.#views.size === 0) this.#stopChecks();
  }

  #audienceOf({ withNames }: View): Audience {
    return this.#audiences[withNames ? 'named' : 'nameless'];
  }

  #check(): void {
    this.#endAll(({ isAllowed }) => !isAllowed());
  }

  #endAll(isConcerned: (view: OpenView) => boolean): void {
    for (const view of this.#views.values()) if (isConcerned(view)) view.end();
  }
}

/** A client that does not read would keep its worker from exiting. */
function endOrCut(res: Reply): void {
  if (res.writableLength > 0) res.destroy();
  else if (!res.destroyed) res.end();
}

function full(): RelayError {
  const message = `${maxViewers} streams of the status are open already: end one, or read GET /status from time to time`;
  return new RelayError('concurrency_limited', message, { retryAfterSeconds });
}
