import { type Clock, type StopTimer, yieldToEventLoop } from '../../shared/clock.js';
import type { Reply } from '../http/exchange.js';
import { answerRefusal, refusals } from '../http/refusal.js';
import type { KeyRing } from './keys.js';

const checkMs = 500;
/**
 * Time in which jobs, streams and changes of keys end in order: the primary ends the jobs of a client without access
 * within a second, and answers a change as soon.
 */
const graceMs = 2500;
/** Requests to check before the event loop gets a turn. */
const sliceRequests = 100;

/** Accepted request that is still open. */
interface OpenRequest {
  readonly res: Reply;
  /** Time at which the access of its client ends; null for never. */
  readonly expiresAt: number | null;
  /** Whether the request would be accepted now. */
  readonly isAllowed: () => boolean;
  /** Time at which the access was found to have ended (monotonic); null while the request is allowed. */
  endedMs: number | null;
}

/**
 * Ends the open requests of clients whose key or access was removed, replaced or has expired, such as uploads, downloads
 * and streams. A request is otherwise checked only at its beginning, and may last for hours.
 */
export class OpenRequests {
  readonly #keys: Pick<KeyRing, 'version'>;
  readonly #clock: Pick<Clock, 'now' | 'monotonicMs' | 'every'>;
  readonly #open = new Set<OpenRequest>();
  #checkedVersion = 0;
  #isChecking = false;
  #stopChecks: StopTimer = () => {};

  constructor(keys: Pick<KeyRing, 'version'>, clock: Pick<Clock, 'now' | 'monotonicMs' | 'every'>) {
    this.#keys = keys;
    this.#clock = clock;
  }

  /** Checks a request again until its response closes. */
  watch(res: Reply, expiresAt: number | null, isAllowed: () => boolean): void {
    if (this.#open.size === 0) {
      this.#checkedVersion = this.#keys.version;
      this.#stopChecks = this.#clock.every(checkMs, () => void this.#check());
    }
    const request: OpenRequest = { res, expiresAt, isAllowed, endedMs: null };
    this.#open.add(request);
    res.once('close', () => {
      this.#open.delete(request);
      if (this.#open.size === 0) this.#stopChecks();
    });
  }

  /** Compares the keys only if they have changed, because each comparison takes some microseconds. */
  async #check(): Promise<void> {
    if (this.#isChecking) return;
    this.#isChecking = true;
    const { version } = this.#keys;
    const hasChanged = version !== this.#checkedVersion;
    let checked = 0;
    try {
      for (const request of [...this.#open]) {
        if (!hasChanged && !this.#isDue(request)) continue;
        this.#endIfOver(request);
        if (++checked % sliceRequests === 0) await yieldToEventLoop();
      }
      this.#checkedVersion = version; // only now: after a defect, the next check compares all keys again
    } finally {
      this.#isChecking = false; // a defect in one check must not end all later ones
    }
  }

  #isDue({ expiresAt, endedMs }: OpenRequest): boolean {
    return endedMs !== null || (expiresAt !== null && this.#clock.now() >= expiresAt);
  }

  #endIfOver(request: OpenRequest): void {
    const { res } = request;
    const nowMs = this.#clock.monotonicMs();
    request.endedMs = request.isAllowed() ? null : (request.endedMs ?? nowMs);
    if (request.endedMs === null || res.closed) return;
    const endsInOrder = res.headersSent || res.locals.job !== null || res.locals.changesKeys;
    if (endsInOrder && nowMs - request.endedMs < graceMs) return;
    if (res.headersSent) res.destroy();
    else answerRefusal(res, refusals.accessEnded);
  }
}
