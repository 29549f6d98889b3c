import { traces } from '../../../../src/features/traces/feature.js';
import { spanExportOf } from '../../../../src/features/traces/settings.js';
import type { TraceValues } from '../../../../src/features/traces/shared.js';
import { ConfigFault, type Environment, loadConfig } from '../../../../src/shared/config/config.js';
import { secretNames } from '../../../../src/shared/config/feature-variables.js';

function load(env: Environment) {
  return loadConfig(env, () => Promise.reject(new Error('there is no file')), undefined, [traces]);
}

interface Expectation {
  /** Configuration of the export for each accepted text. */
  readonly good: Readonly<Record<string, unknown>>;
  readonly bad: readonly string[];
  /** Other variables that the accepted texts need. */
  readonly besides?: Environment;
}

const expectations: Readonly<Record<keyof TraceValues, Expectation>> = {
  OTEL_EXPORTER_OTLP_ENDPOINT: {
    good: {
      '': null,
      'http://localhost:4318': expect.objectContaining({ url: 'http://localhost:4318/v1/traces', headers: {} }),
      'https://example.org/otlp/': expect.objectContaining({ url: 'https://example.org/otlp/v1/traces' }),
    },
    bad: ['localhost:4318', 'grpc://localhost:4317', 'http://', 'http://ada:secret@localhost', '/run/otlp.sock', ' '],
  },
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: {
    besides: { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://localhost:4318' },
    good: {
      '': expect.objectContaining({ url: 'http://localhost:4318/v1/traces' }),
      'http://[::1]:4318/traces': expect.objectContaining({ url: 'http://[::1]:4318/traces' }),
    },
    bad: ['localhost', 'http://localhost/#traces'],
  },
  OTEL_EXPORTER_OTLP_PROTOCOL: {
    good: { '': null, 'http/json': null },
    bad: ['grpc', 'http/protobuf', 'HTTP/JSON'],
  },
  OTEL_EXPORTER_OTLP_HEADERS: {
    besides: { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://localhost:4318' },
    good: {
      '': expect.objectContaining({ headers: {} }),
      'authorization=Basic%20YTpi=, x-team = ml,': expect.objectContaining({
        headers: { authorization: 'Basic YTpi=', 'x-team': 'ml' },
      }),
    },
    bad: ['secret', 'a=%', 'a=%0d%0a', '=secret', 'a b=c', 'a=', 'Content-Type=text/plain', 'host=elsewhere', 'a=ä'],
  },
  OTEL_SERVICE_NAME: {
    besides: { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://localhost:4318', OTEL_RESOURCE_ATTRIBUTES: 'service.name=b,a=1' },
    good: {
      '': expect.objectContaining({ resource: { 'service.name': 'b', a: '1' } }),
      'relay of ada': expect.objectContaining({ resource: { 'service.name': 'relay of ada', a: '1' } }),
    },
    bad: ['a\nb', 'a'.repeat(256)],
  },
  OTEL_RESOURCE_ATTRIBUTES: {
    besides: { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://localhost:4318' },
    good: { 'team=m%2Cl, empty=': expect.objectContaining({ resource: { team: 'm,l', empty: '' } }) },
    bad: ['team', '=ml', 'team=%zz'],
  },
  OTEL_TRACES_SAMPLER: {
    besides: { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://localhost:4318', OTEL_TRACES_SAMPLER_ARG: '0.25' },
    good: {
      '': expect.objectContaining({ sampler: { isParentBased: true, ratio: 1 } }),
      parentbased_always_off: expect.objectContaining({ sampler: { isParentBased: true, ratio: 0 } }),
      parentbased_traceidratio: expect.objectContaining({ sampler: { isParentBased: true, ratio: 0.25 } }),
      traceidratio: expect.objectContaining({ sampler: { isParentBased: false, ratio: 0.25 } }),
      always_on: expect.objectContaining({ sampler: { isParentBased: false, ratio: 1 } }),
      always_off: null,
    },
    bad: ['on', 'jaeger_remote', 'Always_On'],
  },
  OTEL_TRACES_SAMPLER_ARG: {
    besides: { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://localhost:4318', OTEL_TRACES_SAMPLER: 'parentbased_traceidratio' },
    good: {
      '': expect.objectContaining({ sampler: { isParentBased: true, ratio: 1 } }),
      '0': expect.objectContaining({ sampler: { isParentBased: true, ratio: 0 } }),
      '0.001': expect.objectContaining({ sampler: { isParentBased: true, ratio: 0.001 } }),
    },
    bad: ['1.1', '2', '.5', '-1', '10%', 'http://localhost'],
  },
};

describe.each(Object.entries(expectations))('%s', (name, { good, bad, besides }) => {
  it.each(Object.entries(good))('accepts %j', async (text, expected) => {
    const { featureValues } = await load({ ...besides, [name]: text });
    expect(spanExportOf(featureValues as TraceValues)).toEqual(expected);
  });

  it.each(bad)('rejects %j', async (text) => {
    const thrown = await load({ ...besides, [name]: text }).catch((error: unknown) => error);
    expect(thrown).toBeInstanceOf(ConfigFault);
    expect((thrown as ConfigFault).faults).toEqual([expect.stringMatching(new RegExp(`^${name}: .+`))]);
  });
});

it('Without a variable, no spans are exported', async () => {
  const { featureValues } = await load({});
  expect(spanExportOf(featureValues as TraceValues)).toBeNull();
});

it('The headers for the collector may be a credential', () => {
  expect(secretNames([traces], ['part', 'whole'])).toEqual(['OTEL_EXPORTER_OTLP_HEADERS']);
});
