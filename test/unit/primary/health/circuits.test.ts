import type { CircuitJob, CircuitStatus } from '../../../../src/primary/health/circuit.js';
import type { CliHealth } from '../../../../src/primary/health/cli-health.js';
import { SeenClients } from '../../../../src/primary/health/evidence.js';
import type { ClientText } from '../../../../src/shared/client.js';
import type { CliReason, QuotaRefusal } from '../../../../src/shared/errors.js';
import type { ReadinessEntry, Verdict } from '../../../../src/shared/health.js';
import type { JobEnd, JobRequest } from '../../../../src/shared/job.js';
import { healthOf } from '../../../support/agents/cli-health.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { LogBook } from '../../../support/basics/log-book.js';
import { jobDone, jobFailed, jobRequest } from '../../../support/jobs/job-records.js';

const minute = 60_000;
const hour = 60 * minute;

const good: Verdict = { version: '1', error: null };
const notLoggedIn: Verdict = { version: '1', error: 'not logged in' };

let clock: FakeClock;
let health: CliHealth;
let log: LogBook;
let changes: string[];
/** Number of times that the waiting processes were ended. */
let flushes: number;
/** Verdict that the CLI reports at a check. */
let said: Verdict;

function create(clients = new SeenClients(), timers: FakeClock = clock): CliHealth {
  const onCircuit = ({ state, model, reason }: CircuitStatus) =>
    void changes.push([state, reason, model].filter((word) => word !== null).join(' '));
  const onSpoiled = () => void flushes++;
  return healthOf(timers, { probe: async () => said, clients, onCircuit, onSpoiled, log });
}

beforeEach(() => {
  clock = new FakeClock();
  log = new LogBook();
  changes = [];
  flushes = 0;
  said = good;
  health = create();
});

/** Runs a check in which the CLI reports this verdict, after the running checks. */
async function check(verdict: Verdict): Promise<ReadinessEntry> {
  await clock.advance(0);
  said = verdict;
  const entry = await health.checks.runCheck('interval');
  await clock.advance(0);
  return entry;
}

/** Returns the number of the circuits' timers, after the running checks. */
async function pending(): Promise<number> {
  await clock.advance(0);
  return clock.pending;
}

function failed(reason: CliReason, quota?: QuotaRefusal): JobEnd {
  const scope = reason === 'auth' ? 'account' : undefined;
  return jobFailed('cli_error', { failure: { code: 'cli_error', message: '', reason, quota, scope } });
}

function quota(resetsInMs: number | null, scope: QuotaRefusal['scope'] = 'account'): JobEnd {
  return failed('quota', { scope, resetsAt: resetsInMs === null ? null : clock.now() + resetsInMs });
}

function jobOf(differences: Partial<JobRequest> = {}): CircuitJob {
  const request = jobRequest(differences);
  return { request, route: { circuit: request.model ?? '' } };
}

/** Admits a job that ends in this way at once. */
function run(end: JobEnd, job = jobOf()): JobEnd {
  expect(health.circuits.refusalOf(job)).toBeNull();
  health.circuits.recordAdmission(job);
  return health.recordJobEnd(job, end, true);
}

function refusalOf(job = jobOf()) {
  const { code, reason, retryAfterSeconds } = health.circuits.refusalOf(job) ?? {};
  return [code, reason, retryAfterSeconds];
}

const none = [undefined, undefined, undefined];

describe('An exhausted quota', () => {
  it('blocks all jobs until its reset time, which the job that detected it also reports', async () => {
    const end = run(quota(20 * minute));
    expect(end).toMatchObject({ outcome: 'cli_error', failure: { reason: 'quota', retryAfterSeconds: 1200 } });
    expect(refusalOf()).toEqual(['cli_error', 'quota', 1200]);
    await clock.advance(20 * minute - 1);
    expect(refusalOf(jobOf({ model: 'opus' }))).toEqual(['cli_error', 'quota', 1]);
    expect([health.circuits.isClosed, health.circuits.error]).toEqual([
      false,
      'the account of the model CLI has used up its quota; no job is started before 2026-01-01T00:20:00.000Z',
    ]);
    await clock.advance(1);
    expect([refusalOf(), health.circuits.isClosed, health.circuits.error]).toEqual([none, false, null]);
  });

  it('is tested by one job after the reset time, whose first text lets all others run', async () => {
    run(quota(minute));
    await clock.advance(minute);
    const probe = jobOf({ requestId: 'probe' });
    health.circuits.recordAdmission(probe);
    expect(refusalOf()).toEqual(['cli_error', 'quota', 5]);
    expect(health.circuits.refusalOf(probe)).toBeNull();
    health.circuits.recordAnswer(probe);
    expect([refusalOf(), health.circuits.isClosed]).toEqual([none, true]);
    expect(changes).toEqual(['open quota', 'half_open quota', 'closed']);
    expect(await pending()).toBe(0);
  });

  it('is tested by the next job if the probe has no answer after half a minute, because it may wait for its slot', async () => {
    run(quota(hour));
    await clock.advance(hour);
    const [first, second] = [jobOf({ client: 'key ada' }), jobOf({ client: 'key bob' })];
    health.circuits.recordAdmission(first);
    await clock.advance(29_000);
    expect(health.circuits.refusalOf(second)).not.toBeNull();
    await clock.advance(1000);
    expect(health.circuits.refusalOf(second)).toBeNull();
    health.circuits.recordAdmission(second);
    expect(health.circuits.refusalOf(jobOf())).not.toBeNull();
    health.circuits.recordAnswer(second);
    expect(health.circuits.refusalOf(jobOf())).toBeNull();
  });

  it('is over with the first answer of any probe, although a later one has none yet', async () => {
    run(quota(hour));
    await clock.advance(hour);
    const [first, second] = [jobOf({ client: 'key ada' }), jobOf({ client: 'key bob' })];
    health.circuits.recordAdmission(first);
    await clock.advance(30_000);
    health.circuits.recordAdmission(second);
    expect(health.circuits.refusalOf(first)).toBeNull();
    health.circuits.recordAnswer(first);
    expect([refusalOf(), health.circuits.isClosed]).toEqual([none, true]);
  });

  it('opens the circuit again if the probe is refused, for a wait that doubles up to ten minutes', async () => {
    const waits: number[] = [];
    for (let round = 0; round < 7; round++) {
      const end = run(quota(null));
      const waitMs = 1000 * (end.outcome === 'ok' ? 0 : (end.failure.retryAfterSeconds ?? 0));
      waits.push(waitMs / 1000);
      await clock.advance(waitMs);
    }
    expect(waits).toEqual([30, 60, 120, 240, 480, 600, 600]);
    expect(health.circuits.openings).toEqual({ quota: 7, auth: 0 });
    run(jobDone());
    expect(run(quota(null))).toMatchObject({ failure: { retryAfterSeconds: 30 } });
  });

  it.each<[string, () => number]>([
    ['in the past', () => clock.now() - 1],
    ['now', () => clock.now()],
    ['in a month', () => clock.now() + 30 * 24 * hour],
    ['never', () => Number.POSITIVE_INFINITY],
    ['no number', () => Number.NaN],
    ['in seconds', () => clock.now() / 1000],
  ])('has an unknown reset time if the CLI reports: %s', (_, resetsAt) => {
    const end = run(failed('quota', { scope: 'account', resetsAt: resetsAt() }));
    expect(end).toMatchObject({ failure: { retryAfterSeconds: 30 } });
  });

  it('is tested once an hour, however late its reset time is', async () => {
    expect(run(quota(6 * 24 * hour))).toMatchObject({ failure: { retryAfterSeconds: 3600 } });
    await clock.advance(hour);
    expect(run(quota(6 * 24 * hour - hour))).toMatchObject({ failure: { retryAfterSeconds: 3600 } });
  });

  it('is not concluded from a job that began earlier, nor from one that was cut while it waited', async () => {
    const running = jobOf({ requestId: 'running' });
    const waiting = jobOf({ requestId: 'waiting' });
    for (const job of [running, waiting]) health.circuits.recordAdmission(job);
    run(quota(minute));
    health.circuits.recordAnswer(running);
    health.recordJobEnd(running, jobDone(), true);
    expect(refusalOf()).toEqual(['cli_error', 'quota', 60]);
    await clock.advance(minute);
    health.recordJobEnd(waiting, quota(hour), false);
    expect([changes.at(-1), refusalOf()]).toEqual(['half_open quota', none]);
  });

  it('is tested again if the probe was inconclusive', async () => {
    run(quota(minute));
    await clock.advance(minute);
    for (const end of [jobFailed('timeout'), jobFailed('cancelled'), failed('overloaded'), failed('crashed')]) {
      run(end);
      expect(refusalOf()).toEqual(none);
    }
    const waiting = jobOf();
    health.circuits.recordAdmission(waiting);
    health.recordJobEnd(waiting, jobFailed('queue_timeout'), false);
    expect([refusalOf(), health.circuits.isClosed]).toEqual([none, false]);
  });

  it('of one model blocks only the jobs of that model', async () => {
    const opus = () => jobOf({ model: 'opus' });
    run(quota(minute, 'model'), opus());
    expect([refusalOf(opus()), refusalOf()]).toEqual([['cli_error', 'quota', 60], none]);
    expect([health.circuits.isClosed, health.circuits.error]).toEqual([true, null]);
    expect(health.circuits.status.map(({ state, model }) => [state, model])).toEqual([
      ['closed', null],
      ['open', 'opus'],
    ]);
    run(jobDone());
    await clock.advance(minute);
    run(jobDone(), opus());
    expect(health.circuits.status).toHaveLength(1);
    expect(changes).toEqual(['open quota opus', 'half_open quota opus', 'closed opus']);
  });

  it('of the default model counts as one of the service', () => {
    run(quota(minute, 'model'));
    expect([health.circuits.isClosed, health.circuits.error]).toEqual([false, expect.stringContaining('quota')]);
    expect(refusalOf(jobOf({ model: 'opus' }))).toEqual(none);
  });

  it('is remembered for a limited number of models', async () => {
    for (let n = 0; n < 40; n++) run(quota(minute, 'model'), jobOf({ model: `model ${n}` }));
    expect(health.circuits.status).toHaveLength(17);
    expect(refusalOf(jobOf({ model: 'model 39' }))).toEqual(['cli_error', 'quota', 60]);
    expect(await pending()).toBe(16);
    health.stopChecks();
    expect(await pending()).toBe(0);
  });

  it('is tested immediately if a check is forced', async () => {
    run(quota(hour));
    void health.forceCheck();
    expect([refusalOf(), await pending()]).toEqual([none, 0]);
    run(jobDone());
    expect(health.circuits.isClosed).toBe(true);
  });
});

it('An overloaded API blocks no jobs', () => {
  for (let n = 0; n < 5; n++) expect(run(failed('overloaded'))).toEqual(failed('overloaded'));
  expect([refusalOf(), changes]).toEqual([none, []]);
});

describe('A rejected credential', () => {
  it('blocks jobs from the second failed job on that began after the first had failed', async () => {
    const together = [jobOf(), jobOf(), jobOf()];
    for (const job of together) health.circuits.recordAdmission(job);
    await clock.advance(1000);
    const late = { ...failed('auth'), executionMs: 1000 };
    for (const job of together) health.recordJobEnd(job, late, true);
    expect(refusalOf()).toEqual(none); // all may have used the same expired token, renewed since
    expect(run(failed('auth'))).toMatchObject({ failure: { reason: 'auth', retryAfterSeconds: 30 } });
    expect(refusalOf()).toEqual(['cli_error', 'auth', 30]);
    expect(health.circuits.openFor).toEqual({ quota: 0, auth: 1 });
  });

  it('does not count if a later job is answered in between', () => {
    for (const end of [failed('auth'), jobDone(), failed('auth'), jobDone()]) run(end);
    expect(changes).toEqual([]);
  });

  it('is forgotten if a check is forced, because it may have been replaced', () => {
    run(failed('auth'));
    void health.forceCheck();
    run(failed('auth'));
    expect(changes).toEqual([]);
    run(failed('auth'));
    expect(changes).toEqual(['open auth']);
  });

  it('still counts after the answer of a job that began earlier', async () => {
    run(failed('auth'));
    await clock.advance(500);
    health.recordJobEnd(jobOf(), jobDone({ executionMs: 2000 }), true);
    run(failed('auth'));
    expect(changes).toEqual(['open auth']);
  });

  it('blocks jobs after the first failure if the CLI itself reports that it has none', async () => {
    await check(notLoggedIn);
    expect(changes).toEqual([]); // no job has failed
    await check(good);
    run(failed('auth'));
    await check(good);
    expect(changes).toEqual([]);
    await check(notLoggedIn);
    expect(changes).toEqual(['open auth']);
  });

  it('is tested again as soon as the CLI reports a credential', async () => {
    run(failed('auth'));
    await check(notLoggedIn);
    await check(notLoggedIn);
    expect(refusalOf()).toEqual(['cli_error', 'auth', 30]);
    await check(good);
    run(jobDone());
    expect(changes).toEqual(['open auth', 'half_open auth', 'closed']);
  });

  it('makes a check fail, as does an exhausted quota, if the CLI itself reports no fault', async () => {
    expect(await check(good)).toMatchObject({ status: 'ready', error: null });
    run(quota(minute));
    const error = expect.stringContaining('has used up its quota; no job is started before');
    expect(await check(good)).toMatchObject({ status: 'not_ready', error, isHeld: true });
    const entry = await check({ version: '1', error: 'gone' });
    expect([entry.error, entry.isHeld]).toEqual(['gone', undefined]);
  });

  it('is not tested again merely because the CLI still reports a credential', async () => {
    run(failed('auth'));
    run(failed('auth'));
    await check(good);
    expect(changes).toEqual(['open auth']);
  });

  it('blocks jobs again after one failure of the probe, or a check that reports it', async () => {
    run(failed('auth'));
    run(failed('auth'));
    await clock.advance(30_000);
    run(failed('auth'));
    expect(refusalOf()).toEqual(['cli_error', 'auth', 60]);
    health.circuits.tryAgain();
    await check(notLoggedIn);
    expect(refusalOf()).toEqual(['cli_error', 'auth', 120]);
  });
});

describe('A failure that a request may have caused', () => {
  const by = (client: ClientText, model: string | null = null) => jobOf({ client, model });
  let clients: SeenClients;

  beforeEach(() => {
    clients = new SeenClients();
    for (const client of ['key mallory', 'key alice'] as const) clients.recordClient(client);
    health = create(clients);
  });

  /** Returns the end of a job whose reason was read from the program's text alone. */
  function seems(reason: CliReason): JobEnd {
    return jobFailed('cli_error', { failure: { code: 'cli_error', message: '', reason } });
  }

  it.each(['auth', 'quota'] as const)('blocks no jobs if only one client has it: %s', async (reason) => {
    for (let n = 0; n < 5; n++) {
      run(seems(reason), by('key mallory'));
      run(seems(reason), by('key mallory', 'big'));
      run(seems(reason), by('key mallory', `model ${n}`));
      await clock.advance(1000);
    }
    expect([changes, health.circuits.isClosed, health.circuits.error]).toEqual([[], true, null]);
    expect(await pending()).toBe(0);
  });

  it('blocks no jobs if a code reports it without the end of a window, as for a request above the limit of a minute', async () => {
    for (let n = 0; n < 5; n++) {
      expect(run(quota(null, 'model'), by('key mallory', 'big'))).toMatchObject({ failure: { retryAfterSeconds: 30 } });
      await clock.advance(1000);
    }
    expect(changes).toEqual([]);
    run(quota(null, 'model'), by('key alice', 'big'));
    expect(changes).toEqual(['open quota big']);
    await clock.advance(30_000);
    run(quota(null, 'model'), by('key mallory', 'big'));
    run(jobDone(), by('key alice', 'big'));
    expect(changes).toEqual(['open quota big', 'half_open quota big', 'closed big']);
  });

  it('blocks jobs if it is of the account, or a window of the quota is used up', () => {
    run(quota(minute, 'model'), by('key mallory', 'big'));
    run(quota(null), by('key mallory'));
    expect(changes).toEqual(['open quota big', 'open quota']);
  });

  it('blocks jobs if two clients have it one after the other, without an answer in between', () => {
    run(seems('auth'), by('key mallory'));
    run(jobDone(), by('key alice', 'big'));
    run(seems('auth'), by('key alice'));
    expect(changes).toEqual([]);
    run(seems('auth'), by('key mallory'));
    expect(changes).toEqual(['open auth']);
  });

  it('blocks jobs if there is only one client', () => {
    health = create();
    run(seems('auth'));
    expect(health.circuits.refusalOf(jobOf())).toBeNull();
    run(seems('auth'));
    expect(health.circuits.refusalOf(jobOf())?.reason).toBe('auth');
  });

  it('counts for the requested model only', async () => {
    for (const client of ['key mallory', 'key alice'] as const) run(seems('auth'), by(client, 'big'));
    expect(changes).toEqual(['open auth big']);
    expect(health.circuits.refusalOf(by('key alice', 'big'))?.message).toMatch(
      /^the account of the model CLI may not use this model/,
    );
    expect([health.circuits.refusalOf(by('key alice')), health.circuits.refusalOf(by('key alice', 'small'))]).toEqual([
      null,
      null,
    ]);
    await clock.advance(30_000);
    run(jobDone(), by('key alice', 'big'));
    expect(changes.at(-1)).toBe('closed big');
  });

  it('of the quota counts for the requested model, or for jobs without a model', () => {
    for (const client of ['key mallory', 'key alice'] as const) run(seems('quota'), by(client));
    expect(changes).toEqual(['open quota ']);
    expect(health.circuits.refusalOf(by('key alice', 'big'))).toBeNull();
  });

  it('counts for the account if and only if a check confirms it', async () => {
    run(seems('auth'), by('key mallory', 'big'));
    await check({ version: '1', error: 'no disk', reason: 'other' });
    expect(changes).toEqual([]);
    await check(notLoggedIn);
    expect(changes).toEqual(['open auth']);
  });

  it('does not block jobs again if the client that caused it also ran the probe', async () => {
    for (const client of ['key mallory', 'key alice'] as const) run(seems('auth'), by(client));
    await clock.advance(30_000);
    run(seems('auth'), by('key mallory'));
    run(seems('auth'), by('key mallory', 'big'));
    expect(changes).toEqual(['open auth', 'half_open auth']);
    run(jobDone(), by('key alice'));
    expect(changes.at(-1)).toBe('closed');
  });

  it('counts once for the holder of a key with all its users', () => {
    clients.recordClient('key bot/a');
    for (const client of ['key bot/a', 'key bot/b'] as const) run(seems('auth'), by(client));
    expect(changes).toEqual([]);
  });

  it('does not count together with a failure whose code indicates the account, which blocks jobs when it occurs twice', () => {
    run(seems('auth'), by('key alice'));
    run(failed('auth'), by('key mallory', 'big'));
    expect(changes).toEqual([]);
    run(failed('auth'), by('key mallory', 'big'));
    expect(changes).toEqual(['open auth']);
  });
});

describe('Quota windows', () => {
  const window = { name: 'five_hour', status: 'warning', utilization: 0.92, resetsAt: null } as const;

  it('are logged once when they are nearly exhausted', async () => {
    const resetsAt = clock.now() + hour;
    for (const utilization of [0.9, 0.92]) health.recordQuota([{ ...window, utilization, resetsAt }]);
    const fields = { window: 'five_hour', utilization: 0.9, resets_at: new Date(resetsAt).toISOString() };
    expect(log.entries).toEqual([{ level: 'warn', event: 'quota_warning', fields }]);
    expect(health.windows.utilization).toMatchObject({ five_hour: 0.92, seven_day: 0 });
    await clock.advance(hour);
    expect([health.windows.current, health.windows.utilization.five_hour]).toEqual([[], 0]);
    health.recordQuota([{ ...window, resetsAt: clock.now() + hour }]);
    expect(log.events).toEqual(['quota_warning', 'quota_warning']);
  });

  it('are ignored if their values are invalid', () => {
    health.recordQuota([{ ...window, utilization: Number.NaN, resetsAt: clock.now() + 30 * 24 * hour }]);
    expect(health.windows.current).toEqual([{ ...window, utilization: null, resetsAt: null }]);
    health.recordQuota([{ ...window, utilization: 1e9 }]);
    expect(health.windows.utilization.five_hour).toBe(0);
  });

  it('block no jobs by themselves', () => {
    health.recordQuota([{ ...window, status: 'rejected' }]);
    expect(refusalOf()).toEqual(none);
  });
});

describe('A state change of a circuit', () => {
  it('triggers a check of the CLI, which appears in its history, and is logged', async () => {
    const until = new Date(clock.now() + minute).toISOString();
    run(quota(minute));
    const opened = { level: 'warn', event: 'breaker_open', fields: { reason: 'quota', model: null, until } };
    expect(log.entries).toEqual([opened]);
    await clock.advance(0);
    expect(health.checks.current).toMatchObject({ trigger: 'failure', status: 'not_ready', isHeld: true });
    await clock.advance(minute);
    expect(health.checks.current).toMatchObject({ trigger: 'failure', status: 'ready' });
    run(jobDone());
    expect(log.events).toEqual(['breaker_open', 'breaker_closed']);
    await clock.advance(0);
    expect(health.checks.history(null)).toHaveLength(3);
    expect(flushes).toBe(0);
  });

  it('ends the waiting processes if the credential is rejected for the whole account, also by a check', async () => {
    const clients = new SeenClients();
    for (const client of ['key a', 'key b'] as const) clients.recordClient(client);
    health = create(clients);
    const auth = jobFailed('cli_error', { failure: { code: 'cli_error', message: '', reason: 'auth' } });
    for (const client of ['key a', 'key b'] as const) run(auth, jobOf({ client, model: 'opus' }));
    expect([changes, flushes]).toEqual([['open auth opus'], 0]);
    await check(notLoggedIn);
    expect([changes, flushes]).toEqual([['open auth opus', 'open auth'], 1]);
  });
});

describe('The status of a circuit', () => {
  it('follows the wall clock', async () => {
    expect(health.circuits.status).toEqual([{ state: 'closed', model: null, reason: null, since: null, until: null }]);
    const [since, until] = [clock.now(), clock.now() + minute];
    run(quota(minute));
    expect(health.circuits.status).toEqual([{ state: 'open', model: null, reason: 'quota', since, until }]);
    await clock.advance(minute);
    expect(health.circuits.status).toEqual([{ state: 'half_open', model: null, reason: 'quota', since, until: null }]);
  });

  it('is stable between reads, although the two clocks are read one after the other, and follows a clock jump', () => {
    let aheadMs = 0;
    const wobbling = { ...clock, now: () => clock.now() + aheadMs, monotonicMs: () => clock.monotonicMs() };
    const timers = { after: clock.after.bind(clock), every: clock.every.bind(clock) };
    health = create(undefined, { ...wobbling, ...timers } as FakeClock);
    run(quota(minute));
    const statuses = [0, 1, 0, -1].map((wobble) => {
      aheadMs = wobble;
      return health.circuits.status[0];
    });
    expect(statuses).toEqual(statuses.map(() => statuses[0]));
    aheadMs = hour;
    expect(health.circuits.status[0].until).toBe(clock.now() + hour + minute);
  });
});
