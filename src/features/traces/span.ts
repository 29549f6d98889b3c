import type { TraceContext } from '../../shared/trace/context.js';
import { newSpanId } from './sampling.js';

/** Span kinds with their numbers in OTLP. */
const spanKinds = { internal: 1, server: 2, client: 3 } as const;

const errorStatus = 2;
/** Flags of a sampled span whose parent is known to be in this service (`local`) or in another one (`remote`). */
const flags = { local: 0x101, remote: 0x301 } as const;

/** Value of an attribute. Undefined and null values are left out. Whole numbers become integers. */
type AttributeValue = string | number | boolean | readonly string[] | null | undefined;
export type Attributes = Readonly<Record<string, AttributeValue>>;

export interface Span extends Pick<TraceContext, 'traceId' | 'state'> {
  /** ID of the span; if undefined, `spanTexts` generates one. */
  readonly spanId?: string;
  readonly parentId: string | null;
  readonly isParentRemote?: boolean;
  readonly name: string;
  readonly kind: keyof typeof spanKinds;
  /** Start and end in milliseconds since the epoch, with fractions. */
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: readonly Attributes[];
  /** Error class from a short list, if the span ended with an error. */
  readonly error?: string | undefined;
}

/**
 * Serializes spans as OTLP JSON. Strings in `spans` are already serialized. Concatenating text for many spans is
 * several times faster than serializing objects one by one.
 */
export function spanTexts(spans: readonly (Span | string)[]): string[] {
  return spans.map((span) => (typeof span === 'string' ? span : spanText(span)));
}

function spanText(span: Span): string {
  const { traceId, spanId = newSpanId(), state, parentId, isParentRemote = false } = span;
  const { name, kind, startMs, endMs, attributes, error } = span;
  let text = `{"traceId":"${traceId}","spanId":"${spanId}"`;
  if (state !== undefined) text += `,"traceState":${JSON.stringify(state)}`;
  if (parentId !== null) text += `,"parentSpanId":"${parentId}"`;
  text += `,"flags":${isParentRemote ? flags.remote : flags.local},"name":${JSON.stringify(name)},"kind":${spanKinds[kind]}`;
  text += `,"startTimeUnixNano":"${unixNano(startMs)}","endTimeUnixNano":"${unixNano(Math.max(startMs, endMs))}"`;
  if (error !== undefined) text += `,"status":{"code":${errorStatus}}`;
  return `${text},"attributes":${attributesText(...attributes, { 'error.type': error })}}`;
}

export function attributesText(...parts: readonly Attributes[]): string {
  let list = '';
  for (const part of parts) {
    for (const key in part) {
      const value = part[key];
      if (value === undefined || value === null) continue;
      list += `${list === '' ? '' : ','}{"key":${JSON.stringify(key)},"value":${valueText(value)}}`;
    }
  }
  return `[${list}]`;
}

/** Serializes a value. In JSON, OTLP writes 64-bit integers as strings. */
function valueText(value: string | number | boolean | readonly string[]): string {
  if (typeof value === 'string') return `{"stringValue":${JSON.stringify(value)}}`;
  if (typeof value === 'boolean') return `{"boolValue":${value}}`;
  if (Number.isSafeInteger(value)) return `{"intValue":"${value}"}`;
  if (typeof value === 'number') return `{"doubleValue":${JSON.stringify(value)}}`;
  return `{"arrayValue":{"values":[${value.map(valueText).join(',')}]}}`;
}

const nanosInMs = 1e6;

/** Converts milliseconds to nanoseconds, in two parts because a double has too few digits. */
function unixNano(ms: number): string {
  const whole = Math.floor(ms);
  return `${whole}${String(Math.floor((ms - whole) * nanosInMs)).padStart(6, '0')}`;
}
