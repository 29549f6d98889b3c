import { newSpanId, type TraceContext } from './context.js';

/** As OTLP numbers them. */
export const spanKinds = { internal: 1, server: 2, client: 3 } as const;

const errorStatus = 2;
/** Sampled; and that the parent is known to be of this service, or of another one. */
const flags = { local: 0x101, remote: 0x301 } as const;

/** Undefined and null: it is not there. A whole number is written as one. */
export type AttributeValue = string | number | boolean | readonly string[] | null | undefined;
export type Attributes = Readonly<Record<string, AttributeValue>>;

export interface Span extends Pick<TraceContext, 'traceId' | 'state'> {
  /** Left out: it gets one when it is written. */
  readonly spanId?: string;
  readonly parentId: string | null;
  readonly isParentRemote?: boolean;
  readonly name: string;
  readonly kind: keyof typeof spanKinds;
  /** Milliseconds since the epoch, with fractions. */
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: readonly Attributes[];
  /** The class of the error that it has ended with: a word of a short list. */
  readonly error?: string | undefined;
}

/** Spans as JSON of OTLP, but for those that are. Many at once, and from pieces: one by one, as objects, they cost several times as much. */
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

/** Numbers of 64 bits are strings in JSON. */
function valueText(value: string | number | boolean | readonly string[]): string {
  if (typeof value === 'string') return `{"stringValue":${JSON.stringify(value)}}`;
  if (typeof value === 'boolean') return `{"boolValue":${value}}`;
  if (Number.isSafeInteger(value)) return `{"intValue":"${value}"}`;
  if (typeof value === 'number') return `{"doubleValue":${JSON.stringify(value)}}`;
  return `{"arrayValue":{"values":[${value.map(valueText).join(',')}]}}`;
}

const nanosInMs = 1e6;

/** In two parts: a double has too few digits for the whole. */
function unixNano(ms: number): string {
  const whole = Math.floor(ms);
  return `${whole}${String(Math.floor((ms - whole) * nanosInMs)).padStart(6, '0')}`;
}
