import type { NextFunction, Request, Response } from 'express';
import type { Clock } from '../../shared/clock.js';
import { requestIdFrom } from '../../shared/ids.js';
import type { JobEnd } from '../../shared/job.js';
import type { Logger } from '../../shared/logger.js';

/** What is known of one request while it is open. Lives with its response, in `res.locals`. */
export interface Exchange extends Record<string, unknown> {
  requestId: string;
  /** The unit of fairness: the API key's name, else the address. Set once the request is known to be allowed. */
  client: string;
  /** Name of the API key, empty without one: whose conversations the request may see. */
  owner: string;
  /** How the request's job ended, if it had one. */
  job: Pick<JobEnd, 'outcome' | 'queueMs' | 'executionMs'> | null;
}

export type Reply = Response<unknown, Exchange>;
export type Handler = (req: Request, res: Reply, next: NextFunction) => void;
export type AsyncHandler = (req: Request, res: Reply, next: NextFunction) => Promise<void>;

/** On every response, whoever gives it. */
export const commonHeaders = { 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' } as const;

const maxPathLength = 256;
const clientGone = 499;

/** Opens every exchange: request id, headers that every response carries, and the log record at its end. */
export function openExchange(log: Logger, clock: Clock): Handler {
  return (req, res, next) => {
    const startedMs = clock.monotonicMs();
    Object.assign(res.locals, { requestId: requestIdFrom(req.get('x-request-id')), client: '', owner: '', job: null });
    res.set({ 'X-Request-Id': res.locals.requestId, ...commonHeaders });
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
  const { requestId, job } = res.locals;
  return {
    request_id: requestId,
    method,
    path,
    status_code: res.writableFinished ? res.statusCode : clientGone,
    duration_ms: Math.round(durationMs * 10) / 10,
    ...(job && { outcome: job.outcome, queue_ms: job.queueMs, execution_ms: job.executionMs }),
  };
}

/** Without the query, and without the scheme and authority of an absolute target: they may hold what is nobody's business. */
function pathOf(url: string): string {
  return url
    .replace(/[?#].*$/s, '')
    .replace(/^[a-z][a-z0-9+.-]*:\/\/[^/]*/i, '')
    .slice(0, maxPathLength);
}
