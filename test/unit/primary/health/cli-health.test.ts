import type { Checks } from '../../../../src/primary/health/checks.js';
import type { CliHealth } from '../../../../src/primary/health/cli-health.js';
import { SeenClients } from '../../../../src/primary/health/evidence.js';
import type { ClientText } from '../../../../src/shared/client.js';
import { type CliReason, RelayError } from '../../../../src/shared/errors.js';
import type { ReadinessEntry, Verdict } from '../../../../src/shared/health.js';
import type { JobEnd, JobFailed } from '../../../../src/shared/job.js';
import { healthOf } from '../../../support/agents/cli-health.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { jobDone, jobFailed, jobRequest } from '../../../support/jobs/job-records.js';

const good: Verdict = { version: '1.0', error: null };
const bad: Verdict = { version: '1.0', error: 'nobody is logged in' };

interface HarnessOptions {
  readonly intervalMs?: number;
  readonly random?: () => number;
  readonly clients?: SeenClients;
}

/** Health of a CLI whose checks end on demand. */
class Harness {
  readonly clock = new FakeClock();
  readonly checked: ReadinessEntry[] = [];
  readonly #waiting: { resolve(verdict: Verdict): void; reject(error: Error): void }[] = [];
  readonly health: CliHealth;
  begun = 0;
  /** Number of times that the waiting processes were ended. */
  flushes = 0;

  constructor({ intervalMs = 0, random = () => 0.5, clients = new SeenClients() }: HarnessOptions = {}) {
    const probe = () =>
      new Promise<Verdict>((resolve, reject) => {
        this.begun++;
        this.#waiting.push({ resolve, reject });
      });
    const onChecked = (entry: ReadinessEntry) => void this.checked.push(entry);
    const onSpoiled = () => void this.flushes++;
    this.health = healthOf(this.clock, { probe, intervalMs, random, clients, onChecked, onSpoiled });
  }

  get checks(): Checks {
    return this.health.checks;
  }

  /** Reports the end of a job. Returns whether this has ended the waiting processes. */
  learn(end: JobEnd, client: ClientText = 'key a'): boolean {
    const { flushes } = this;
    this.health.recordJobEnd({ request: jobRequest({ client }), route: { circuit: '' } }, end, true);
    return this.flushes > flushes;
  }

  async end(verdict: Verdict): Promise<void> {
    this.#waiting.shift()?.resolve(verdict);
    await this.clock.advance(0);
  }

  async break(error: Error): Promise<void> {
    this.#waiting.shift()?.reject(error);
    await this.clock.advance(0);
  }
}

/** Returns the end of a job whose credential the API has refused. */
function refused(executionMs: number): JobFailed {
  const failure = { code: 'cli_error', message: '', reason: 'auth', scope: 'account' } as const;
  return jobFailed('cli_error', { failure, executionMs });
}

describe('A login', () => {
  it('is needed if a check finds none, and no longer once a check finds one', async () => {
    const harness = new Harness();
    expect(harness.health.needsLogin).toBe(false);
    for (const [verdict, needsLogin] of [
      [bad, true],
      [good, false],
      [{ ...bad, reason: 'overloaded' }, false],
      [bad, true],
    ] as const) {
      const check = harness.checks.runCheck('forced');
      await harness.end(verdict);
      await check;
      expect(harness.health.needsLogin).toBe(needsLogin);
    }
  });

  it('is needed while the credential is refused', async () => {
    const { health } = new Harness();
    health.circuits.account.recordRefusal(null, 'auth', null);
    expect(health.needsLogin).toBe(true);
    health.circuits.tryAgain();
    expect(health.needsLogin).toBe(true);
    const quota = new Harness();
    quota.health.circuits.account.recordRefusal(null, 'quota', null);
    expect(quota.health.needsLogin).toBe(false);
  });
});

describe('The readiness', () => {
  it('is unknown until the first check has ended', async () => {
    const harness = new Harness();
    const { checks, clock, checked } = harness;
    checks.startChecks();
    expect(checks.current).toMatchObject({ status: 'unknown', checkedAt: null, trigger: 'start' });
    expect(checks.history(null)).toEqual([]);
    const checkedAt = clock.now();
    await clock.advance(40);
    await harness.end(good);
    const entry = { status: 'ready', trigger: 'start', checkedAt, durationMs: 40, cli: 'main', adapter: 'claude' };
    expect(checks.current).toEqual({ ...entry, version: '1.0', error: null });
    expect(checked).toEqual([checks.current]);
  });

  it('has one check at a time, which all callers share', async () => {
    const harness = new Harness();
    const calls = Array.from({ length: 20 }, () => harness.checks.runCheck('forced'));
    await harness.end(good);
    expect(new Set(await Promise.all(calls)).size).toBe(1);
    expect(harness.begun).toBe(1);
    void harness.checks.runCheck('forced');
    await harness.end(bad);
    expect(harness.checks.current).toMatchObject({ status: 'not_ready', error: 'nobody is logged in' });
    expect([harness.begun, harness.checked.length]).toEqual([2, 2]);
  });

  it('is checked anew for callers who force a check while another one is running', async () => {
    const harness = new Harness();
    harness.checks.startChecks();
    harness.checks.recheck();
    const calls = [
      harness.checks.runCheck('forced'),
      harness.checks.runCheck('forced'),
      harness.checks.runCheck('interval'),
    ];
    await harness.end(bad);
    expect(harness.begun).toBe(2);
    await harness.end(good);
    const entries = await Promise.all(calls);
    expect(entries.map(({ trigger, status }) => [trigger, status])).toEqual([
      ['forced', 'ready'],
      ['forced', 'ready'],
      ['start', 'not_ready'],
    ]);
    expect([harness.begun, harness.checked.length]).toEqual([2, 2]);
  });

  it('is lost when a check throws, or takes longer than 60 s', async () => {
    const harness = new Harness();
    const errors: (string | null)[] = [];
    for (const error of [new RelayError('spawn_error', 'it is not installed'), new Error('secret')]) {
      const check = harness.checks.runCheck('forced');
      await harness.break(error);
      errors.push((await check).error);
    }
    const check = harness.checks.runCheck('forced');
    await harness.clock.advance(59_999);
    expect(harness.checked).toHaveLength(2);
    await harness.clock.advance(1);
    errors.push((await check).error);
    expect(errors).toEqual(['it is not installed', 'the check itself failed', 'the check took longer than 60000 ms']);
    expect(harness.checked.map(({ status }) => status)).toEqual(['not_ready', 'not_ready', 'not_ready']);
  });

  it.each([
    [0, 900],
    [0.5, 1000],
    [1, 1100],
  ])('is checked again after the interval, plus or minus a tenth (%d: %d ms)', async (random, dueMs) => {
    const harness = new Harness({ intervalMs: 1000, random: () => random });
    harness.checks.startChecks();
    await harness.end(good);
    for (let round = 1; round <= 3; round++) {
      await harness.clock.advance(dueMs - 1);
      expect(harness.begun).toBe(round);
      await harness.clock.advance(1);
      await harness.end(good);
    }
    expect(harness.checked.map(({ trigger }) => trigger)).toEqual(['start', 'interval', 'interval', 'interval']);
    harness.checks.stopChecks();
    await harness.clock.advance(100_000);
    expect(harness.begun).toBe(4);
  });

  it('is unchanged when a check ends with the service, and no other check starts', async () => {
    const harness = new Harness();
    harness.checks.startChecks();
    await harness.end(good);
    const cut = harness.checks.runCheck('forced');
    harness.checks.stopChecks();
    await harness.end(bad); // the service killed its program
    const [, last] = await Promise.all([harness.checks.runCheck('failure'), cut]);
    expect(last).toMatchObject({ status: 'ready', trigger: 'start' });
    expect([harness.checked.length, harness.begun]).toEqual([1, 2]);
  });

  it('is checked only once if the interval is 0', async () => {
    const harness = new Harness();
    harness.checks.startChecks();
    await harness.end(good);
    await harness.clock.advance(1_000_000);
    expect(harness.begun).toBe(1);
  });

  it('is checked again when it is in doubt, unless it is already not ready', async () => {
    const harness = new Harness();
    harness.checks.recheck();
    expect(harness.begun).toBe(1);
    await harness.end(bad);
    harness.checks.recheck();
    expect(harness.begun).toBe(1);
    expect(harness.checked.map(({ trigger }) => trigger)).toEqual(['failure']);
  });

  it('is checked six times a minute at most, however often the jobs of one client fail', async () => {
    const harness = new Harness();
    const fail = async () => {
      harness.health.recordJobEnd(job, { ...refused(0), failure: { ...refused(0).failure, scope: undefined } }, true);
      await harness.end(good);
    };
    const job = { request: jobRequest({ client: 'key mallory' }), route: { circuit: 'big' } };
    harness.health.checks.startChecks();
    await harness.end(good);
    for (let n = 0; n < 20; n++) await fail();
    expect(harness.checked).toHaveLength(7);
    await harness.clock.advance(60_000);
    expect(harness.begun).toBe(8);
    await harness.end(good);
    harness.health.stopChecks();
    expect(harness.clock.pending).toBe(0);
  });

  it('is checked again when a job is answered although it is not ready', async () => {
    const harness = new Harness();
    const { checks } = harness;
    harness.learn(jobDone());
    expect(harness.begun).toBe(0);
    checks.startChecks();
    await harness.end(bad);
    harness.learn(jobDone());
    expect(harness.begun).toBe(2);
    await harness.end(good);
    expect(checks.current).toMatchObject({ status: 'ready', trigger: 'failure' });
    harness.learn(jobDone());
    expect(harness.begun).toBe(2);
  });

  it('retains its last checks, and returns those that are strictly later', async () => {
    const harness = new Harness();
    const times: number[] = [];
    for (let round = 0; round < 102; round++) {
      await harness.clock.advance(10);
      times.push(harness.clock.now());
      void harness.checks.runCheck('forced');
      await harness.end(good);
    }
    const timesOf = (since: number | null) => harness.checks.history(since).map(({ checkedAt }) => checkedAt);
    expect(timesOf(null)).toEqual(times.slice(2));
    expect(timesOf(times[99] as number)).toEqual(times.slice(100));
    expect(timesOf((times[3] as number) - 1)).toEqual(times.slice(3));
    expect(timesOf(0)).toEqual(times.slice(2));
  });
});

describe('A credential that the API rejects', () => {
  const refusal = expect.stringMatching(/credential was refused when a job used it/);

  /** Creates the health of a CLI whose checks succeed, half a minute after the API refused the credential of a job. */
  async function refusedHarness(): Promise<Harness> {
    const harness = new Harness({ intervalMs: 10_000 });
    harness.checks.startChecks();
    await harness.end(good);
    harness.learn(refused(100));
    await harness.end(good);
    for (let round = 0; round < 3; round++) {
      await harness.clock.advance(10_000);
      await harness.end(good);
    }
    return harness;
  }

  function verdicts(harness: Harness) {
    return harness.checked.map(({ trigger, status }) => `${trigger} ${status}`);
  }

  it('makes the CLI not ready, whatever it reports about its login', async () => {
    const harness = await refusedHarness();
    expect(verdicts(harness)).toEqual([
      'start ready',
      'failure not_ready',
      'interval not_ready',
      'interval not_ready',
      'interval not_ready',
    ]);
    expect(harness.checks.current).toMatchObject({ status: 'not_ready', error: refusal, version: '1.0' });
    harness.learn(refused(100));
    await harness.end(good);
    const held = /^the credential of the model CLI is refused; no job is started before/;
    expect(harness.checks.current).toMatchObject({ isHeld: true, error: expect.stringMatching(held) });
  });

  it('counts as valid again when a job is answered that began later, not earlier', async () => {
    const harness = await refusedHarness();
    expect([harness.learn(jobDone({ executionMs: 30_101 })), harness.begun]).toEqual([false, 5]);
    expect([harness.learn(jobDone({ executionMs: 30_000 })), harness.begun]).toEqual([true, 6]);
    await harness.end(good);
    expect([verdicts(harness).at(-1), harness.learn(jobDone())]).toEqual(['failure ready', false]);
  });

  it('is superseded by a fault that the CLI itself reports', async () => {
    const harness = await refusedHarness();
    await harness.clock.advance(10_000);
    await harness.end(bad);
    expect(harness.checks.current.error).toBe('nobody is logged in');
  });

  it('is forgotten by a forced check, until another job shows it', async () => {
    const harness = await refusedHarness();
    const { flushes } = harness;
    const check = harness.health.forceCheck();
    expect(harness.flushes).toBe(flushes + 1);
    harness.learn(refused(1)); // the job started with the previous credential
    await harness.end(good);
    expect((await check).status).toBe('ready');
    await harness.clock.advance(1000);
    harness.learn(refused(900));
    await harness.end(good);
    expect(verdicts(harness).slice(-2)).toEqual(['forced ready', 'failure not_ready']);
  });
});

describe('A CLI whose jobs fail one after the other', () => {
  const fault =
    '3 jobs in a row have failed, the last one with empty_answer: the CLI is ready again when a job is answered';

  /** Creates the health of a CLI after two crashes and a job without output. Its checks find no fault. */
  async function failingHarness(): Promise<Harness> {
    const harness = new Harness({ intervalMs: 60_000 });
    harness.checks.startChecks();
    await harness.end(good);
    for (const reason of ['crashed', 'crashed', 'empty_answer'] as const) harness.learn(failedFor(reason));
    await harness.end(good);
    return harness;
  }

  function failedFor(reason: CliReason): JobFailed {
    return jobFailed('cli_error', { failure: { code: 'cli_error', message: 'words of the model', reason } });
  }

  function statuses({ checked }: Harness): string[] {
    return checked.map(({ trigger, status }) => `${trigger} ${status}`);
  }

  it('is not ready from the third failure until an answer, and its history shows it', async () => {
    const harness = await failingHarness();
    expect(harness.checks.current).toMatchObject({ status: 'not_ready', error: fault });
    await harness.clock.advance(60_000);
    await harness.end(good);
    harness.learn(jobDone());
    await harness.end(good);
    const history = ['start ready', 'failure not_ready', 'interval not_ready', 'failure ready'];
    expect(statuses(harness)).toEqual(history);
    harness.learn(failedFor('crashed'));
    harness.learn(failedFor('crashed'));
    expect(statuses(harness)).toEqual(history);
  });

  it('is ready as long as one of three is answered', () => {
    const harness = new Harness();
    for (let round = 0; round < 5; round++) {
      harness.learn(failedFor('crashed'));
      harness.learn(failedFor('crashed'));
      harness.learn(jobDone());
    }
    expect(harness.begun).toBe(0);
  });

  it('is not helped by jobs with irrelevant outcomes', async () => {
    const harness = new Harness();
    harness.learn(failedFor('crashed'));
    harness.learn(failedFor('prompt_too_long'));
    harness.learn(jobFailed('spawn_error'));
    await harness.end(good);
    harness.learn(jobFailed('timeout'));
    harness.learn(failedFor('other'));
    await harness.end(good);
    expect(harness.checks.current.error).toContain('3 jobs in a row have failed, the last one with other');
  });

  it('is not blamed for the jobs of one client alone if there are others', async () => {
    const clients = new SeenClients();
    for (const client of ['key mallory', 'key alice'] as const) clients.recordClient(client);
    const harness = new Harness({ clients });
    const { checks } = harness;
    for (let round = 0; round < 5; round++) harness.learn(failedFor('crashed'), 'key mallory');
    expect(harness.begun).toBe(0);
    void checks.runCheck('forced');
    await harness.end(good);
    expect(checks.current.status).toBe('ready');
    harness.learn(failedFor('crashed'), 'key alice');
    await harness.end(good);
    expect(checks.current.error).toMatch(/^6 jobs in a row/);
    harness.learn(jobDone(), 'key alice');
    await harness.end(good);
    for (let round = 0; round < 3; round++) harness.learn(failedFor('crashed'), 'key alice');
    expect(checks.current.status).toBe('ready');
  });

  it('is blamed for programs that cannot be started, even for one client alone', async () => {
    const clients = new SeenClients();
    for (const client of ['key mallory', 'key alice'] as const) clients.recordClient(client);
    const harness = new Harness({ clients });
    for (let round = 0; round < 3; round++) harness.learn(jobFailed('spawn_error'), 'key mallory');
    await harness.end(good);
    await harness.end(good);
    expect(harness.checks.current.error).toMatch(/^3 jobs in a row/);
  });

  it('is checked no more often after further failures', async () => {
    const harness = await failingHarness();
    const { begun } = harness;
    for (let round = 0; round < 10; round++) harness.learn(failedFor('crashed'));
    expect(harness.begun).toBe(begun);
  });

  it.each([
    ['a forced check', 0],
    ['five minutes in which none has failed', 5],
  ])('has one more attempt after %s, which alone decides', async (_, minutes) => {
    const harness = await failingHarness();
    if (minutes === 0) void harness.checks.runCheck('forced');
    for (let minute = 0; minute < minutes; minute++) {
      expect(harness.checks.current.status).toBe('not_ready');
      await harness.clock.advance(60_000);
      await harness.end(good);
    }
    await harness.end(good);
    expect(harness.checks.current.status).toBe('ready');
    harness.learn(failedFor('crashed'));
    await harness.end(good);
    expect(harness.checks.current).toMatchObject({ status: 'not_ready', trigger: 'failure' });
    expect(harness.checks.current.error).toContain('4 jobs in a row');
  });
});
