import type { Request } from 'express';
import type { Clock, StopTimer } from '../../shared/clock.js';
import { httpStatusOf } from '../../shared/errors.js';
import {
  isSampled,
  newSpanId,
  newTraceId,
  readTraceparent,
  type Sampler,
  type TraceContext,
} from '../../shared/trace/context.js';
import { type Span, spanTexts } from '../../shared/trace/span.js';
import type { Exchange, Primary } from './exchange.js';
import { methodLabel } from './known-responses.js';

/** The span of a request, while it is open. The spans of its job stand under it. */
export interface RequestTrace extends TraceContext {
  /** Of the caller; null where the trace begins here. */
  readonly parentId: string | null;
  readonly startMs: number;
}

/** How a request has ended. */
export interface EndedRequest {
  readonly path: string;
  /** null: its client has gone before the end. */
  readonly statusCode: number | null;
  readonly durationMs: number;
}

/** Of the trace that a caller has sent. */
export function traceOfCaller({ headers: { traceparent, tracestate } }: Request): TraceContext | null {
  const state = Array.isArray(tracestate) ? tracestate.join(',') : tracestate;
  return typeof traceparent === 'string' ? readTraceparent(traceparent, state) : null;
}

/** A message to the primary costs more than the span in it: those of one second go together. */
const sendMs = 1000;
const maxWaiting = 64;

/** Gives each request that is to have one its span, and owns those that have ended, until they are sent to the primary. */
export class RequestSpans {
  readonly #sampler: Sampler;
  readonly #primary: Pick<Primary, 'call'>;
  readonly #clock: Pick<Clock, 'now' | 'after'>;
  #waiting: Span[] = [];
  #stopTimer: StopTimer | null = null;

  constructor(sampler: Sampler, primary: Pick<Primary, 'call'>, clock: Pick<Clock, 'now' | 'after'>) {
    this.#sampler = sampler;
    this.#primary = primary;
    this.#clock = clock;
  }

  /** A trace begins here with each request that is to change something: those that only read are mostly probes. */
  begin(req: Request): RequestTrace | TraceContext | null {
    const caller = traceOfCaller(req);
    if (caller === null && req.method !== 'POST') return null;
    const traceId = caller?.traceId ?? newTraceId();
    if (!isSampled(this.#sampler, traceId, caller)) return caller && { ...caller, isSampled: false };
    const { state } = caller ?? {};
    const parentId = caller?.spanId ?? null;
    return { traceId, spanId: newSpanId(), isSampled: true, state, parentId, startMs: this.#clock.now() };
  }

  /** `trace`: as `begin` has returned it. */
  end(trace: RequestTrace | TraceContext, req: Request, exchange: Exchange, ended: EndedRequest): void {
    if (!('startMs' in trace)) return;
    const { route, requestId, job } = exchange;
    const { path, statusCode, durationMs } = ended;
    const method = methodLabel(req.method);
    const said = method === 'other' ? 'HTTP' : method;
    const { traceId, spanId, state, parentId, startMs } = trace;
    this.#waiting.push({
      traceId,
      spanId,
      state,
      parentId,
      isParentRemote: true,
      name: route === 'other' ? said : `${said} ${route}`,
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
    if (this.#waiting.length >= maxWaiting) this.send();
    else this.#stopTimer ??= this.#clock.after(sendMs, () => this.send());
  }

  /** Sends those that wait. */
  send(): void {
    this.#stopTimer?.();
    this.#stopTimer = null;
    const spans = this.#waiting;
    this.#waiting = [];
    if (spans.length === 0) return;
    this.#primary.call('spans', { texts: spanTexts(spans) }).catch(() => {}); // the primary is gone, and with it the exporter
  }
}

const firstServerError = 500;

/** What is wrong with the request itself is no error of this service. A stream may fail after its status was sent. */
function errorOf({ error }: Pick<Exchange, 'error'>, statusCode: number | null): string | undefined {
  if (statusCode === null) return 'cancelled';
  if (error !== null && httpStatusOf[error] >= firstServerError) return error;
  return statusCode >= firstServerError ? String(statusCode) : undefined;
}
