import type { TraceContext } from './context.js';

/** As OTLP numbers them. */
export const spanKinds = { internal: 1, server: 2, client: 3 } as const;

const errorStatus = 2;
/** Sampled; and that the parent is known to be of this service, or of another one. */
const flagsOf = { local: 0x101, remote: 0x301 } as const;

/** Undefined and null: it is not there. A whole number is written as one. */
export type AttributeValue = string | number | boolean | readonly string[] | null | undefined;
export type Attributes = Readonly<Record<string, AttributeValue>>;

export interface Span extends Pick<TraceContext, 'traceId' | 'spanId' | 'state'> {
  readonly parentId: string | null;
  readonly isParentRemote?: boolean;
  readonly name: string;
  readonly kind: keyof typeof spanKinds;
  /** Milliseconds since the epoch, with fractions. */
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Attributes;
  /** The class of the error that it has ended with: a word of a short list. */
  readonly error?: string | undefined;
}

/** A span as JSON of OTLP. */
export function spanText(span: Span): string {
  const { traceId, spanId, state, parentId, isParentRemote = false, name, kind, startMs, endMs, error } = span;
  return JSON.stringify({
    traceId,
    spanId,
    ...(state !== undefined && { traceState: state }),
    ...(parentId !== null && { parentSpanId: parentId }),
    flags: flagsOf[isParentRemote ? 'remote' : 'local'],
    name,
    kind: spanKinds[kind],
    startTimeUnixNano: unixNano(startMs),
    endTimeUnixNano: unixNano(Math.max(startMs, endMs)),
    attributes: attributeList({ ...span.attributes, 'error.type': error }),
    ...(error !== undefined && { status: { code: errorStatus } }),
  });
}

export function attributeList(attributes: Attributes): object[] {
  return Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined || value === null ? [] : [{ key, value: writtenValue(value) }],
  );
}

/** Numbers of 64 bits are strings in JSON. */
function writtenValue(value: string | number | boolean | readonly string[]): object {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  if (typeof value === 'number')
    return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value };
  return { arrayValue: { values: value.map((each) => ({ stringValue: each })) } };
}

const nanosInMs = 1e6;

/** In two parts: a double has too few digits for the whole. */
function unixNano(ms: number): string {
  const whole = Math.floor(ms);
  return `${whole}${String(Math.floor((ms - whole) * nanosInMs)).padStart(6, '0')}`;
}
