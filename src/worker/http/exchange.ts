import { randomUUID } from 'node:crypto';
import type { NextFunction, Request, Response } from 'express';
import { Registry } from 'prom-client';
import { type ClientText, noClient } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import { httpStatusOf, type PublicCode, type RelayError } from '../../shared/errors.js';
import type { Peer } from '../../shared/ipc/peer.js';
import type { ClientRights, PrimaryCalls, WorkerCalls } from '../../shared/ipc/protocol.js';
import type { JobUsage, Outcome } from '../../shared/job.js';
import type { Logger } from '../../shared/log/logger.js';
import {
  addProcessMetrics,
  counter,
  type FamilyFigures,
  FigureReport,
  gauge,
  histogram,
} from '../../shared/metrics.js';
import type { JsonStructure } from '../../shared/text/json-structure.js';
import { readTraceparent, type TraceContext } from '../../shared/trace/context.js';
import type { AnswerRecorder } from './answer-recorder.js';
import { methodLabel, type RouteLabel } from './labels.js';

/** Figures of a job for the request log. */
export interface JobFigures extends JobUsage {
  readonly outcome: Outcome;
  readonly queueMs: number;
  readonly executionMs: number;
}

/** Progress of a job, for its exchange. */
export interface JobProgress {
  /** Whether the job has had its slot. */
  readonly hasStarted: boolean;
  figures(): JobFigures;
}

/** Connection to the primary. */
export type Primary = Peer<PrimaryCalls, WorkerCalls>;

/** Converts an error to the form of a compatibility API: the status of the response, and its body. */
export type ErrorForm = (error: RelayError, requestId: string) => { readonly status: number; readonly body: object };

/** State of one open request, in `res.locals`. */
export interface Exchange extends Record<string, unknown> {
  requestId: string;
  /** Trace context of the request; null if untraced. */
  trace: TraceContext | null;
  /** Template of the matched route; `other` before a match. */
  route: RouteLabel;
  /** Code of the error body that was sent; null if none was. */
  error: PublicCode | null;
  /** Client of the request (see `shared/client.ts`); empty on routes that need none. */
  client: ClientText;
  /** Groups of the person whom a trusted proxy has signed on; empty for other clients. */
  groups: readonly string[];
  /** Rights of the API key or of the person, set when the request is accepted. */
  key: ClientRights | null;
  /** Form of errors; null for the service's native form. */
  errorForm: ErrorForm | null;
  /** Counts of values and bytes in the body, set when its reading begins. */
  structure: JsonStructure | null;
  /** Recorder of the answer; null if no repetition of the request may get it. */
  recorder: AnswerRecorder | null;
  /** Progress of the request's job, if any. */
  job: JobProgress | null;
  /** Whether the request is changing keys, perhaps its own. Its answer is sent nevertheless. */
  changesKeys: boolean;
  /** Whether a file is being uploaded, which may take any time. */
  isUpload: boolean;
  /** Whether the answer is a cacheable file of the console, which is not counted, because one visit loads many. */
  isFile: boolean;
}

export type Reply = Response<unknown, Exchange>;
export type Handler = (req: Request, res: Reply, next: NextFunction) => void;
export type AsyncHandler = (req: Request, res: Reply, next: NextFunction) => Promise<void>;

/** Headers of every response. Only the files of the console override `Cache-Control`. */
export const commonHeaders = { 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' } as const;

const commonLines = Object.entries(commonHeaders);

export const maxPathLength = 256;
const maxClientLength = 128;
const clientGone = 499;

const unknownYet = {
  route: 'other',
  error: null,
  client: noClient,
  groups: [],
  key: null,
  errorForm: null,
  structure: null,
  recorder: null,
  job: null,
  changesKeys: false,
  isUpload: false,
  isFile: false,
} as const satisfies Omit<Exchange, 'requestId' | 'trace'>;

/** End of a request. */
export interface EndedRequest {
  readonly path: string;
  /** null if the client disconnected before the end. */
  readonly statusCode: number | null;
  readonly durationMs: number;
}

/** Traces requests. */
export interface RequestTracer {
  /** Returns the trace context of a request, which its job gets; null if the request has none. */
  beginTrace(req: Request): TraceContext | null;
  /** Ends the trace of a request. `trace`: the context that `beginTrace` returned. */
  endTrace(trace: TraceContext, req: Request, exchange: Exchange, ended: EndedRequest): void;
}

export interface ExchangeParts {
  readonly log: Logger;
  readonly metrics: HttpMetrics;
  readonly clock: Clock;
  /** null if no trace begins at this service, and none continues. */
  readonly tracer: RequestTracer | null;
  readonly heap: { touch(): void };
  /**
   * Whether this worker is about to exit. Each response then closes its connection, so that no later request is lost.
   */
  readonly isClosing: () => boolean;
}

/**
 * Opens every exchange: sets the request id and the common headers; when the response closes, writes the log record and
 * counts.
 */
export function openExchange({ log, metrics, clock, tracer, heap, isClosing }: ExchangeParts): Handler {
  return (req, res, next) => {
    const startedMs = clock.monotonicMs();
    const requestId = requestIdFrom(req.get('x-request-id'));
    const trace = isUntraced(req) && tracer === null ? null : (tracer?.beginTrace(req) ?? traceOfCaller(req));
    res.locals = { ...unknownYet, requestId, trace };
    res.setHeader('X-Request-Id', requestId);
    for (const [name, value] of commonLines) res.setHeader(name, value);
    if (isAmbiguous(req.headers) || isClosing()) res.set('Connection', 'close');
    const { method, url } = req;
    metrics.opened();
    res.on('close', () => {
      const durationMs = clock.monotonicMs() - startedMs;
      heap.touch();
      count(metrics, method, res, durationMs / 1000);
      const path = pathOf(url);
      log[levelOf(res)]('http_request_completed', record(res, method, path, durationMs));
      if (trace !== null)
        tracer?.endTrace(trace, req, res.locals, {
          path,
          statusCode: isComplete(res) ? res.statusCode : null,
          durationMs,
        });
    });
    next();
  };
}

/** Reads the trace context from the caller's headers; null if missing or invalid. */
export function traceOfCaller({ headers: { traceparent, tracestate } }: Request): TraceContext | null {
  const state = Array.isArray(tracestate) ? tracestate.join(',') : tracestate;
  return typeof traceparent === 'string' ? readTraceparent(traceparent, state) : null;
}

/** Whether the client sent no trace, as for nearly all requests. */
function isUntraced({ headers }: Request): boolean {
  return headers.traceparent === undefined;
}

/**
 * Whether a proxy and this server may disagree on where the next request begins, so that the connection must close.
 * After `Expect` without `100 Continue`, a client may or may not send its body. Node ignores some transfer codings
 * other than `chunked`. Bytes after an Upgrade in the same packet are lost.
 */
function isAmbiguous({ expect, upgrade, 'transfer-encoding': coding }: Request['headers']): boolean {
  return expect !== undefined || upgrade !== undefined || (coding ?? 'chunked').toLowerCase() !== 'chunked';
}

function levelOf({ locals: { route, error } }: Reply): 'debug' | 'info' {
  return route === '/console/' && error === null ? 'debug' : 'info';
}

function count(metrics: HttpMetrics, method: string, res: Reply, seconds: number): void {
  const { route, error, isFile } = res.locals;
  if (isFile) return metrics.closed();
  if (!isComplete(res)) return metrics.aborted(route);
  metrics.completed(method, route, res.statusCode, seconds);
  if (error !== null) metrics.failed(route, error);
}

/** Whether the client stayed connected to the end of the response. An endless stream counts as complete. */
function isComplete(res: Reply): boolean {
  const isViewed = res.headersSent && isEndless({ route: res.locals.route, code: res.statusCode });
  return res.writableFinished || isViewed;
}

/** Sets the route that the request is counted under. */
export function atRoute(route: RouteLabel): Handler {
  return (_req, res, next) => {
    res.locals.route = route;
    next();
  };
}

function record(res: Reply, method: string, path: string, durationMs: number) {
  const { requestId, trace, client, error } = res.locals;
  const job = res.locals.job?.figures();
  return {
    request_id: requestId,
    method,
    path,
    status_code: isComplete(res) ? res.statusCode : clientGone,
    duration_ms: Math.round(durationMs * 10) / 10,
    ...(trace && { trace_id: trace.traceId, span_id: trace.spanId }),
    ...(client !== noClient && { client: client.slice(0, maxClientLength) }),
    ...(error !== null && { error }),
    ...(job && jobFields(job)),
  };
}

function jobFields({ outcome, queueMs, executionMs, processorMs, peakMemoryBytes }: JobFigures) {
  return {
    outcome,
    queue_ms: queueMs,
    execution_ms: executionMs,
    ...(processorMs !== null && { processor_ms: processorMs }),
    ...(peakMemoryBytes !== null && { peak_memory_bytes: peakMemoryBytes }),
  };
}

/** Returns the path without query, scheme and authority, which may contain secrets. */
function pathOf(url: string): string {
  const path = url.startsWith('/') ? url : url.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '');
  const end = path.search(/[?#]/);
  return path.slice(0, end < 0 ? maxPathLength : Math.min(end, maxPathLength));
}

const acceptableId = /^[A-Za-z0-9._-]{1,64}$/;

/** Returns the client's request id if it is well formed, else a new UUID. */
export function requestIdFrom(header: string | undefined): string {
  return header !== undefined && acceptableId.test(header) ? header : randomUUID();
}

/** Owns the counts of this worker's HTTP exchanges. The primary sums the figures of all workers. */
export class HttpMetrics {
  readonly #registry = new Registry();
  readonly #requests = counter(this.#registry, 'http_requests_total');
  readonly #durations = histogram(this.#registry, 'http_request_duration_seconds');
  readonly #inFlight = gauge(this.#registry, 'http_requests_in_flight');
  readonly #aborted = counter(this.#registry, 'http_aborted_requests_total');
  readonly #errors = counter(this.#registry, 'errors_total');
  readonly #logErrors = counter(this.#registry, 'log_write_errors_total');
  readonly #report = new FigureReport();
  #hasNews = true;

  constructor() {
    addProcessMetrics(this.#registry, 'worker');
  }

  /** Whether an exchange was counted since the last call of `changes`. */
  get hasNews(): boolean {
    return this.#hasNews;
  }

  opened(): void {
    this.#hasNews = true;
    this.#inFlight.inc();
  }

  /** Ends an exchange that `opened` has counted, without a further count. */
  closed(): void {
    this.#hasNews = true;
    this.#inFlight.dec();
  }

  completed(name: string, route: RouteLabel, code: number, seconds: number): void {
    this.closed();
    const method = methodLabel(name);
    this.#requests.inc({ method, route, code: String(code) });
    if (isTimed({ route, code })) this.#durations.observe({ method, route }, seconds);
  }

  /** Counts a refusal of bytes that never became a request. */
  refused(method: string, code: number, error: PublicCode): void {
    this.#hasNews = true;
    this.#requests.inc({ method: methodLabel(method), route: 'other', code: String(code) });
    this.failed('other', error);
  }

  aborted(route: RouteLabel): void {
    this.closed();
    this.#aborted.inc({ route });
  }

  failed(route: RouteLabel, error: PublicCode): void {
    this.#errors.inc({ route, error });
  }

  logWriteFailed(): void {
    this.#logErrors.inc();
  }

  /** Returns the counts since the last call; the primary adds them to its totals. */
  async changes(): Promise<FamilyFigures[]> {
    this.#hasNews = false;
    return this.#report.changes(await this.#registry.getMetricsAsJSON());
  }
}

/** Labels of a response, without its method. */
interface CountedAs {
  readonly route: RouteLabel;
  readonly code: number;
}

/** Whether the duration of a response is measured: only answers of endpoints. The duration of an endless stream means nothing. */
function isTimed({ route, code }: CountedAs): boolean {
  return route !== 'other' && code !== httpStatusOf.method_not_allowed && !isEndless({ route, code });
}

/** Whether a response ends only when its client disconnects. */
function isEndless({ route, code }: CountedAs): boolean {
  return route === '/status/stream' && code === 200;
}
