import type { StatusBody, StatusChange } from '../../shared/api/status.js';
import type { Api } from '../base/api.mjs';
import type { Link } from '../base/connection.mjs';
import { ApiError, asError } from '../base/failures.mjs';
import { Observable } from '../base/observable.mjs';
import type { PageClock } from '../base/page-clock.mjs';

const longestMs = 61_000;

/**
 * Estimates the server's clock. No time in a status is later than the server's now. One of these times is the current
 * minute, so a browser whose clock is more than a minute ahead is noticed, too.
 */
export class ServerTime {
  #atLeastMs = Number.NEGATIVE_INFINITY;

  /**
   * Returns how many milliseconds the server's clock is ahead of the browser's; negative if it is behind, 0 if they may
   * be the same.
   */
  aheadMs(change: StatusChange, nowMs: number): number {
    const latest = Math.max(...timesOf(change).map((time) => Date.parse(time) - nowMs));
    this.#atLeastMs = Math.max(this.#atLeastMs, latest);
    if (this.#atLeastMs === Number.NEGATIVE_INFINITY) return 0;
    return this.#atLeastMs > 0 || this.#atLeastMs < -longestMs ? this.#atLeastMs : 0;
  }
}

function timesOf({ slots, queue, checks, last_hour: minutes }: StatusChange): string[] {
  return [
    ...(slots?.running.map(({ started_at: at }) => at) ?? []),
    ...(queue?.clients.map(({ oldest_since: at }) => at) ?? []),
    ...(checks?.flatMap(({ checked_at: at }) => at ?? []) ?? []),
    ...(minutes?.map(({ at }) => at) ?? []),
  ];
}

export type FollowedStatus =
  | { readonly kind: 'opening' }
  /** `aheadMs`: milliseconds by which the server's clock is ahead of the browser's. */
  | { readonly kind: 'live'; readonly status: StatusBody; readonly aheadMs: number }
  /** The connection was lost at `sinceMs`. */
  | { readonly kind: 'old'; readonly status: StatusBody; readonly aheadMs: number; readonly sinceMs: number }
  | { readonly kind: 'refused'; readonly error: Error };

const firstWaitMs = 500;
const longestWaitMs = 8000;
/** Silence after which a stream counts as broken. A live one has an event every minute, for the chart of the hour. */
const longestSilenceMs = 90_000;

/** Whether another attempt would get the same response. */
const isFinal = (error: Error) => error instanceof ApiError && [401, 403, 404].includes(error.status);

/** Owns the last status from the stream, and opens the stream again when it breaks. */
export class StatusFollower {
  readonly view = new Observable<FollowedStatus>({ kind: 'opening' });
  readonly #api: Pick<Api, 'events'>;
  readonly #link: Link;
  readonly #clock: PageClock;
  readonly #serverTime = new ServerTime();

  constructor(api: Pick<Api, 'events'>, link: Link, clock: PageClock) {
    this.#api = api;
    this.#link = link;
    this.#clock = clock;
  }

  /** Follows the stream until the returned function is called. */
  start(): () => void {
    const stop = new AbortController();
    void this.#follow(stop.signal);
    return () => stop.abort();
  }

  async #follow(stop: AbortSignal): Promise<void> {
    for (let waitMs = firstWaitMs; !stop.aborted; waitMs = Math.min(2 * waitMs, longestWaitMs)) {
      const failure = await this.#readOnce(stop, () => {
        waitMs = firstWaitMs;
      });
      if (stop.aborted) return;
      this.#lose(failure);
      if (failure !== null && isFinal(failure)) return;
      await this.#pause(waitMs, stop);
    }
  }

  /**
   * Reads the stream once. Resolves with the error that ended it; null if the server ended it, as when a worker stops.
   */
  async #readOnce(stop: AbortSignal, onEvent: () => void): Promise<Error | null> {
    const silence = new AbortController();
    const watch = () => this.#clock.after(longestSilenceMs, () => silence.abort());
    let endWatch = watch();
    try {
      for await (const { event, data } of this.#api.events('/status/stream', {
        signal: AbortSignal.any([stop, silence.signal]),
      })) {
        endWatch();
        endWatch = watch();
        onEvent();
        this.#applyChange(event, JSON.parse(data) as StatusChange);
      }
      return null;
    } catch (error) {
      return asError(error);
    } finally {
      endWatch();
    }
  }

  #applyChange(event: string, change: StatusChange): void {
    const { value: view } = this.view;
    const last = event === 'change' && view.kind === 'live' ? view.status : null;
    const aheadMs = this.#serverTime.aheadMs(change, this.#clock.now());
    // The first event is a snapshot with every section.
    this.view.set({ kind: 'live', status: { ...last, ...change } as StatusBody, aheadMs });
  }

  #lose(failure: Error | null): void {
    const { value: view } = this.view;
    if (failure !== null && isFinal(failure)) this.view.set({ kind: 'refused', error: failure });
    else if (view.kind === 'live') this.view.set({ ...view, kind: 'old', sinceMs: this.#clock.now() });
    else if (view.kind !== 'old' && failure instanceof ApiError) this.view.set({ kind: 'refused', error: failure });
  }

  /** Waits before the next attempt. Ends early when the state of the link changes. */
  #pause(ms: number, stop: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const endings: (() => void)[] = [];
      const end = () => {
        for (const ending of endings) ending();
        stop.removeEventListener('abort', end);
        resolve();
      };
      endings.push(this.#clock.after(ms, end), this.#link.state.subscribe(end));
      stop.addEventListener('abort', end);
    });
  }
}
