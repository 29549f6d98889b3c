import { Breaker, type CircuitJob } from '../../../src/primary/limits/breaker.js';
import type { CircuitStatus } from '../../../src/primary/limits/circuit.js';
import { SeenClients } from '../../../src/primary/limits/seen-clients.js';
import type { CliReason, QuotaRefusal } from '../../../src/shared/errors.js';
import type { JobEnd, JobRequest } from '../../../src/shared/job.js';
import { FakeClock } from '../../support/fake-clock.js';
import { jobDone, jobFailed, jobRequest } from '../../support/job-records.js';

const minute = 60_000;
const hour = 60 * minute;

let clock: FakeClock;
let breaker: Breaker;
let changes: string[];

beforeEach(() => {
  clock = new FakeClock();
  breaker = new Breaker(clock);
  changes = [];
  const changed = ({ state, model, reason }: CircuitStatus) =>
    void changes.push([state, reason, model].filter((word) => word !== null).join(' '));
  breaker.listen({ changed, windowClosing: ({ name }) => void changes.push(`closing ${name}`) });
});

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

/** A job that was let through, and ends so at once. */
function run(end: JobEnd, job = jobOf()): JobEnd {
  expect(breaker.refusal(job)).toBeNull();
  breaker.admitted(job);
  return breaker.ended(job, end, true);
}

function refusalOf(job = jobOf()) {
  const { code, reason, retryAfterSeconds } = breaker.refusal(job) ?? {};
  return [code, reason, retryAfterSeconds];
}

const none = [undefined, undefined, undefined];

describe('A used up quota', () => {
  it('holds back all jobs until its reset, and tells the job that has found out as well', async () => {
    const end = run(quota(20 * minute));
    expect(end).toMatchObject({ outcome: 'cli_error', failure: { reason: 'quota', retryAfterSeconds: 1200 } });
    expect(refusalOf()).toEqual(['cli_error', 'quota', 1200]);
    await clock.advance(20 * minute - 1);
    expect(refusalOf(jobOf({ model: 'opus' }))).toEqual(['cli_error', 'quota', 1]);
    expect([breaker.isClosed, breaker.error]).toEqual([
      false,
      'the account of the model CLI has used up its quota; no job is started before 2026-01-01T00:20:00.000Z',
    ]);
    await clock.advance(1);
    expect([refusalOf(), breaker.isClosed, breaker.error]).toEqual([none, false, null]);
  });

  it('is tried by one job after the reset, whose first text lets all others through', async () => {
    run(quota(minute));
    await clock.advance(minute);
    const probe = jobOf({ requestId: 'probe' });
    breaker.admitted(probe);
    expect(refusalOf()).toEqual(['cli_error', 'quota', 5]);
    expect(breaker.refusal(probe)).toBeNull();
    breaker.served(probe);
    expect([refusalOf(), breaker.isClosed]).toEqual([none, true]);
    expect(changes).toEqual(['open quota', 'half_open quota', 'closed']);
    expect(clock.pending).toBe(0);
  });

  it('is opened again by a probe that is refused, after a wait that doubles up to ten minutes', async () => {
    const waits: number[] = [];
    for (let round = 0; round < 7; round++) {
      const end = run(quota(null));
      const waitMs = 1000 * (end.outcome === 'ok' ? 0 : (end.failure.retryAfterSeconds ?? 0));
      waits.push(waitMs / 1000);
      await clock.advance(waitMs);
    }
    expect(waits).toEqual([30, 60, 120, 240, 480, 600, 600]);
    expect(breaker.openings).toEqual({ quota: 7, auth: 0 });
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
  ])('has an unknown time of reset where the CLI says: %s', (_, resetsAt) => {
    const end = run(failed('quota', { scope: 'account', resetsAt: resetsAt() }));
    expect(end).toMatchObject({ failure: { retryAfterSeconds: 30 } });
  });

  it('is tried once an hour, however late its reset is', async () => {
    expect(run(quota(6 * 24 * hour))).toMatchObject({ failure: { retryAfterSeconds: 3600 } });
    await clock.advance(hour);
    expect(run(quota(6 * 24 * hour - hour))).toMatchObject({ failure: { retryAfterSeconds: 3600 } });
  });

  it('is learned from no job that began before, and from none that was cut while it waited', async () => {
    const running = jobOf({ requestId: 'running' });
    const waiting = jobOf({ requestId: 'waiting' });
    for (const job of [running, waiting]) breaker.admitted(job);
    run(quota(minute));
    breaker.served(running);
    breaker.ended(running, jobDone(), true);
    expect(refusalOf()).toEqual(['cli_error', 'quota', 60]);
    await clock.advance(minute);
    breaker.ended(waiting, quota(hour), false);
    expect([changes.at(-1), refusalOf()]).toEqual(['half_open quota', none]);
  });

  it('is still to be tried where the probe shows nothing', async () => {
    run(quota(minute));
    await clock.advance(minute);
    for (const end of [jobFailed('timeout'), jobFailed('cancelled'), failed('overloaded'), failed('crashed')]) {
      run(end);
      expect(refusalOf()).toEqual(none);
    }
    const waiting = jobOf();
    breaker.admitted(waiting);
    breaker.ended(waiting, jobFailed('queue_timeout'), false);
    expect([refusalOf(), breaker.isClosed]).toEqual([none, false]);
  });

  it('of one model holds back the jobs of that model alone', async () => {
    const opus = () => jobOf({ model: 'opus' });
    run(quota(minute, 'model'), opus());
    expect([refusalOf(opus()), refusalOf()]).toEqual([['cli_error', 'quota', 60], none]);
    expect([breaker.isClosed, breaker.error]).toEqual([true, null]);
    expect(breaker.status.map(({ state, model }) => [state, model])).toEqual([
      ['closed', null],
      ['open', 'opus'],
    ]);
    run(jobDone());
    await clock.advance(minute);
    run(jobDone(), opus());
    expect(breaker.status).toHaveLength(1);
    expect(changes).toEqual(['open quota opus', 'half_open quota opus', 'closed opus']);
  });

  it('of the model of jobs that name none counts as one of the service', () => {
    run(quota(minute, 'model'));
    expect([breaker.isClosed, breaker.error]).toEqual([false, expect.stringContaining('quota')]);
    expect(refusalOf(jobOf({ model: 'opus' }))).toEqual(none);
  });

  it('is remembered for a bounded number of models', () => {
    for (let n = 0; n < 40; n++) run(quota(minute, 'model'), jobOf({ model: `model ${n}` }));
    expect(breaker.status).toHaveLength(17);
    expect(refusalOf(jobOf({ model: 'model 39' }))).toEqual(['cli_error', 'quota', 60]);
    expect(clock.pending).toBe(16);
    breaker.stop();
    expect(clock.pending).toBe(0);
  });

  it('is tried at once where somebody asks for it', () => {
    run(quota(hour));
    breaker.tryAgain();
    expect([refusalOf(), clock.pending]).toEqual([none, 0]);
    run(jobDone());
    expect(breaker.isClosed).toBe(true);
  });
});

describe('An overloaded API', () => {
  it('holds back nobody', () => {
    for (let n = 0; n < 5; n++) expect(run(failed('overloaded'))).toEqual(failed('overloaded'));
    expect([refusalOf(), changes]).toEqual([none, []]);
  });
});

describe('A refused credential', () => {
  it('holds back jobs from the second job on that began after the first had failed', async () => {
    const together = [jobOf(), jobOf(), jobOf()];
    for (const job of together) breaker.admitted(job);
    await clock.advance(1000);
    const late = { ...failed('auth'), executionMs: 1000 };
    for (const job of together) breaker.ended(job, late, true);
    expect(refusalOf()).toEqual(none); // it may have been one token that was just renewed
    expect(run(failed('auth'))).toMatchObject({ failure: { reason: 'auth', retryAfterSeconds: 30 } });
    expect(refusalOf()).toEqual(['cli_error', 'auth', 30]);
    expect(breaker.openFor).toEqual({ quota: 0, auth: 1 });
  });

  it('is forgotten where a later job is answered in between', () => {
    for (const end of [failed('auth'), jobDone(), failed('auth'), jobDone()]) run(end);
    expect(changes).toEqual([]);
  });

  it('is forgotten where somebody has replaced it, and asks for another try', () => {
    run(failed('auth'));
    breaker.tryAgain();
    run(failed('auth'));
    expect(changes).toEqual([]);
    run(failed('auth'));
    expect(changes).toEqual(['open auth']);
  });

  it('is not forgotten for a job that began before', async () => {
    run(failed('auth'));
    await clock.advance(500);
    breaker.ended(jobOf(), jobDone({ executionMs: 2000 }), true);
    run(failed('auth'));
    expect(changes).toEqual(['open auth']);
  });

  it('holds back jobs after the first failure where the CLI says itself that it has none', () => {
    breaker.checked({ error: 'not logged in' });
    expect(changes).toEqual([]); // no job has failed
    run(failed('auth'));
    breaker.checked({ error: null });
    expect(changes).toEqual([]);
    breaker.checked({ error: 'not logged in' });
    expect(changes).toEqual(['open auth']);
  });

  it('is tried again as soon as the CLI says that it has one', () => {
    run(failed('auth'));
    breaker.checked({ error: 'not logged in' });
    breaker.checked({ error: 'not logged in' });
    expect(refusalOf()).toEqual(['cli_error', 'auth', 30]);
    breaker.checked({ error: null });
    run(jobDone());
    expect(changes).toEqual(['open auth', 'half_open auth', 'closed']);
  });

  it('makes a check say so, as a used up quota does, where the CLI itself knows of nothing', () => {
    expect(breaker.checked({ version: '1', error: null })).toEqual({ version: '1', error: null });
    run(quota(minute));
    const error = expect.stringContaining('has used up its quota; no job is started before');
    expect(breaker.checked({ version: '1', error: null })).toEqual({ version: '1', error, isHeld: true });
    expect(breaker.checked({ error: 'gone' })).toEqual({ error: 'gone' });
  });

  it('is not tried again because the CLI goes on saying that it has one', () => {
    run(failed('auth'));
    run(failed('auth'));
    breaker.checked({ error: null });
    expect(changes).toEqual(['open auth']);
  });

  it('holds back jobs again after one failure of the probe, or a check that says so', async () => {
    run(failed('auth'));
    run(failed('auth'));
    await clock.advance(30_000);
    run(failed('auth'));
    expect(refusalOf()).toEqual(['cli_error', 'auth', 60]);
    breaker.tryAgain();
    breaker.checked({ error: 'not logged in' });
    expect(refusalOf()).toEqual(['cli_error', 'auth', 120]);
  });
});

describe('A failure that a request may have caused', () => {
  const by = (client: string, model: string | null = null) => jobOf({ client, model });
  let clients: SeenClients;

  beforeEach(() => {
    clients = new SeenClients();
    for (const client of ['mallory', 'alice']) clients.saw(client);
    breaker = new Breaker(clock, '', clients);
    const changed = ({ state, model, reason }: CircuitStatus) =>
      void changes.push([state, reason, model].filter((word) => word !== null).join(' '));
    breaker.listen({ changed, windowClosing() {} });
  });

  /** As from words alone. */
  function seems(reason: CliReason): JobEnd {
    return jobFailed('cli_error', { failure: { code: 'cli_error', message: '', reason } });
  }

  it.each(['auth', 'quota'] as const)('holds back nobody where one client alone has it: %s', async (reason) => {
    for (let n = 0; n < 5; n++) {
      run(seems(reason), by('mallory'));
      run(seems(reason), by('mallory', 'big'));
      run(seems(reason), by('mallory', `model ${n}`));
      await clock.advance(1000);
    }
    expect([changes, breaker.isClosed, breaker.error]).toEqual([[], true, null]);
    expect(clock.pending).toBe(0);
  });

  it('holds back jobs where two clients have it one after the other, and none is answered in between', () => {
    run(seems('auth'), by('mallory'));
    run(jobDone(), by('alice', 'big'));
    run(seems('auth'), by('alice'));
    expect(changes).toEqual([]);
    run(seems('auth'), by('mallory'));
    expect(changes).toEqual(['open auth']);
  });

  it('holds back jobs where there is but one client', () => {
    breaker = new Breaker(clock);
    run(seems('auth'));
    expect(breaker.refusal(jobOf())).toBeNull();
    run(seems('auth'));
    expect(breaker.refusal(jobOf())?.reason).toBe('auth');
  });

  it('is about the model that its job names, and no other', async () => {
    for (const client of ['mallory', 'alice']) run(seems('auth'), by(client, 'big'));
    expect(changes).toEqual(['open auth big']);
    expect(breaker.refusal(by('alice', 'big'))?.message).toMatch(
      /^the account of the model CLI may not use this model/,
    );
    expect([breaker.refusal(by('alice')), breaker.refusal(by('alice', 'small'))]).toEqual([null, null]);
    await clock.advance(30_000);
    run(jobDone(), by('alice', 'big'));
    expect(changes.at(-1)).toBe('closed big');
  });

  it('of the quota is about the model that its job names, or about those that name none', () => {
    for (const client of ['mallory', 'alice']) run(seems('quota'), by(client));
    expect(changes).toEqual(['open quota ']);
    expect(breaker.refusal(by('alice', 'big'))).toBeNull();
  });

  it('is about the account where a check says the same, and only then', () => {
    run(seems('auth'), by('mallory', 'big'));
    breaker.checked({ error: 'no disk', reason: 'other' });
    expect(changes).toEqual([]);
    breaker.checked({ error: 'not logged in' });
    expect(changes).toEqual(['open auth']);
  });

  it('does not hold back jobs again where the client of the first one had the probe', async () => {
    for (const client of ['mallory', 'alice']) run(seems('auth'), by(client));
    await clock.advance(30_000);
    run(seems('auth'), by('mallory'));
    run(seems('auth'), by('mallory', 'big'));
    expect(changes).toEqual(['open auth', 'half_open auth']);
    run(jobDone(), by('alice'));
    expect(changes.at(-1)).toBe('closed');
  });

  it('counts for the holder of a key, whomever the holder speaks for', () => {
    clients.saw('key bot/a');
    for (const client of ['key bot/a', 'key bot/b']) run(seems('auth'), by(client));
    expect(changes).toEqual([]);
  });

  it('is none where a code says that it is the account: that holds back jobs at the second one, as ever', () => {
    run(seems('auth'), by('alice'));
    run(failed('auth'), by('mallory', 'big'));
    expect(changes).toEqual([]);
    run(failed('auth'), by('mallory', 'big'));
    expect(changes).toEqual(['open auth']);
  });
});

describe('Windows of the quota', () => {
  const window = { name: 'five_hour', status: 'warning', utilization: 0.92, resetsAt: null } as const;

  it('are told when they are about to close, once', async () => {
    const resetsAt = clock.now() + hour;
    for (const utilization of [0.9, 0.92]) breaker.reported([{ ...window, utilization, resetsAt }]);
    expect(changes).toEqual(['closing five_hour']);
    expect(breaker.utilization).toMatchObject({ five_hour: 0.92, seven_day: 0 });
    await clock.advance(hour);
    expect([breaker.windows, breaker.utilization.five_hour]).toEqual([[], 0]);
    breaker.reported([{ ...window, resetsAt: clock.now() + hour }]);
    expect(changes).toHaveLength(2);
  });

  it('are not believed where they make no sense', () => {
    breaker.reported([{ ...window, utilization: Number.NaN, resetsAt: clock.now() + 30 * 24 * hour }]);
    expect(breaker.windows).toEqual([{ ...window, utilization: null, resetsAt: null }]);
    breaker.reported([{ ...window, utilization: 1e9 }]);
    expect(breaker.utilization.five_hour).toBe(0);
  });

  it('hold back nobody by themselves', () => {
    breaker.reported([{ ...window, status: 'rejected' }]);
    expect(refusalOf()).toEqual(none);
  });
});

describe('The status', () => {
  it('follows the wall clock', async () => {
    expect(breaker.status).toEqual([{ state: 'closed', model: null, reason: null, since: null, until: null }]);
    const [since, until] = [clock.now(), clock.now() + minute];
    run(quota(minute));
    expect(breaker.status).toEqual([{ state: 'open', model: null, reason: 'quota', since, until }]);
    await clock.advance(minute);
    expect(breaker.status).toEqual([{ state: 'half_open', model: null, reason: 'quota', since, until: null }]);
  });

  it('is the same from look to look, though the two clocks are read one after the other, and follows a jump', () => {
    let aheadMs = 0;
    const wobbling = { ...clock, now: () => clock.now() + aheadMs, monotonicMs: () => clock.monotonicMs() };
    const timers = { after: clock.after.bind(clock), every: clock.every.bind(clock) };
    breaker = new Breaker({ ...wobbling, ...timers });
    run(quota(minute));
    const statuses = [0, 1, 0, -1].map((wobble) => {
      aheadMs = wobble;
      return breaker.status[0];
    });
    expect(statuses).toEqual(statuses.map(() => statuses[0]));
    aheadMs = hour;
    expect(breaker.status[0].until).toBe(clock.now() + hour + minute);
  });
});
