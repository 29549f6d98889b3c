import { randomUUID } from 'node:crypto';

/** Trace of a request, by W3C Trace Context. */
export interface TraceContext {
  /** Trace ID, 32 hexadecimal digits in lower case. */
  readonly traceId: string;
  /** ID of the parent of the next span, 16 digits. */
  readonly spanId: string;
  /** Whether the spans of the trace are exported. */
  readonly isSampled: boolean;
  /** Header `tracestate` of the caller. */
  readonly state?: string | undefined;
}

/** Rule that decides which traces are exported. */
export interface Sampler {
  /** Whether the sampled flag of a caller's trace decides. */
  readonly isParentBased: boolean;
  /** Exported share, from 0 to 1, of the traces for which no flag of a caller decides. */
  readonly ratio: number;
}

/** Format of `traceparent`. Version 00 ends after the flags; later versions may have more fields. */
const form = /^(?!ff)([\da-f]{2})-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(?=$|-)/;
const length = 55;
const sampledFlag = 1;

/** Limit of a `tracestate` that is passed on. The specification requires at least this length. */
const maxStateLength = 512;

/**
 * Parses the headers; null if `traceparent` is malformed: then the request has no trace. Node joins repeated headers,
 * which makes them malformed.
 */
export function readTraceparent(traceparent: string, tracestate: string | undefined): TraceContext | null {
  const [, version, traceId, spanId, flags] = form.exec(traceparent) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return null;
  if (version === '00' && traceparent.length !== length) return null;
  const isSampled = (Number.parseInt(flags, 16) & sampledFlag) !== 0;
  return { traceId, spanId, isSampled, ...(isPassedOn(tracestate) && { state: tracestate }) };
}

function isPassedOn(state: string | undefined): state is string {
  return state !== undefined && state.length <= maxStateLength && /^[\x20-\x7e]+$/.test(state);
}

/** Makes a trace ID from a UUID, because Node caches random bytes for UUIDs. The last 60 bits are random. */
export function newTraceId(): string {
  return randomUUID().replaceAll('-', '');
}

/** Makes a span ID from the parts of a UUID that are entirely random. */
export function newSpanId(): string {
  const uuid = randomUUID();
  return uuid.slice(0, 8) + uuid.slice(-8);
}

const randomBits = 56;
const digitBits = 4;

/**
 * Whether the spans of a trace are exported. Every service decides the same, because the decision depends only on the
 * last bits of the trace ID, which are random.
 */
export function isSampled({ isParentBased, ratio }: Sampler, traceId: string, caller: TraceContext | null): boolean {
  if (caller !== null && isParentBased) return caller.isSampled;
  return Number.parseInt(traceId.slice(-randomBits / digitBits), 16) >= (1 - ratio) * 2 ** randomBits;
}
