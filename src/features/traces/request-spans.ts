import type { Request } from 'express';
import type { Clock, StopTimer } from '../../shared/clock.js';
import { httpStatusOf } from '../../shared/errors.js';
import type { TraceContext } from '../../shared/trace/context.js';
import type { WorkerCore } from '../../worker/features/feature.js';
import { type EndedRequest, type Exchange, type RequestTracer, traceOfCaller } from '../../worker/http/exchange.js';
import { methodLabel } from '../../worker/http/labels.js';
import { isSampled, newSpanId, newTraceId, type Sampler } from './sampling.js';
import type { calls } from './shared.js';
import { type Span, spanTexts } from './span.js';

/** Span of an open request; parent of the spans of its job. */
export interface RequestTrace extends TraceContext {
  /** Span of the caller; null if the trace begins here. */
  readonly parentId: string | null;
  readonly startMs: number;
}

/** Interval of sending: a message to the primary costs more than a span, so spans are sent in batches. */
const sendMs = 1000;
const maxWaiting = 64;

/** Begins a span for each sampled request, and owns ended spans until the batch is sent to the primary. */
export class RequestSpans implements RequestTracer {
  readonly #sampler: Sampler;
  readonly #primary: WorkerCore<typeof calls>['primary'];
  readonly #clock: Pick<Clock, 'now' | 'after'>;
  #waiting: Span[] = [];
  #stopTimer: StopTimer | null = null;

  constructor(sampler: Sampler, primary: WorkerCore<typeof calls>['primary'], clock: Pick<Clock, 'now' | 'after'>) {
    this.#sampler = sampler;
    this.#primary = primary;
    this.#clock = clock;
  }

  /**
   * Returns the span, or null. Without a caller's trace, only POST requests begin one: requests that only read are
   * mostly probes.
   */
  beginTrace(req: Request): RequestTrace | TraceContext | null {
    const caller = traceOfCaller(req);
    if (caller === null && req.method !== 'POST') return null;
    const traceId = caller?.traceId ?? newTraceId();
    if (!isSampled(this.#sampler, traceId, caller)) return caller && { ...caller, isSampled: false };
    const { state } = caller ?? {};
    const parentId = caller?.spanId ?? null;
    return { traceId, spanId: newSpanId(), isSampled: true, state, parentId, startMs: this.#clock.now() };
  }

  /** Ends the span. `trace`: the result of `beginTrace`. */
  endTrace(trace: RequestTrace | TraceContext, req: Request, exchange: Exchange, ended: EndedRequest): void {
    if (!('startMs' in trace)) return;
    const { route, requestId, job } = exchange;
    const { path, statusCode, durationMs } = ended;
    const method = methodLabel(req.method);
    const methodName = method === 'other' ? 'HTTP' : method;
    const { traceId, spanId, state, parentId, startMs } = trace;
    this.#waiting.push({
      traceId,
      spanId,
      state,
      parentId,
      isParentRemote: true,
      name: route === 'other' ? methodName : `${methodName} ${route}`,
      kind: 'server',
      startMs,
      endMs: startMs + durationMs,
      attributes: [
        {
          'http.request.method': method === 'other' ? '_OTHER' : method,
          'http.route': route === 'other' ? null : route,
          'http.response.status_code': statusCode,
          'network.protocol.version': req.httpVersion,
          'url.path': path,
          'url.scheme': req.protocol,
          'prompt_relay.outcome': job?.figures().outcome,
          'prompt_relay.request_id': requestId,
        },
      ],
      error: errorOf(exchange, statusCode),
    });
    if (this.#waiting.length >= maxWaiting) this.sendSpans();
    else this.#stopTimer ??= this.#clock.after(sendMs, () => this.sendSpans());
  }

  /** Sends the waiting spans to the primary. */
  sendSpans(): void {
    this.#stopTimer?.();
    this.#stopTimer = null;
    const spans = this.#waiting;
    this.#waiting = [];
    if (spans.length === 0) return;
    this.#primary.call('spans', { texts: spanTexts(spans) }).catch(() => {}); // the primary and its exporter have ended
  }
}

const firstServerError = 500;

/**
 * Returns the error of a span; undefined also for mistakes of the client. A stream may fail after its status was sent.
 */
function errorOf({ error }: Pick<Exchange, 'error'>, statusCode: number | null): string | undefined {
  if (statusCode === null) return 'cancelled';
  if (error !== null && httpStatusOf[error] >= firstServerError) return error;
  return statusCode >= firstServerError ? String(statusCode) : undefined;
}
