/** Trace of a request, by W3C Trace Context. */
export interface TraceContext {
  /** Trace ID, 32 hexadecimal digits in lower case. */
  readonly traceId: string;
  /** ID of the parent of the next span, 16 digits. */
  readonly spanId: string;
  /** Whether the caller records the trace, and this service exports its part of it. */
  readonly isSampled: boolean;
  /** Header `tracestate` of the caller. */
  readonly state?: string | undefined;
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
