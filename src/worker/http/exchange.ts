import type { NextFunction, Request, Response } from 'express';
import type { Clock } from '../../shared/clock.js';
import { requestIdFrom } from '../../shared/ids.js';
import type { Logger } from '../../shared/logger.js';
import type { JobReport } from '../job-report.js';

/** What is known of one request while it is open. Lives with its response, in `res.locals`. */
export interface Exchange extends Record<string, unknown> {
  requestId: string;
  /** The unit of fairness: the API key's name, else the address. Set once the request is known to be allowed. */
  client: string;
  /** How the request's job is doing, if it has one. */
  job: JobReport | null;
}

export type Reply = Response<unknown, Exchange>;
export type Handler = (req: Request, res: Reply, next: NextFunction) => void;
export type AsyncHandler = (req: Request, res: Reply, next: NextFunction) => Promise<void>;

const maxPathLength = 256;
const clientGone = 499;

/** Opens every exchange: request id, headers that every response carries, and the log record at its end. */
export function openExchange(log: Logger, clock: Clock): Handler {
  return (req, res, next) => {
    const startedMs = clock.monotonicMs();
    Object.assign(res.locals, { requestId: requestIdFrom(req.get('x-request-id')), client: '', job: null });
    res.set({
      'X-Request-Id': res.locals.requestId,
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
    });
    // Who was not told to continue may or may not send its body: only a closed connection is unambiguous.
    if (req.headers.expect !== undefined) res.set('Connection', 'close');
    const { method } = req;
    const path = pathOf(req.url);
    res.once('close', () =>
      log.info('http_request_completed', record(res, method, path, clock.monotonicMs() - startedMs)),
    );
    next();
  };
}

function record(res: Reply, method: string, path: string, durationMs: number) {
  const { requestId } = res.locals;
  const job = res.locals.job?.figures();
  return {
    request_id: requestId,
    method,
    path,
    status_code: res.writableFinished ? res.statusCode : clientGone,
    duration_ms: Math.round(durationMs * 10) / 10,
    ...(job && { outcome: job.outcome, queue_ms: job.queueMs, execution_ms: job.executionMs }),
  };
}

/** Without the query: it may hold what is nobody's business. */
function pathOf(url: string): string {
  return (url.split('?', 1)[0] ?? '').slice(0, maxPathLength);
}
