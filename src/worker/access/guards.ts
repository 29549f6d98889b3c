import type { WorkerSettings } from '../../shared/ipc/protocol.js';
import type { Phase } from '../../shared/phase.js';
import { rateCap, rateWindows, refuseWhileDraining } from '../http/checks.js';
import type { AsyncHandler, Handler, Primary } from '../http/exchange.js';
import { idempotency } from '../http/responses.js';
import { type Authority, authenticate, subClientByHeader } from './authenticate.js';
import { type OwnJobs, refuseOwnJobs } from './own-jobs.js';

/** Checks that the steps of routes begin with. Each route has an order of them, which is part of the API contract. */
export interface RouteGuards {
  /** Needs a client that may send prompts. */
  readonly mayAsk: AsyncHandler;
  /** Needs any known client. */
  readonly mayCall: AsyncHandler;
  /** Sets the sub-client that a header names. */
  readonly namesUser: Handler;
  /** Refuses requests while the service drains. */
  readonly needsService: AsyncHandler;
  /** Takes one request from the rate window of the client. */
  readonly capped: AsyncHandler;
  /** Gives a repeated `Idempotency-Key` the first answer. */
  readonly once: Handler;
  /** Refuses requests from processes of jobs. */
  readonly notFromJob: AsyncHandler;
}

interface GuardParts {
  readonly primary: Primary;
  readonly settings: Pick<WorkerSettings, 'isCapped'>;
  readonly authority: Authority;
  readonly phase: () => Phase;
  readonly ownJobs: Pick<OwnJobs, 'isOf'>;
}

export function routeGuards({ primary, settings, authority, phase, ownJobs }: GuardParts): RouteGuards {
  return {
    mayAsk: authenticate(authority, 'ask'),
    mayCall: authenticate(authority, null),
    namesUser: subClientByHeader(),
    needsService: refuseWhileDraining(phase, primary),
    capped: rateCap(rateWindows(primary, settings)),
    once: idempotency(primary),
    notFromJob: refuseOwnJobs(ownJobs),
  };
}
