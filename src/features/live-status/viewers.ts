import { type SectionName, sectionNames } from '../../shared/api/status.js';
import { withResolvers } from '../../shared/async.js';
import type { ClientText } from '../../shared/client.js';
import type { Clock, StopTimer } from '../../shared/clock.js';
import { RelayError, retryAfter } from '../../shared/errors.js';
import { EventStream, writtenEvent } from '../../worker/http/event-stream.js';
import type { Reply } from '../../worker/http/exchange.js';
import { untilGone } from '../../worker/http/responses.js';
import type { StatusCalls, WrittenSections } from './shared.js';

/** Limit for one worker. Each viewer occupies a connection and unsent data. */
const maxViewers = 200;
/** Interval of access checks: a stream may outlast its key by this time. */
const betweenChecksMs = 5000;
const tooMany = `${maxViewers} status streams are already open: close one, or poll GET /status`;

/** Access of one viewer. `isAllowed` is checked repeatedly. */
export interface View {
  readonly client: ClientText;
  readonly withNames: boolean;
  readonly isAllowed: () => boolean;
}

type OpenView = View & { readonly end: () => void };

/**
 * Owns the open answers to GET /status/stream of this worker. A stream ends when the client disconnects, when its
 * access changes, and when the worker is about to exit. The client can then reconnect.
 */
export class StatusViewers {
  readonly #clock: Clock;
  readonly #closing: AbortSignal;
  readonly #audiences: Readonly<Record<'named' | 'nameless', Audience>>;
  readonly #views = new Map<Reply, OpenView>();
  #stopChecks: StopTimer = () => {};

  /** `closing` is aborted when the worker is about to exit. */
  constructor(primary: StatusCalls, clock: Clock, closing: AbortSignal) {
    this.#clock = clock;
    this.#closing = closing;
    const audience = (withNames: boolean) =>
      new Audience(primary, withNames, () => this.#endAll((view) => view.withNames === withNames));
    this.#audiences = { named: audience(true), nameless: audience(false) };
    closing.addEventListener('abort', () => this.#endAll(() => true), { once: true });
  }

  /** Streams the status until the stream ends. Throws `concurrency_limited`. */
  async show(res: Reply, view: View): Promise<void> {
    if (this.#views.size >= maxViewers) this.#makeRoomFor(view.client);
    using client = untilGone(res);
    using out = new EventStream(res, this.#clock);
    res.set('Connection', 'close'); // else a reconnecting client reaches this worker, which may be exiting
    out.beginStream();
    if (res.req.method === 'HEAD') return out.end();
    const ended = withResolvers();
    client.signal.addEventListener('abort', () => ended.resolve(), { once: true });
    if (this.#closing.aborted || client.signal.aborted) ended.resolve();
    this.#enter(res, { ...view, end: ended.resolve });
    await ended.promise;
    this.#leave(res, view);
    if (res.writableLength > 0)
      res.destroy(); // an unread response would delay the exit of the worker
    else if (!res.destroyed) res.end();
  }

  /**
   * Ends a stream of the client that has the most, if the new client has fewer, so that one client cannot block others.
   */
  #makeRoomFor(client: ClientText): void {
    const counts = new Map<string, number>([[client, 0]]);
    for (const view of this.#views.values()) counts.set(view.client, (counts.get(view.client) ?? 0) + 1);
    const [greediest, most] = [...counts].reduce((one, other) => (other[1] > one[1] ? other : one));
    if (most <= (counts.get(client) ?? 0) + 1)
      throw new RelayError('concurrency_limited', tooMany, { retryAfterSeconds: retryAfter('status_streams') });
    const [res, view] = [...this.#views].findLast(([, each]) => each.client === greediest) ?? [];
    if (res === undefined) return;
    this.#views.delete(res);
    view?.end();
  }

  #enter(res: Reply, view: OpenView): void {
    if (this.#views.size === 0)
      this.#stopChecks = this.#clock.every(betweenChecksMs, () => this.#endAll(({ isAllowed }) => !isAllowed()));
    this.#views.set(res, view);
    this.#audiences[view.withNames ? 'named' : 'nameless'].join(res);
  }

  #leave(res: Reply, view: View): void {
    this.#views.delete(res);
    this.#audiences[view.withNames ? 'named' : 'nameless'].leave(res);
    if (this.#views.size === 0) this.#stopChecks();
  }

  #endAll(isConcerned: (view: OpenView) => boolean): void {
    for (const view of this.#views.values()) if (isConcerned(view)) view.end();
  }
}

/** `behind`: the viewer has missed a change and needs a whole snapshot. */
type Standing = 'behind' | 'current';

/**
 * Owns the viewers with the same access, and the latest status. All viewers share one subscription at the primary and
 * the bytes of its events. A slow viewer delays no others: it misses changes, and gets a new snapshot when it reads
 * again.
 */
export class Audience {
  readonly #primary: StatusCalls;
  readonly #withNames: boolean;
  readonly #onFailure: () => void;
  readonly #viewers = new Map<Reply, Standing>();
  readonly #sections = new Map<SectionName, string>();
  #snapshot: Buffer | null = null;
  #subscription: AbortController | null = null;

  /** `onFailure` is called when the subscription fails. */
  constructor(primary: StatusCalls, withNames: boolean, onFailure: () => void) {
    this.#primary = primary;
    this.#withNames = withNames;
    this.#onFailure = onFailure;
  }

  join(viewer: Reply): void {
    this.#viewers.set(viewer, 'behind');
    viewer.on('drain', () => this.#catchUp(viewer));
    this.#catchUp(viewer);
    if (this.#subscription === null) void this.#subscribe();
  }

  leave(viewer: Reply): void {
    this.#viewers.delete(viewer);
    if (this.#viewers.size > 0) return;
    this.#subscription?.abort();
    this.#subscription = null;
    this.#snapshot = null;
    this.#sections.clear();
  }

  async #subscribe(): Promise<void> {
    const subscription = new AbortController();
    this.#subscription = subscription;
    const { signal } = subscription;
    try {
      for await (const changed of this.#primary.stream('statusFeed', { withNames: this.#withNames }, signal)) {
        if (signal.aborted) return; // a late item, whose viewers have left
        this.#send(changed);
      }
    } catch {
      if (!signal.aborted) this.#onFailure(); // the primary logs defects
    }
  }

  #send(changed: WrittenSections): void {
    this.#snapshot = null;
    for (const name of sectionNames) {
      const text = changed[name];
      if (text !== undefined) this.#sections.set(name, text);
    }
    const change = eventOf('change', new Map(Object.entries(changed)));
    for (const [viewer, standing] of this.#viewers) {
      if (standing === 'behind') this.#catchUp(viewer);
      else if (viewer.writableNeedDrain) this.#viewers.set(viewer, 'behind');
      else viewer.write(change);
    }
  }

  #catchUp(viewer: Reply): void {
    if (this.#viewers.get(viewer) !== 'behind' || this.#sections.size === 0 || viewer.writableNeedDrain) return;
    this.#viewers.set(viewer, 'current');
    this.#snapshot ??= eventOf('snapshot', this.#sections);
    viewer.write(this.#snapshot);
  }
}

/** Writes an event whose members are JSON texts. */
function eventOf(event: string, sections: ReadonlyMap<string, string>): Buffer {
  const members = Array.from(sections, ([name, text]) => `${JSON.stringify(name)}:${text}`);
  return Buffer.from(writtenEvent(event, `{${members.join(',')}}`));
}
