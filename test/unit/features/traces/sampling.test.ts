import { isSampled, newSpanId, newTraceId } from '../../../../src/features/traces/sampling.js';

const traceId = '0af7651916cd43dd8448eb211c80319c';
const spanId = 'b7ad6b7169203331';

it('New trace ids have the lengths of OpenTelemetry, and are never the same', () => {
  const ids = Array.from({ length: 1000 }, () => [newTraceId(), newSpanId()] as const);
  for (const [trace, span] of ids)
    expect([trace, span]).toEqual([expect.stringMatching(/^[\da-f]{32}$/), expect.stringMatching(/^[\da-f]{16}$/)]);
  expect(new Set(ids.flat()).size).toBe(2000);
});

describe('A sampler', () => {
  const caller = (sampled: boolean) => ({ traceId, spanId, isSampled: sampled });

  it('uses the decision of the caller, if it is parent-based', () => {
    for (const ratio of [0, 1]) {
      expect(isSampled({ isParentBased: true, ratio }, traceId, caller(true))).toBe(true);
      expect(isSampled({ isParentBased: true, ratio }, traceId, caller(false))).toBe(false);
      expect(isSampled({ isParentBased: false, ratio }, traceId, caller(ratio === 0))).toBe(ratio === 1);
    }
  });

  it('samples a share of all other traces, decided by the trace id', () => {
    const ids = Array.from({ length: 4000 }, newTraceId);
    const taken = (ratio: number) => ids.filter((id) => isSampled({ isParentBased: true, ratio }, id, null));
    expect([taken(0).length, taken(1).length]).toEqual([0, 4000]);
    expect(taken(0.25).length).toBeGreaterThan(800);
    expect(taken(0.25).length).toBeLessThan(1200);
    const half = new Set(taken(0.5));
    expect(taken(0.25).filter((id) => !half.has(id))).toEqual([]);
  });
});
