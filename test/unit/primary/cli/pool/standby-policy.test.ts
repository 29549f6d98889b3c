import { plainLaunch } from '../../../../../src/primary/cli/contract/adapter.js';
import {
  type LaunchRecord,
  planStandby,
  type StandbyProcess,
  type StandbySituation,
  unusedLaunch,
} from '../../../../../src/primary/cli/pool/standby-policy.js';

const minute = 60_000;
const never = Infinity;
/** Current time, late enough for processes of any age in these tests. */
const nowMs = 100 * minute;

interface Named extends StandbyProcess {
  readonly name: string;
}

function record(key: string, of: Partial<LaunchRecord> = {}): LaunchRecord {
  return { ...unusedLaunch(key, { ...plainLaunch(null), system: key }), ...of };
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
    isDefault: ({ key }) => key === 'usual',
    renewedFor: () => 0,
    demand: [],
    isJobStarting: false,
    idleProcessors: null,
    ...situation,
  });
  return { start: start?.key ?? null, retire: retire.map(({ name }) => name), inMs: nextMs - nowMs };
}

describe('The standby plan while no job waits', () => {
  it('starts a process for the default launch, and checks again soon', () => {
    expect(plan({})).toEqual({ start: 'usual', retire: [], inMs: 100 });
  });

  it('starts nothing if each launch in use has its process, and checks again after a minute', () => {
    expect(plan({ processes: [waiting('usual')] })).toEqual({ start: null, retire: [], inMs: minute });
  });

  it('starts as many for each launch as configured, one at a time', () => {
    const two = [waiting('usual'), waiting('usual')];
    const three = [...two, { ...waiting('usual', 0), isStarting: true }];
    expect(plan({ perLaunch: 3, processes: two }).start).toBe('usual');
    expect(plan({ perLaunch: 3, processes: three }).start).toBeNull();
    expect(plan({ perLaunch: 4, processes: three })).toMatchObject({ start: null, inMs: 100 });
    expect(plan({ perLaunch: 3, processes: [...two, waiting('usual')] }).start).toBeNull();
  });

  it('starts none at 0, and never checks again', () => {
    expect(plan({ perLaunch: 0 })).toEqual({ start: null, retire: [], inMs: never });
    expect(plan({ perLaunch: 0, processes: [waiting('usual')], demand: ['usual'], idleProcessors: 8 })).toEqual({
      start: null,
      retire: ['usual'],
      inMs: never,
    });
  });

  it('starts one for another launch from its second use on, until it has been unused for ten minutes', () => {
    const processes = [waiting('usual')];
    const startFor = (of: Partial<LaunchRecord>) =>
      plan({ processes, launches: [record('usual'), record('a', of)] }).start;
    expect(startFor({ uses: 1, usedMs: nowMs })).toBeNull();
    expect(startFor({ uses: 2, usedMs: nowMs })).toBe('a');
    expect(startFor({ uses: 2, usedMs: nowMs - 10 * minute })).toBe('a');
    expect(startFor({ uses: 2, usedMs: nowMs - 10 * minute - 1 })).toBeNull();
  });

  it('never drops the default launch, used or not', () => {
    const launches = [record('usual', { usedMs: nowMs - 50 * minute })];
    expect(plan({ launches }).start).toBe('usual');
  });

  it('waits while the program of a job is starting', () => {
    expect(plan({ isJobStarting: true })).toEqual({ start: null, retire: [], inMs: 100 });
  });

  it('starts nothing before its time, and checks again then', () => {
    const later = [record('usual', { notBeforeMs: nowMs + 4000 })];
    expect(plan({ launches: later })).toEqual({ start: null, retire: [], inMs: 4000 });
    expect(plan({ launches: [record('usual', { notBeforeMs: nowMs })] }).start).toBe('usual');
  });

  it('does not let a delayed launch block another', () => {
    const launches = [record('usual', { notBeforeMs: nowMs + 4000 }), record('a', { uses: 2, usedMs: nowMs })];
    expect(plan({ launches })).toMatchObject({ start: 'a', inMs: 100 });
  });
});

describe('The standby plan while jobs wait', () => {
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

  it('starts beside a job that is starting, because the idle processors decide then', () => {
    expect(plan({ demand, idleProcessors: 1, isJobStarting: true }).start).toBe('usual');
  });

  it('starts for a launch that was never used before, but not for an unknown one', () => {
    const launches = [record('usual'), record('a')];
    expect(plan({ launches, processes: [waiting('usual')], demand: ['a'], idleProcessors: 1 }).start).toBe('a');
    expect(plan({ processes: [waiting('usual')], demand: ['unknown'], idleProcessors: 1 }).start).toBeNull();
  });

  it('starts nothing before its time', () => {
    const launches = [record('usual', { notBeforeMs: nowMs + 150 })];
    expect(plan({ launches, demand, idleProcessors: 8 })).toEqual({ start: null, retire: [], inMs: 150 });
  });

  it('starts the configured number for a launch even if the demand is lower', () => {
    expect(plan({ perLaunch: 2, demand: ['usual'], idleProcessors: 1, processes: [waiting('usual')] }).start).toBe(
      'usual',
    );
  });
});

describe('The standby plan retires', () => {
  it('a process that has waited more than fifteen minutes, and replaces it immediately', () => {
    expect(plan({ processes: [waiting('usual', 15 * minute)] })).toMatchObject({ start: null, retire: [] });
    const old = [waiting('usual', 15 * minute + 1)];
    expect(plan({ processes: old })).toMatchObject({ start: 'usual', retire: ['usual'] });
  });

  it('a process of a launch that is no longer known', () => {
    expect(plan({ processes: [waiting('usual'), waiting('a')] })).toMatchObject({ start: null, retire: ['a'] });
  });

  it('a process of a launch that has not been used recently', () => {
    const launches = [record('usual'), record('a', { uses: 5, usedMs: nowMs - 10 * minute - 1 })];
    expect(plan({ launches, processes: [waiting('usual'), waiting('a')] }).retire).toEqual(['a']);
  });

  it('surplus processes after a while: the oldest, not the youngest', () => {
    const ages = { old: 11_000, older: 13_000, third: 12_000 };
    const processes = Object.entries(ages).map(([name, ageMs]) => waiting('usual', ageMs, name));
    expect(plan({ perLaunch: 1, processes }).retire).toEqual(['older', 'third']);
    expect(plan({ perLaunch: 2, processes }).retire).toEqual(['older']);
    expect(plan({ perLaunch: 3, processes }).retire).toEqual([]);
  });

  it('no surplus at first, and checks again later, because the next jobs may arrive soon', () => {
    const processes = [waiting('usual', 9000, 'young'), waiting('usual', 10_000, 'older')];
    expect(plan({ processes })).toEqual({ start: null, retire: [], inMs: 10_000 });
  });

  it('no surplus while its launch is in use', () => {
    const processes = [waiting('usual', 11_000, 'young'), waiting('usual', 12_000, 'older')];
    const usedAgo = (ms: number) => plan({ processes, launches: [record('usual', { usedMs: nowMs - ms })] }).retire;
    expect([usedAgo(10_000), usedAgo(10_001)]).toEqual([[], ['older']]);
  });

  it('no process that waiting jobs will take', () => {
    const processes = [waiting('usual', 11_000, 'young'), waiting('usual', 12_000, 'older')];
    expect(plan({ processes, demand: ['usual', 'usual'] }).retire).toEqual([]);
  });
});

it('The standby plan never checks again if nothing is wanted and nothing waits', () => {
  expect(plan({ launches: [] })).toEqual({ start: null, retire: [], inMs: never });
});
