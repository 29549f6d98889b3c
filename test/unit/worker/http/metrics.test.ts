import type { FamilyFigures } from '../../../../src/shared/metrics.js';
import { HttpMetrics } from '../../../../src/worker/http/exchange.js';
import { methodLabel } from '../../../../src/worker/http/labels.js';
import { families } from '../../../support/documents/families.js';

const ofTheWorker = [
  ...['http_requests_total', 'http_request_duration_seconds', 'http_requests_in_flight', 'http_aborted_requests_total'],
  ...['errors_total', 'log_write_errors_total'],
];

function valuesOf(changes: readonly FamilyFigures[], family: string): FamilyFigures['values'] {
  return changes.find(({ name }) => name === `model_api_${family}`)?.values ?? [];
}

async function grownIn(metrics: HttpMetrics, family: string) {
  const values = valuesOf(await metrics.changes(), family);
  return values.filter(({ value }) => value !== 0).map(({ labels, value }) => ({ labels, value }));
}

/** Returns metrics after their first report, which contains every family. */
async function reported(): Promise<HttpMetrics> {
  const metrics = new HttpMetrics();
  await metrics.changes();
  return metrics;
}

describe('The metrics of a worker', () => {
  it.each(ofTheWorker)('include %s from the first report on, with its initial series', async (name) => {
    const family = (await new HttpMetrics().changes()).find((each) => each.name === `model_api_${name}`);
    expect(family).toMatchObject({ type: families[name]?.type });
    expect(family?.values.map(({ labels }) => labels)).toEqual(families[name]?.labelSets);
  });

  it('have the process label worker', async () => {
    const changes = await new HttpMetrics().changes();
    const values = valuesOf(changes, 'process_resident_memory_bytes');
    expect(values).toEqual([{ labels: { process: 'worker' }, value: expect.any(Number) }]);
  });

  it('count an answer, and its duration', async () => {
    const metrics = await reported();
    metrics.opened();
    expect(await grownIn(metrics, 'http_requests_in_flight')).toEqual([{ labels: {}, value: 1 }]);
    metrics.completed('GET', '/version', 200, 0.5);
    const changes = await metrics.changes();
    const labels = { method: 'GET', route: '/version', code: '200' };
    expect(valuesOf(changes, 'http_requests_total')).toEqual([{ labels, value: 1 }]);
    expect(valuesOf(changes, 'http_requests_in_flight')).toEqual([{ labels: {}, value: 0 }]);
    const sums = valuesOf(changes, 'http_request_duration_seconds').filter(({ metricName = '' }) =>
      /_sum$/.test(metricName),
    );
    expect(sums).toMatchObject([{ labels: { method: 'GET', route: '/version' }, value: 0.5 }]);
    expect(sums[0]?.labels).not.toHaveProperty('code');
  });

  it('time only the answers of an endpoint', async () => {
    const metrics = await reported();
    for (let opened = 0; opened < 2; opened++) metrics.opened();
    metrics.completed('GET', 'other', 404, 0.5);
    metrics.completed('GET', '/ask', 405, 0.5);
    expect(valuesOf(await metrics.changes(), 'http_request_duration_seconds')).toEqual([]);
  });

  it('count errors, aborted requests and lost log records', async () => {
    const metrics = await reported();
    metrics.failed('/ask', 'timeout');
    metrics.opened();
    metrics.aborted('/chat');
    metrics.logWriteFailed();
    const changes = await metrics.changes();
    expect(valuesOf(changes, 'errors_total')).toEqual([{ labels: { route: '/ask', error: 'timeout' }, value: 1 }]);
    expect(valuesOf(changes, 'http_aborted_requests_total')).toEqual([{ labels: { route: '/chat' }, value: 1 }]);
    expect(valuesOf(changes, 'http_requests_in_flight')).toEqual([{ labels: {}, value: 0 }]);
    expect(valuesOf(changes, 'log_write_errors_total')).toEqual([{ labels: {}, value: 1 }]);
  });

  it('count bytes that never became a request, without an in-flight request', async () => {
    const metrics = await reported();
    metrics.refused('', 431, 'validation_error');
    const changes = await metrics.changes();
    const labels = { method: 'other', route: 'other', code: '431' };
    expect(valuesOf(changes, 'http_requests_total')).toEqual([{ labels, value: 1 }]);
    const error = { route: 'other', error: 'validation_error' };
    expect(valuesOf(changes, 'errors_total')).toEqual([{ labels: error, value: 1 }]);
    expect(valuesOf(changes, 'http_requests_in_flight')).toEqual([{ labels: {}, value: 0 }]);
  });
});

it('The method label is `other` for an unknown method', () => {
  const labels = ['GET', 'HEAD', 'OPTIONS', 'get', 'BREW', ''].map(methodLabel);
  expect(labels).toEqual(['GET', 'HEAD', 'OPTIONS', 'other', 'other', 'other']);
});

describe('Changes to report to the primary', () => {
  it('exist before the first report, and not after it', async () => {
    const metrics = new HttpMetrics();
    expect(metrics.hasNews).toBe(true);
    await metrics.changes();
    expect(metrics.hasNews).toBe(false);
  });

  it.each<[string, (metrics: HttpMetrics) => void]>([
    ['has begun', (metrics) => metrics.opened()],
    ['was answered, however long ago it began', (metrics) => metrics.completed('POST', '/ask', 200, 60)],
    ['was aborted, however long ago it began', (metrics) => metrics.aborted('/ask')],
    ['was refused before it became one', (metrics) => metrics.refused('', 400, 'validation_error')],
  ])('exist when a request %s', async (_, happen) => {
    const metrics = await reported();
    happen(metrics);
    expect(metrics.hasNews).toBe(true);
    await metrics.changes();
    expect(metrics.hasNews).toBe(false);
  });
});
