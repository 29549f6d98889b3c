import { z } from 'zod';
import type { Sampler } from './sampling.js';

/**
 * Schemas of the variables of OpenTelemetry, which many programs of a machine may share. An empty one counts as unset.
 */

/** Destination and selection of exported spans. */
export interface SpanExport {
  readonly url: string;
  /** Headers of export requests, some of which are secrets. */
  readonly headers: Readonly<Record<string, string>>;
  /** Attributes of all spans that the operator has configured. */
  readonly resource: Readonly<Record<string, string>>;
  readonly sampler: Sampler;
}

const saidEndpoint =
  'must be an http:// or https:// URL without a user, such as http://localhost:4318 (OTLP over gRPC is not supported)';

function isEndpoint(value: string): boolean {
  if (!/^https?:\/\//i.test(value) || !URL.canParse(value)) return false;
  const { username, password, hash } = new URL(value);
  return username === '' && password === '' && hash === '';
}

/** Schema of an endpoint. Faults do not show the value, which may contain a secret. */
export const otlpEndpoint = z
  .string()
  .refine((value) => value === '' || isEndpoint(value), saidEndpoint)
  .transform((value) => (value === '' ? null : value));

export const otlpProtocol = z.enum(['', 'http/json'], 'must be http/json: no other form of OTLP is supported');

const headerName = /^[\w!#$%&'*+.^`|~-]+$/;
/** Headers that the exporter sets itself, or that belong to the connection. */
const ownHeaders = 'connection content-length content-type expect host keep-alive transfer-encoding upgrade'.split(' ');

/** Schema of pairs such as `a=1,b=2`, with percent-encoding for special characters. */
function pairs(message: string, isPair: (name: string, value: string) => boolean) {
  return z.string().transform((text, context): Readonly<Record<string, string>> => {
    const found = text.split(',').filter((part) => part.trim() !== '');
    const read = found.map(pairOf);
    if (read.every((pair) => pair !== null && isPair(...pair))) return Object.fromEntries(read as [string, string][]);
    context.addIssue(message);
    return z.NEVER;
  });
}

function pairOf(text: string): readonly [name: string, value: string] | null {
  const [, name = '', value = ''] = /^([^=]*)=(.*)$/s.exec(text) ?? [];
  try {
    return [decodeURIComponent(name.trim()), decodeURIComponent(value.trim())];
  } catch {
    return null; // a % that escapes nothing
  }
}

export const otlpHeaders = pairs(
  'must be pairs such as authorization=Bearer%20abc, separated by commas, of headers that an exporter does not set itself',
  (name, value) =>
    headerName.test(name) &&
    !ownHeaders.includes(name.toLowerCase()) &&
    /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(value),
);

export const resourceAttributes = pairs(
  'must be pairs such as deployment.environment.name=staging, separated by commas',
  (name) => name !== '',
);

export const serviceName = z.string().regex(/^[^\p{Cc}]{0,255}$/u, 'must be a name of at most 255 characters');

const samplerNames = [
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
  'always_on',
  'always_off',
  'traceidratio',
] as const;

export const tracesSampler = z
  .enum(['', ...samplerNames], `must be one of ${samplerNames.join(', ')}`)
  .transform((name) => name || 'parentbased_always_on');

export const samplerRatio = z
  .string()
  .regex(/^((0|1)(\.\d{1,15})?)?$/, 'must be a number from 0 to 1, such as 0.1')
  .transform((value) => (value === '' ? 1 : Number(value)))
  .pipe(z.number().max(1, 'must be a number from 0 to 1, such as 0.1'));

/** Parsed variables. */
interface OtlpValues {
  readonly OTEL_EXPORTER_OTLP_ENDPOINT: string | null;
  readonly OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: string | null;
  readonly OTEL_EXPORTER_OTLP_HEADERS: Readonly<Record<string, string>>;
  readonly OTEL_SERVICE_NAME: string;
  readonly OTEL_RESOURCE_ATTRIBUTES: Readonly<Record<string, string>>;
  readonly OTEL_TRACES_SAMPLER: (typeof samplerNames)[number];
  readonly OTEL_TRACES_SAMPLER_ARG: number;
}

/** Returns the configuration of the span export; null if no spans are exported. */
export function spanExportOf(values: OtlpValues): SpanExport | null {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: ofTraces } = values;
  const url = ofTraces ?? (endpoint === null ? null : tracesUrl(endpoint));
  const sampler = samplerOf(values);
  if (url === null || (sampler.ratio === 0 && !sampler.isParentBased)) return null;
  const name = values.OTEL_SERVICE_NAME;
  return {
    url,
    headers: values.OTEL_EXPORTER_OTLP_HEADERS,
    resource: { ...values.OTEL_RESOURCE_ATTRIBUTES, ...(name !== '' && { 'service.name': name }) },
    sampler,
  };
}

/** Appends the path for traces to an endpoint for all signals. */
function tracesUrl(endpoint: string): string {
  const url = new URL(endpoint);
  url.pathname = `${url.pathname.replace(/\/$/, '')}/v1/traces`;
  return url.href;
}

function samplerOf({ OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: ratio }: OtlpValues): Sampler {
  const rootRatio = name.endsWith('always_on') ? 1 : name.endsWith('always_off') ? 0 : ratio;
  return { isParentBased: name.startsWith('parentbased_'), ratio: rootRatio };
}
