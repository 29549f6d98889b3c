import { plainLaunch } from '../../../../../src/primary/cli/contract/adapter.js';
import {
  type LaunchRecord,
  planStandby,
  type StandbyProcess,
  type StandbySituation,
} from '../../../../../src/primary/cli/pool/standby-policy.js';

const minute = 60_000;
const never = Number.POSITIVE_INFINITY;
/** Current time, late enough for processes of any age in these tests. */
const nowMs = 100 * minute;

interface Named extends StandbyProcess {
  readonly name: string;
}

function record(key: string, of: Partial<LaunchRecord> = {}): LaunchRecord {
  return { key, launch: { ...plainLaunch(null), system: key }, uses: 0, usedMs: 0, failures: 0, notBeforeMs: 0, ...of };
}

/** Returns a standby process of this launch and age. */
function waiting(key: string, ageMs = 1000, name = key): Named {
  return { name, key, startedMs: nowMs - ageMs, isStarting: false };
}

function plan(situation: Partial<StandbySituation<Named>>) {
  const { start, retire, nextMs } = planStandby({
    nowMs,
    perLaunch: 1,
    processes: [],
    launches: [record('usual')],
    isUsual: ({ key }) => key === 'usual',
    demand: [],
    isJobStarting: false,
    idleProcessors: null,
    ...situation,
  });
  return { start: start?.key ?? null, retire: retire.map(({ name }) => name), inMs: nextMs - nowMs };
}

describe('the plan for standby while nobody waits', () => {
  it('starts a process for the usual launch, and looks again soon', () => {
    expect(plan({})).toEqual({ start: 'usual', retire: [], inMs: 100 });
  });

  it('starts nothing where each launch in use has its process, and looks again after a minute', () => {
    expect(plan({ processes: [waiting('usual')] })).toEqual({ start: null, retire: [], inMs: minute });
  });

  it('starts as many for each launch as are to be kept, one at a time', () => {
    const two = [waiting('usual'), waiting('usual')];
    expect(plan({ perLaunch: 3, processes: two }).start).toBe('usual');
    expect(plan({ perLaunch: 3, processes: [...two, { ...waiting('usual', 0), isStarting: true }] }).start).toBeNull();
    expect(plan({ perLaunch: 4, processes: [...two, { ...waiting('usual', 0), isStarting: true }] })).toMatchObject({
      start: null,
      inMs: 100,
    });
    expect(plan({ perLaunch: 3, processes: [...two, waiting('usual')] }).start).toBeNull();
  });

  it('keeps none at 0, and never looks again', () => {
    expect(plan({ perLaunch: 0 })).toEqual({ start: null, retire: [], inMs: never });
    expect(plan({ perLaunch: 0, processes: [waiting('usual')], demand: ['usual'], idleProcessors: 8 })).toEqual({
      start: null,
      retire: ['usual'],
      inMs: never,
    });
  });

  it('keeps one for another launch from its second use on, until it was not used for ten minutes', () => {
    const processes = [waiting('usual')];
    const startFor = (of: Partial<LaunchRecord>) =>
      plan({ processes, launches: [record('usual'), record('a', of)] }).start;
    expect(startFor({ uses: 1, usedMs: nowMs })).toBeNull();
    expect(startFor({ uses: 2, usedMs: nowMs })).toBe('a');
    expect(startFor({ uses: 2, usedMs: nowMs - 10 * minute })).toBe('a');
    expect(startFor({ uses: 2, usedMs: nowMs - 10 * minute - 1 })).toBeNull();
  });

  it('keeps the usual one for ever, used or not', () => {
    const launches = [record('usual', { usedMs: nowMs - 50 * minute })];
    expect(plan({ launches }).start).toBe('usual');
  });

  it('waits while a job waits for its program to get going', () => {
    expect(plan({ isJobStarting: true })).toEqual({ start: null, retire: [], inMs: 100 });
  });

  it('starts nothing that is not due yet, and looks again when it is', () => {
    expect(plan({ launches: [record('usual', { notBeforeMs: nowMs + 4000 })] })).toEqual({
      start: null,
      retire: [],
      inMs: 4000,
    });
    expect(plan({ launches: [record('usual', { notBeforeMs: nowMs })] }).start).toBe('usual');
  });

  it('does not let a launch that has to wait hold up another', () => {
    const launches = [record('usual', { notBeforeMs: nowMs + 4000 }), record('a', { uses: 2, usedMs: nowMs })];
    expect(plan({ launches })).toMatchObject({ start: 'a', inMs: 100 });
  });
});

describe('the plan for standby while jobs wait', () => {
  const demand = ['usual', 'usual', 'usual'];

  it('starts processes for them, up to the demand and no further', () => {
    const startWith = (count: number) =>
      plan({ demand, idleProcessors: 2, processes: Array.from({ length: count }, () => waiting('usual')) }).start;
    expect([0, 1, 2, 3, 4].map(startWith)).toEqual(['usual', 'usual', 'usual', null, null]);
  });

  it('starts only one at a time', () => {
    const processes = [{ ...waiting('usual', 0), isStarting: true }];
    expect(plan({ demand, idleProcessors: 8, processes })).toEqual({ start: null, retire: [], inMs: 100 });
  });

  it.each([
    [null, null],
    [0, null],
    [0.79, null],
    [0.8, 'usual'],
    [8, 'usual'],
  ])('starts only while a processor is idle: %p of them', (idleProcessors, start) => {
    expect(plan({ demand, idleProcessors })).toEqual({ start, retire: [], inMs: 100 });
  });

  it('starts beside a job that gets going, because idle processors decide then', () => {
    expect(plan({ demand, idleProcessors: 1, isJobStarting: true }).start).toBe('usual');
  });

  it('starts for a launch that was never used before, but not for one that nothing is known of', () => {
    const launches = [record('usual'), record('a')];
    expect(plan({ launches, processes: [waiting('usual')], demand: ['a'], idleProcessors: 1 }).start).toBe('a');
    expect(plan({ processes: [waiting('usual')], demand: ['unknown'], idleProcessors: 1 }).start).toBeNull();
  });

  it('starts nothing that is not due yet', () => {
    const launches = [record('usual', { notBeforeMs: nowMs + 150 })];
    expect(plan({ launches, demand, idleProcessors: 8 })).toEqual({ start: null, retire: [], inMs: 150 });
  });

  it('keeps for its launch what is to be kept anyway, where the demand is less', () => {
    expect(plan({ perLaunch: 2, demand: ['usual'], idleProcessors: 1, processes: [waiting('usual')] }).start).toBe(
      'usual',
    );
  });
});

describe('the plan for standby retires', () => {
  it('what has waited for more than fifteen minutes, and replaces it at once', () => {
    expect(plan({ processes: [waiting('usual', 15 * minute)] })).toMatchObject({ start: null, retire: [] });
    expect(plan({ processes: [waiting('usual', 15 * minute + 1)] })).toMatchObject({
      start: 'usual',
      retire: ['usual'],
    });
  });

  it('what was started for a launch that is not known any more', () => {
    expect(plan({ processes: [waiting('usual'), waiting('a')] })).toMatchObject({ start: null, retire: ['a'] });
  });

  it('what nobody wants any more: its launch has cooled down', () => {
    const launches = [record('usual'), record('a', { uses: 5, usedMs: nowMs - 10 * minute - 1 })];
    expect(plan({ launches, processes: [waiting('usual'), waiting('a')] }).retire).toEqual(['a']);
  });

  it('what is too many after a while: the oldest, not the youngest', () => {
    const processes = [
      waiting('usual', 11_000, 'old'),
      waiting('usual', 13_000, 'older'),
      waiting('usual', 12_000, 'third'),
    ];
    expect(plan({ perLaunch: 1, processes }).retire).toEqual(['older', 'third']);
    expect(plan({ perLaunch: 2, processes }).retire).toEqual(['older']);
    expect(plan({ perLaunch: 3, processes }).retire).toEqual([]);
  });

  it('nothing that is too many at first, and looks again then: the next jobs may come soon', () => {
    const processes = [waiting('usual', 9000, 'young'), waiting('usual', 10_000, 'older')];
    expect(plan({ processes })).toEqual({ start: null, retire: [], inMs: 10_000 });
  });

  it('nothing that is too many while its launch is in use', () => {
    const processes = [waiting('usual', 11_000, 'young'), waiting('usual', 12_000, 'older')];
    const usedAgo = (ms: number) => plan({ processes, launches: [record('usual', { usedMs: nowMs - ms })] }).retire;
    expect([usedAgo(10_000), usedAgo(10_001)]).toEqual([[], ['older']]);
  });

  it('nothing that waiting jobs will take', () => {
    const processes = [waiting('usual', 11_000, 'young'), waiting('usual', 12_000, 'older')];
    expect(plan({ processes, demand: ['usual', 'usual'] }).retire).toEqual([]);
  });
});

describe('the plan for standby', () => {
  it('never looks again where nothing is wanted and nothing waits', () => {
    expect(plan({ launches: [] })).toEqual({ start: null, retire: [], inMs: never });
  });
});
