import { Registry } from 'prom-client';
import type { Route } from '../../../../src/primary/cli/route.js';
import type { EndedBackgroundJob, PrimaryPart } from '../../../../src/primary/features/feature.js';
import { FeatureHooks } from '../../../../src/primary/features/feature-hooks.js';
import { addFigures } from '../../../../src/primary/observe/state-metrics.js';
import type { LimitUse } from '../../../../src/shared/api/limit-use.js';
import { metricPrefix } from '../../../../src/shared/metrics.js';
import { jobDone, jobRequest, plainForm } from '../../../support/jobs/job-records.js';

const ended: EndedBackgroundJob = {
  ...{ id: 'j1', form: plainForm, end: jobDone() },
  request: { client: 'key ada', operation: 'ask', requestId: 'r1' },
};

/** Creates the hooks of two features, which write down their calls. */
function createHooks(refusal: Error | null = null) {
  const seen: string[] = [];
  const partOf = (name: string): PrimaryPart => ({
    job: {
      admit: () => {
        seen.push(`${name} admit`);
        if (refusal !== null) throw refusal;
      },
      ended: ({ id, request }) => seen.push(`${name} ended ${id} ${request.client}`),
    },
    beforeAct: async ({ by }) => {
      seen.push(`${name} ${by}`);
      if (refusal !== null) throw refusal;
    },
    handlers: { [name]: () => name },
    counters: [{ name, help: '', labels: ['result'], read: () => ({}) }],
    gauges: [{ name: `${name}_now`, help: '', labels: [], read: () => 1 }],
    storedKinds: [],
    restored: async () => void seen.push(`${name} restored`),
    start: () => seen.push(`${name} start`),
    drain: () => seen.push(`${name} drain`),
    stop: async () => void seen.push(`${name} stop`),
  });
  return { hooks: new FeatureHooks([partOf('first'), partOf('second')]), seen };
}

describe('The hooks of features', () => {
  it('are called in the order of the list', async () => {
    const { hooks, seen } = createHooks();
    await hooks.restored();
    hooks.start();
    hooks.admitBackground(jobRequest(), plainForm);
    hooks.backgroundEnded(ended);
    hooks.drain();
    await hooks.stop();
    const of = (name: string) => [`${name} restored`, `${name} start`, `${name} admit`, `${name} ended j1 key ada`];
    expect(seen.filter((call) => call.startsWith('first'))).toEqual([...of('first'), 'first drain', 'first stop']);
    expect(seen.filter((_, index) => index % 2 === 1)).toEqual([...of('second'), 'second drain', 'second stop']);
  });

  it('remove the data of a client from the last feature to the first, because later ones may still add to earlier ones', async () => {
    let counted = 0;
    const usage: PrimaryPart = {
      handlers: {},
      purgeClient: async () => {
        const removed = counted;
        counted = 0;
        return { usage: removed };
      },
    };
    const jobs: PrimaryPart = {
      handlers: {},
      purgeClient: async () => {
        counted++; // the job has ended, and is counted
        return { jobs: 1 };
      },
    };
    expect(await new FeatureHooks([usage, jobs]).purge('key ada')).toEqual({ jobs: 1, usage: 1 });
    expect(counted).toBe(0);
  });

  it('refuse a job at the first feature that refuses it', () => {
    const { hooks, seen } = createHooks(new Error('no'));
    expect(() => hooks.admitBackground(jobRequest(), plainForm)).toThrow('no');
    expect(seen).toEqual(['first admit']);
  });

  it('refuse an act at the first feature that refuses it', async () => {
    const act = { act: 'service_reloaded', by: 'key root', target: null, request_id: null } as const;
    const { hooks, seen } = createHooks(new Error('no'));
    await expect(hooks.beforeAct(act)).rejects.toThrow('no');
    expect(seen).toEqual(['first key root']);
    await new FeatureHooks([{ handlers: {} }]).beforeAct(act); // no feature refuses it
  });

  it('include the calls and the metrics of all features', () => {
    const { hooks } = createHooks();
    expect(Object.keys(hooks.handlers)).toEqual(['first', 'second']);
    expect(hooks.counters.map(({ name }) => name)).toEqual(['first', 'second']);
    expect(hooks.gauges.map(({ name }) => name)).toEqual(['first_now', 'second_now']);
  });
});

describe('A feature that throws in its hooks', () => {
  /** Creates the hooks of a feature that throws everywhere, and of one that works. */
  function createBroken() {
    const seen: string[] = [];
    const faults: string[] = [];
    const fail = (name: string) => () => {
      throw new Error(name);
    };
    const rejects = (name: string) => () => Promise.reject(new Error(name));
    const metric = { help: 'A figure.', labels: [] };
    const broken: PrimaryPart = {
      job: { ended: fail('ended'), moved: fail('moved') },
      handlers: {},
      gauges: [{ ...metric, name: 'broken', read: fail('gauge') }],
      counters: [{ ...metric, name: 'broken_total', read: fail('counter') }],
      ...{ limitUsesOf: fail('limits'), findKeyWarnings: fail('warnings') },
      ...{ drain: fail('drain'), expire: fail('expire'), refreshKeys: rejects('keys'), stop: rejects('stop') },
      ...{ idle: rejects('idle'), cut: fail('cut'), slotsChanged: fail('slots'), mayStore: fail('mayStore') },
      get openJobs(): [] {
        throw new Error('openJobs');
      },
    };
    const sound: PrimaryPart = {
      job: { ended: () => seen.push('ended'), moved: () => seen.push('moved') },
      handlers: {},
      gauges: [{ ...metric, name: 'sound', read: () => 7 }],
      limitUsesOf: () => [{ client: 'key ada' } as unknown as LimitUse],
      findKeyWarnings: () => ['a warning'],
      drain: () => seen.push('drain'),
      expire: () => seen.push('expire'),
      refreshKeys: async () => void seen.push('keys'),
      idle: async () => void seen.push('idle'),
      cut: () => seen.push('cut'),
      slotsChanged: () => seen.push('slots'),
      stop: async () => void seen.push('stop'),
    };
    const hooks = new FeatureHooks([broken, sound], (fault) => faults.push((fault as Error).message));
    return { hooks, seen, faults };
  }

  it('does not keep the service from draining and stopping, and the other features get each call', async () => {
    const { hooks, seen, faults } = createBroken();
    const route = {} as Route;
    await hooks.refreshKeys();
    hooks.expire();
    hooks.jobMoved(jobRequest(), route, route, 'quota');
    hooks.backgroundEnded(ended);
    hooks.slotsChanged();
    hooks.drain();
    await hooks.idle();
    hooks.cut();
    await hooks.stop();
    const calls = ['keys', 'expire', 'moved', 'ended', 'slots', 'drain', 'idle', 'cut', 'stop'];
    expect([seen, faults]).toEqual([calls, calls]);
  });

  it('has no open jobs, and lets nothing be stored', () => {
    const { hooks, faults } = createBroken();
    expect(hooks.openJobs).toEqual([]);
    expect(hooks.mayStore('key ada')).toBe(false);
    expect(faults).toEqual(['openJobs', 'mayStore']);
  });

  it('adds no limits and no warnings, and those of the other features stay', () => {
    const { hooks, faults } = createBroken();
    expect(hooks.limitUsesOf(null)).toEqual([{ client: 'key ada' }]);
    expect(hooks.findKeyWarnings()).toEqual(['a warning']);
    expect(faults).toEqual(['limits', 'warnings']);
  });

  it('leaves its metrics out of each scrape, and the fault is reported once', async () => {
    const { hooks, faults } = createBroken();
    const registry = new Registry();
    for (const { read, ...metric } of hooks.gauges)
      addFigures(registry, metric.name, { ...metric, type: 'gauge' }, read);
    for (const { read, ...metric } of hooks.counters)
      addFigures(registry, metric.name, { ...metric, type: 'counter' }, read);
    await registry.metrics();
    const samples = (await registry.metrics()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    expect(samples).toEqual([`${metricPrefix}sound 7`]);
    expect(faults).toEqual(['gauge', 'counter']);
  });
});
