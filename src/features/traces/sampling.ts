import { randomUUID } from 'node:crypto';
import type { TraceContext } from '../../shared/trace/context.js';

/** Rule that decides which traces are exported. */
export interface Sampler {
  /** Whether the sampled flag of a caller's trace decides. */
  readonly isParentBased: boolean;
  /** Exported share, from 0 to 1, of the traces for which no flag of a caller decides. */
  readonly ratio: number;
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
