import { randomUUID } from 'node:crypto';
import type { NextFunction, Request, Response } from 'express';
import { Registry } from 'prom-client';
import type { Clock } from '../../shared/clock.js';
import { httpStatusOf, type PublicCode, publicCodes, type RelayError } from '../../shared/errors.js';
import type { Peer } from '../../shared/ipc/peer.js';
import type { PrimaryCalls, WorkerCalls, WorkerKey } from '../../shared/ipc/protocol.js';
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
import type { TraceContext } from '../../shared/trace/context.js';
import { type KnownResponse, knownResponses, methodLabel, type RouteLabel, routeLabels } from './known-responses.js';
import { type RequestSpans, traceOfCaller } from './request-spans.js';
import type { KeyedRequest } from './responses.js';

/** What the request log says of a job. */
export interface JobFigures extends JobUsage {
  readonly outcome: Outcome;
  readonly queueMs: number;
  readonly executionMs: number;
}

/** A job, as its exchange sees it. */
export interface JobProgress {
  /** Whether the job had its slot. */
  readonly hasStarted: boolean;
  figures(): JobFigures;
}

/** The primary, as a worker sees it. */
export type Primary = Peer<PrimaryCalls, WorkerCalls>;

/** An error in the form of a foreign API: the status of the response and its body. */
export type ErrorForm = (error: RelayError, requestId: string) => { readonly status: number; readonly body: object };

/** What is known of one request while it is open. Lives with its response, in `res.locals`. */
export interface Exchange extends Record<string, unknown> {
  requestId: string;
  /** The trace that it belongs to; null without one. */
  trace: TraceContext | null;
  /** Template of the route that matched; `other` until one has. */
  route: RouteLabel;
  /** Code of the error body that was sent, if one was. */
  error: PublicCode | null;
  /** Whose request it is, as of `shared/client.ts`. Empty where that does not matter. */
  client: string;
  /** The API key that it carries, once it was accepted. */
  key: WorkerKey | null;
  /** The form of errors; null: the service's own. */
  errorForm: ErrorForm | null;
  /** The values and bytes of its body, once the body has come. */
  structure: JsonStructure | null;
  /** Of a request that is to run a model once, however often it is sent. */
  idempotent: KeyedRequest | null;
  /** How the request's job is doing, if it has one. */
  job: JobProgress | null;
  /** A file of the console that browsers store. One visit loads many, which would fill the log and the figures of requests. */
  isFile: boolean;
}

export type Reply = Response<unknown, Exchange>;
export type Handler = (req: Request, res: Reply, next: NextFunction) => void;
export type AsyncHandler = (req: Request, res: Reply, next: NextFunction) => Promise<void>;

/** On every response, but that the files of the console may be stored. */
export const commonHeaders = { 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' } as const;

const commonLines = Object.entries(commonHeaders);

export const maxPathLength = 256;
const maxClientLength = 128;
const clientGone = 499;

const unknownYet = {
  route: 'other',
  error: null,
  client: '',
  key: null,
  errorForm: null,
  structure: null,
  idempotent: null,
  job: null,
  isFile: false,
} as const satisfies Omit<Exchange, 'requestId' | 'trace'>;

export interface ExchangeParts {
  readonly log: Logger;
  readonly metrics: HttpMetrics;
  readonly clock: Clock;
  /** null where no spans are exported. */
  readonly spans: RequestSpans | null;
  readonly heap: { touch(): void };
  /** Whether this worker is about to exit: then each response is the last one on its connection, so that no request is lost with it. */
  readonly isClosing: () => boolean;
}

/** Opens every exchange: sets the request id and the common headers, and at the end writes the log record and the counts. */
export function openExchange({ log, metrics, clock, spans, heap, isClosing }: ExchangeParts): Handler {
  return (req, res, next) => {
    const startedMs = clock.monotonicMs();
    const requestId = requestIdFrom(req.get('x-request-id'));
    const trace = isUntraced(req) && spans === null ? null : (spans?.begin(req) ?? traceOfCaller(req));
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
        spans?.end(trace, req, res.locals, { path, statusCode: isComplete(res) ? res.statusCode : null, durationMs });
    });
    next();
  };
}

/** As nearly all requests are. */
function isUntraced({ headers }: Request): boolean {
  return headers.traceparent === undefined;
}

/**
 * Whether a proxy and this server may disagree on where the next request begins, so that only a closed connection is safe.
 * A client that got no `100 Continue` may or may not send its body. Of other codings than `chunked`, and of none, Node
 * reads some as if they were not there. What follows an Upgrade in the same packet is lost.
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

/** Whether the client has stayed to the end of the response. A stream without end counts as complete. */
function isComplete(res: Reply): boolean {
  const isViewed = res.headersSent && isEndless({ route: res.locals.route, code: res.statusCode });
  return res.writableFinished || isViewed;
}

/** Sets the route that the request is counted by. */
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
    ...(client !== '' && { client: client.slice(0, maxClientLength) }),
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

/** Without the query, and without the scheme and authority of an absolute target: they may hold secrets. */
function pathOf(url: string): string {
  const path = url.startsWith('/') ? url : url.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '');
  const end = path.search(/[?#]/);
  return path.slice(0, end < 0 ? maxPathLength : Math.min(end, maxPathLength));
}

const acceptableId = /^[A-Za-z0-9._-]{1,64}$/;

/** The client's own request id where it is well formed, else a new UUID. */
export function requestIdFrom(header: string | undefined): string {
  return header !== undefined && acceptableId.test(header) ? header : randomUUID();
}

/** Most answers take milliseconds, but a job may take its whole time-out. */
const durationBuckets = [0.005, 0.01, 0.025, 0.1, 0.25, 1, 2.5, 10, 30, 120, 600];

const perResponse = ['method', 'route', 'code'] as const;
const help = {
  requests: 'Requests answered, by method, route template and status code.',
  durations:
    'Time from the request head to the end of the response, of responses that an endpoint gave, streams of the status excluded.',
  aborted: 'Requests whose client went away.',
};

/** Owns what this worker counts: its HTTP exchanges. The primary adds up the figures of all workers. */
export class HttpMetrics {
  readonly #registry = new Registry();
  readonly #requests = counter(this.#registry, 'http_requests_total', help.requests, ...perResponse);
  readonly #durations = durationsIn(this.#registry);
  readonly #inFlight = gauge(
    this.#registry,
    'http_requests_in_flight',
    'Requests that are being answered, viewers of the status included.',
  );
  readonly #aborted = counter(this.#registry, 'http_aborted_requests_total', help.aborted, 'route');
  readonly #errors = counter(this.#registry, 'errors_total', 'Error bodies sent.', 'route', 'error');
  readonly #logErrors = counter(this.#registry, 'log_write_errors_total', 'Log records that could not be written.');
  readonly #report = new FigureReport();
  #hasNews = true;
  #isFirstReport = true;

  constructor() {
    for (const { method, route, code } of knownResponses) {
      this.#requests.inc({ method, route, code: String(code) }, 0);
    }
    for (const route of routeLabels) {
      this.#aborted.inc({ route }, 0);
      for (const error of publicCodes) this.#errors.inc({ route, error }, 0);
    }
    addProcessMetrics(this.#registry, 'worker');
  }

  /** Whether an exchange was counted since `changes` was last called. */
  get hasNews(): boolean {
    return this.#hasNews;
  }

  opened(): void {
    this.#hasNews = true;
    this.#inFlight.inc();
  }

  /** Takes back `opened`, and counts nothing. */
  closed(): void {
    this.#hasNews = true;
    this.#inFlight.dec();
  }

  completed(method: string, route: RouteLabel, code: number, seconds: number): void {
    this.closed();
    const labels = { method: methodLabel(method), route, code: String(code) };
    this.#requests.inc(labels);
    if (isTimed({ route, code })) this.#durations.observe(labels, seconds);
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

  /** What was counted since the last call, for the primary to add to what it knows. */
  async changes(): Promise<FamilyFigures[]> {
    this.#hasNews = false;
    const isFirst = this.#isFirstReport;
    this.#isFirstReport = false;
    const changes = this.#report.changes(await this.#registry.getMetricsAsJSON());
    return isFirst ? [await durationsOfNothing(), ...changes] : changes;
  }
}

function durationsIn(registry: Registry) {
  return histogram(registry, 'http_request_duration_seconds', help.durations, durationBuckets, ...perResponse);
}

/**
 * Each series of durations that there can be, at 0: the primary shows them from the start. They are not made in the
 * registry of the worker, because prom-client takes 7 KB for each and never gives them back.
 */
async function durationsOfNothing(): Promise<FamilyFigures> {
  const registry = new Registry();
  durationsIn(registry).zero({ method: '', route: '', code: '' });
  const [family] = new FigureReport().changes(await registry.getMetricsAsJSON());
  if (family === undefined) throw new Error('prom-client reports no series for a histogram');
  const values = knownResponses.filter(isTimed).flatMap(({ method, route, code }) => {
    const labels = { method, route, code: String(code) };
    return family.values.map((figure) => ({ ...figure, labels: { ...figure.labels, ...labels } }));
  });
  return { ...family, values };
}

/**
 * Whether a response is timed: where an endpoint gave it. A histogram has fourteen series for each label set, and most
 * label sets are refusals of unknown paths and methods. How long somebody views a stream without end is no measure.
 */
export function isTimed({ route, code }: Pick<KnownResponse, 'route' | 'code'>): boolean {
  return route !== 'other' && code !== httpStatusOf.method_not_allowed && !isEndless({ route, code });
}

/** Whether a response has no end of its own, so that it ends when its client goes. */
export function isEndless({ route, code }: Pick<KnownResponse, 'route' | 'code'>): boolean {
  return route === '/status/stream' && code === 200;
}
