import { Registry } from 'prom-client';
import { addProcessMetrics } from '../../../../src/shared/metrics/families.js';

async function familiesOf(process: 'primary' | 'worker') {
  const registry = new Registry();
  addProcessMetrics(registry, process);
  return registry.getMetricsAsJSON();
}

describe('The metrics of a process', () => {
  it.each(['primary', 'worker'] as const)('have the prefix of the service and the label of the %s', async (process) => {
    const families = await familiesOf(process);
    expect(families.length).toBeGreaterThan(10);
    expect(families.filter(({ name }) => !name.startsWith('model_api_'))).toEqual([]);
    const values = families.flatMap((family) => family.values as { labels: Record<string, unknown> }[]);
    expect(values.filter(({ labels }) => labels.process !== process)).toEqual([]);
  });

  it('hold no gauge that is named as a counter', async () => {
    const gauges = (await familiesOf('worker')).filter(({ type }) => String(type) === 'gauge');
    expect(gauges.filter(({ name }) => name.endsWith('_total'))).toEqual([]);
  });

  it('tell the start of the service, which is that of the primary', async () => {
    const [primary, worker] = await Promise.all([familiesOf('primary'), familiesOf('worker')]);
    const isStart = ({ name }: { name: string }) => name === 'model_api_process_start_time_seconds';
    expect(worker.filter(isStart)).toEqual([]);
    const [start] = primary.filter(isStart).flatMap(({ values }) => values);
    expect(Math.abs((start?.value ?? 0) - performance.timeOrigin / 1000)).toBeLessThan(1);
  });
});
