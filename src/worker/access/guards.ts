import type { Request } from 'express';
import type { WorkerSettings } from '../../shared/ipc/protocol.js';
import type { Phase } from '../../shared/phase.js';
import type { AnswerRecorder } from '../http/answer-recorder.js';
import { rateCap, rateWindows, refuseWhileDraining } from '../http/checks.js';
import type { AsyncHandler, Handler, Primary, Reply } from '../http/exchange.js';
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
  /** Sets what records the answer, so that a repeated request gets the first one. */
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
  recorderOf(req: Request, res: Reply): AnswerRecorder | null;
}

export function routeGuards(parts: GuardParts): RouteGuards {
  const { primary, settings, authority, phase, ownJobs } = parts;
  return {
    mayAsk: authenticate(authority, 'ask'),
    mayCall: authenticate(authority, null),
    namesUser: subClientByHeader(),
    needsService: refuseWhileDraining(phase, primary),
    capped: rateCap(rateWindows(primary, settings)),
    once: (req, res, next) => {
      res.locals.recorder = parts.recorderOf(req, res);
      next();
    },
    notFromJob: refuseOwnJobs(ownJobs),
  };
}
