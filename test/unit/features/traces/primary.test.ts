import { spansOfJobs } from '../../../../src/features/traces/job-spans.js';
import { createTraces } from '../../../../src/features/traces/primary.js';
import type { SpanExporter } from '../../../../src/features/traces/span-exporter.js';
import type { PrimaryCore } from '../../../../src/primary/features/feature.js';
import { FeatureHooks } from '../../../../src/primary/features/feature-hooks.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';

const core = { host: { clock: new FakeClock() } } as unknown as PrimaryCore;
const sampler = { isParentBased: true, ratio: 0.5 };
const trace = { traceId: '0'.repeat(31).concat('1'), spanId: '0'.repeat(15).concat('1') };

function tracedPrimary() {
  const added: unknown[] = [];
  let isClosed = false;
  const exporter = {
    counts: { exported: 7, dropped: 1 },
    addSpan: (span: unknown) => void added.push(span),
    closeExporter: async () => {
      isClosed = true;
    },
  } as unknown as SpanExporter;
  const hooks = new FeatureHooks([createTraces({ sampler, openExporter: () => exporter })(core)]);
  return { hooks, added, isClosed: () => isClosed };
}

describe('The traces of a primary', () => {
  it('give the workers the rule for their requests, and export the spans of workers', async () => {
    const { hooks, added, isClosed } = tracedPrimary();
    expect(hooks.handlers.traceSampler?.({} as never)).toEqual({ sampler });
    expect(hooks.handlers.spans?.({ texts: ['{}', '[]'] } as never)).toEqual({});
    expect(added).toEqual(['{}', '[]']);
    expect(hooks.counters[0]?.read()).toEqual({ exported: 7, dropped: 1 });
    await hooks.stop();
    expect(isClosed()).toBe(true);
  });

  it('observe the jobs whose trace is sampled', () => {
    const { hooks } = tracedPrimary();
    const traced = (isSampled: boolean) =>
      hooks.traceJob({ trace: { ...trace, isSampled } } as never, {} as never, () => {});
    expect([traced(true) === null, traced(false) === null]).toEqual([false, true]);
    expect(spansOfJobs({ addSpan: () => {} }, new FakeClock())({} as never, {} as never)).toBeNull();
  });

  it('without a collector observe no job, and count nothing', async () => {
    const part = createTraces(null)(core);
    const hooks = new FeatureHooks([part]);
    expect(hooks.traceJob({ trace: { ...trace, isSampled: true } } as never, {} as never, () => {})).toBeNull();
    expect(hooks.handlers.traceSampler?.({} as never)).toEqual({ sampler: null });
    expect(hooks.counters[0]?.read()).toEqual({ exported: 0, dropped: 0 });
    expect(part.storedKinds).toMatchObject([{ kind: 'traces', place: 'nowhere' }]);
    await hooks.stop();
  });
});
