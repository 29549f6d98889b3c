import type { Sharer } from '../../primary/fairness/fair-share.js';
import type { AcceptedJob, BackgroundHooks, BackgroundPart } from '../../primary/jobs/background-part.js';
import type { ClientText } from '../../shared/client.js';
import { requestBytes } from '../../shared/text/turns.js';
import type { EventLog } from './event-log.js';

/** Data of a background job that this host has accepted, or taken from the shared queue. */
export class AcceptedPart implements BackgroundPart, Sharer {
  readonly accepted: AcceptedJob;
  /** Size of its texts and images. */
  readonly bytes: number;
  readonly log: EventLog;
  readonly isLeased: boolean;
  readonly hooks: BackgroundHooks;
  /** Whether the store may have marked the job as started, even if the store's reply was lost. */
  mayHaveStarted = false;
  /** Whether another host may have taken over the job. */
  isLost = false;
  readonly #canceller = new AbortController();

  constructor(accepted: AcceptedJob, log: EventLog, isLeased: boolean, hooks: BackgroundHooks) {
    this.accepted = accepted;
    this.bytes = requestBytes(accepted.request);
    this.log = log;
    this.isLeased = isLeased;
    this.hooks = hooks;
  }

  get client(): ClientText {
    return this.accepted.request.client;
  }

  get signal(): AbortSignal {
    return this.#canceller.signal;
  }

  cancel(reason: Error): void {
    this.#canceller.abort(reason);
  }

  lose(): void {
    this.isLost = true;
    this.log.lose();
  }
}
