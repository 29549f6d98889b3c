import { z } from 'zod';
import type { FeatureVariables, ValuesOf } from '../../shared/config/feature-variables.js';
import type { MetricTable } from '../../shared/tables/metrics.js';
import {
  otlpEndpoint,
  otlpHeaders,
  otlpProtocol,
  resourceAttributes,
  samplerRatio,
  serviceName,
  tracesSampler,
} from './settings.js';

/** Variables, calls and log events of traces. */

export const variables = {
  OTEL_EXPORTER_OTLP_ENDPOINT: {
    ...{ schema: otlpEndpoint, fallback: null, secrecy: 'none' },
    meaning: 'collector for [traces](monitoring.md#traces), such as `http://localhost:4318`, without `/v1/traces`',
    shownDefault: 'no traces',
  },
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: {
    ...{ schema: otlpEndpoint, fallback: null, secrecy: 'none' },
    meaning: 'the same for traces alone, with its whole path',
    shownDefault: 'none',
  },
  OTEL_EXPORTER_OTLP_PROTOCOL: {
    ...{ schema: otlpProtocol, fallback: '', secrecy: 'none' },
    meaning: 'only `http/json`',
    shownDefault: '`http/json`',
  },
  OTEL_EXPORTER_OTLP_HEADERS: {
    ...{ schema: otlpHeaders, fallback: '', secrecy: 'part' },
    meaning: 'headers for the collector, such as `authorization=Bearer%20abc`',
    shownDefault: 'none',
  },
  OTEL_SERVICE_NAME: {
    ...{ schema: serviceName, fallback: '', secrecy: 'none' },
    meaning: '`service.name` in traces',
    shownDefault: '`prompt-relay`',
  },
  OTEL_RESOURCE_ATTRIBUTES: {
    ...{ schema: resourceAttributes, fallback: '', secrecy: 'none' },
    meaning: 'attributes of all spans, such as `deployment.environment.name=staging,team=ml`',
    shownDefault: 'none',
  },
  OTEL_TRACES_SAMPLER: {
    ...{ schema: tracesSampler, fallback: 'parentbased_always_on', secrecy: 'none' },
    meaning:
      '`parentbased_always_on`, `parentbased_always_off`, `parentbased_traceidratio`, `always_on`, `always_off` or `traceidratio`; with `parentbased_`, the `traceparent` of a caller decides',
  },
  OTEL_TRACES_SAMPLER_ARG: {
    ...{ schema: samplerRatio, fallback: '1', secrecy: 'none' },
    meaning: 'share of traces for `traceidratio`, from 0 to 1',
  },
} as const satisfies FeatureVariables;

export type TraceValues = ValuesOf<typeof variables>;

export const calls = {
  /** Returns the rule for which requests have spans; null if no spans are exported. */
  traceSampler: {
    request: z.object({}),
    answer: z.object({
      sampler: z.object({ isParentBased: z.boolean(), ratio: z.number() }).readonly().nullable(),
    }),
  },
  /** Sends the spans of ended requests, each as JSON of OTLP. */
  spans: { request: z.object({ texts: z.array(z.string()) }), answer: z.object({}) },
};

export const logEvents = {
  trace_export_failed: 'the collector does not accept all spans: error. Logged once, until trace_export_back',
  trace_export_back: 'the collector accepts spans again: spans lost since the start',
} as const;

export const metrics = {
  trace_spans_total: { type: 'counter', labels: ['result'], help: 'Trace spans, by result of their export.' },
} as const satisfies MetricTable;
