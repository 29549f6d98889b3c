import { randomUUID } from 'node:crypto';

/** The trace that a request belongs to, as W3C Trace Context has it. */
export interface TraceContext {
  /** 32 digits, lower case. */
  readonly traceId: string;
  /** Of the span under which the next one stands: 16 digits. */
  readonly spanId: string;
  /** Whether its spans are exported. */
  readonly isSampled: boolean;
  /** `tracestate`, as the caller has sent it. */
  readonly state?: string | undefined;
}

/** Which traces are exported. */
export interface Sampler {
  /** Whether a caller that has a trace decides for it. */
  readonly isParentBased: boolean;
  /** Of all others: from 0 to 1. */
  readonly ratio: number;
}

/** Of version 00 there is nothing behind the flags; later versions may have more. */
const form = /^(?!ff)([\da-f]{2})-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(?=$|-)/;
const length = 55;
const sampledFlag = 1;

/** What the specification lets through of it, and asks everyone to pass on. */
const maxStateLength = 512;

/** null for a header that is malformed: then there is no trace. Several headers are one that is malformed. */
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

/** From a UUID, because Node has random bytes for many of them in stock. Its last 60 bits are random. */
export function newTraceId(): string {
  return randomUUID().replaceAll('-', '');
}

/** The parts of a UUID that are random altogether. */
export function newSpanId(): string {
  const uuid = randomUUID();
  return uuid.slice(0, 8) + uuid.slice(-8);
}

const randomBits = 56;
const digitBits = 4;

/** The same answer for a trace wherever it is asked: the last bits of its id are random. */
export function isSampled({ isParentBased, ratio }: Sampler, traceId: string, caller: TraceContext | null): boolean {
  if (caller !== null && isParentBased) return caller.isSampled;
  return Number.parseInt(traceId.slice(-randomBits / digitBits), 16) >= (1 - ratio) * 2 ** randomBits;
}
