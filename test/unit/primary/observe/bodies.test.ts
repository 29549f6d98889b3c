import { FileFaults } from '../../../../src/primary/access/file-faults.js';
import type { Adapter } from '../../../../src/primary/cli/contract/adapter.js';
import type { ModelCli } from '../../../../src/primary/cli/model-cli.js';
import type { AtLeastOne, NamedAdapter } from '../../../../src/primary/cli/models.js';
import { ModelNames, ModelRouter } from '../../../../src/primary/cli/route.js';
import { Defects } from '../../../../src/primary/lifecycle/defects.js';
import { degradedReasons } from '../../../../src/primary/observe/degraded.js';
import { breakerBodyOf, countsOf, historyOf } from '../../../../src/primary/observe/status.js';
import { loadConfig } from '../../../../src/shared/config/config.js';
import type { ReadinessEntry } from '../../../../src/shared/health.js';
import { healthOf } from '../../../support/agents/cli-health.js';
import { loginOf } from '../../../support/agents/logins.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { LogBook } from '../../../support/basics/log-book.js';
import { jobDone, jobFailed, jobRequest } from '../../../support/jobs/job-records.js';

const until = new Date(Date.UTC(2026, 0, 1) + 30_000).toISOString();
const store = { kind: 'memory', isUp: true } as const;

function entry(cli: string, status: ReadinessEntry['status'], checkedAt: number): ReadinessEntry {
  const nothing = { durationMs: 1, trigger: 'start', version: null, error: null } as const;
  return { ...nothing, cli, adapter: cli, status, checkedAt };
}

/** Creates ready CLIs, with the parts that a status shows. */
async function house(clisNamed: AtLeastOne<string>, env: Readonly<Record<string, string>> = {}) {
  const clock = new FakeClock();
  const adapter = { models: null } as unknown as Adapter;
  const [first, ...others] = clisNamed.map((name) => ({ name, adapter })) as [NamedAdapter, ...NamedAdapter[]];
  const names = new ModelNames(await loadConfig(env, async () => ''), [first, ...others]);
  const create = (cli: NamedAdapter) => {
    const publicName = (model: string | null) => names.publicName(cli, model);
    const login = loginOf(cli.name);
    return { ...cli, ...login, publicName, health: healthOf(clock, login) } as unknown as ModelCli;
  };
  const clis: AtLeastOne<ModelCli> = [create(first), ...others.map(create)];
  await Promise.all(clis.map(({ health }) => health.checks.runCheck('start')));
  const router = new ModelRouter(names, clis);
  /** Ends a job of this model with a used-up quota. */
  const useUp = (model: string | null, scope: 'account' | 'model') => {
    const request = jobRequest({ model });
    const route = router.route(request);
    const quota = { scope, resetsAt: null };
    const failure = { code: 'cli_error', message: 'used up', reason: 'quota', quota } as const;
    route.cli.health.circuits.recordAdmission({ request, route });
    route.cli.health.recordJobEnd({ request, route }, jobFailed('cli_error', { failure }), true);
  };
  const defects = new Defects(clock, new LogBook());
  const fileFaults = new FileFaults();
  const reasons = () => degradedReasons({ clis, names, store, fileFaults, host: { defects } });
  return { clis, router, useUp, reasons, clock, defects, fileFaults };
}

describe('The status of several CLIs', () => {
  it('shows which accounts and models block jobs, each with its name', async () => {
    const { clis, router, useUp } = await house(['claude', 'codex']);
    useUp('codex/gpt-5', 'account');
    useUp('opus', 'model');
    const { state, models } = breakerBodyOf(clis);
    expect([state, models.map(({ model, state: of }) => [model, of])]).toEqual([
      'closed',
      [
        ['claude/opus', 'open'],
        ['codex', 'open'],
      ],
    ]);
    const refusals = ['codex/gpt-5', 'haiku', 'opus'].map((model) => {
      const request = jobRequest({ model });
      const route = router.route(request);
      return route.cli.health.circuits.refusalOf({ request, route })?.reason;
    });
    expect(refusals).toEqual(['quota', undefined, 'quota']);
    for (const { health } of clis) health.stopChecks();
  });

  it('shows for one CLI the state of its breaker', async () => {
    const { clis, useUp } = await house(['claude']);
    useUp('opus', 'account');
    expect(breakerBodyOf(clis)).toMatchObject({ state: 'open', reason: 'quota', models: [] });
    useUp(null, 'model');
    for (const { health } of clis) health.stopChecks();
  });

  it('is degraded by a breaker that is open for all jobs of a CLI, or for those without a model', async () => {
    const { clis, useUp, reasons } = await house(['claude', 'codex'], { MODEL_API_DEFAULT_MODEL: 'claude/opus' });
    useUp('claude/haiku', 'model');
    expect(reasons()).toEqual([]);
    useUp('claude/opus', 'model');
    useUp('codex/gpt', 'account');
    expect(reasons()).toMatchObject([
      {
        name: 'claude/opus',
        message: 'the account of the model CLI claude has used up its quota for claude/opus',
        until,
      },
      { name: 'codex', message: 'the account of the model CLI codex has used up its quota', until },
    ]);
    clis[1]?.health.circuits.tryAgain();
    expect(reasons().map(({ name }) => name)).toEqual(['claude/opus']);
    for (const { health } of clis) health.stopChecks();
  });

  it.each([
    [{ MODEL_API_DEFAULT_MODEL: 'opus' }, null, 'opus'],
    [{ MODEL_API_DEFAULT_MODEL: 'opus' }, 'opus', 'opus'],
    [{}, null, 'default'],
    [{}, 'opus', null],
  ])('names, with one CLI and %j, the circuit of the model %s as that of %s', async (env, model, name) => {
    const { clis, useUp, reasons } = await house(['claude'], env);
    useUp(model, 'model');
    expect(reasons().map((reason) => reason.name)).toEqual(name === null ? [] : [name]);
    for (const { health } of clis) health.stopChecks();
  });

  it('is degraded by an overloaded provider until its wait is over or a later job is answered', async () => {
    const { clis, reasons, clock } = await house(['claude']);
    const [{ health }] = clis;
    const request = jobRequest({});
    const jobOf = (circuit: string) => ({ request, route: { circuit } });
    const [usual, other] = [jobOf(''), jobOf('opus')];
    const waiting = (reason: 'quota' | 'overloaded') => {
      const quota = { scope: 'model', resetsAt: null } as const;
      const failure = { type: 'turn-failed', reason, message: '', ...(reason === 'quota' && { quota }) } as const;
      return { type: 'waiting', ms: 8000, failure } as const;
    };
    health.recordApiWait(other, waiting('quota'));
    expect(reasons()).toEqual([]);
    health.recordApiWait(other, waiting('overloaded'));
    expect(reasons()).toEqual([]);
    health.recordApiWait(usual, waiting('overloaded'));
    health.recordJobEnd(other, jobDone({ executionMs: 0 }), true);
    const overloaded = {
      part: 'overloaded',
      name: 'claude',
      message: expect.stringMatching(/is overloaded: .*:08.000Z$/),
    };
    expect(reasons()).toEqual([overloaded]);
    await clock.advance(8000);
    expect(reasons()).toEqual([]);
    health.recordApiWait(usual, waiting('quota'));
    expect(reasons()).toMatchObject([{ part: 'quota', name: 'claude' }]);
    await clock.advance(1000);
    health.recordJobEnd(usual, jobDone({ executionMs: 0 }), true);
    expect(reasons()).toEqual([]);
    const failure = { code: 'cli_error', message: 'no', reason: 'overloaded' } as const;
    health.recordJobEnd(usual, jobFailed('cli_error', { failure }), true);
    await clock.advance(29_999);
    expect(reasons()).toEqual([expect.objectContaining({ part: 'overloaded' })]);
    await clock.advance(1);
    expect(reasons()).toEqual([]);
    health.stopChecks();
  });

  it('is degraded by a defect of the service', async () => {
    const { reasons, defects } = await house(['claude']);
    defects.record(new Error('of the test'));
    expect(reasons()).toMatchObject([{ part: 'service', name: 'primary' }]);
  });

  it('has one history, in the order of the checks, and the sum of their processes', () => {
    const cliOf = (entries: readonly ReadinessEntry[], live: number) => {
      const health = { checks: { history: () => entries } };
      const pool = { counts: () => ({ standby: 1, renewed: 0, live, tools: 0, busy: 0, stopping: 0 }) };
      return { health, pool } as unknown as ModelCli;
    };
    const clis = [
      cliOf([entry('claude', 'ready', 1), entry('claude', 'ready', 4)], 2),
      cliOf([entry('codex', 'ready', 2), entry('codex', 'not_ready', 3)], 3),
    ];
    expect(historyOf(clis, null).map(({ checkedAt }) => checkedAt)).toEqual([1, 2, 3, 4]);
    expect(countsOf(clis)).toEqual({ standby: 2, renewed: 0, live: 5, tools: 0, busy: 0, stopping: 0 });
  });
});
