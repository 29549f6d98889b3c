import { learnFrom } from '../../../src/primary/observe-jobs.js';
import { Readiness, type Verdict } from '../../../src/primary/readiness/readiness.js';
import { RelayError } from '../../../src/shared/errors.js';
import type { JobDone, JobFailed } from '../../../src/shared/job.js';
import type { ReadinessEntry } from '../../../src/shared/readiness.js';
import { FakeClock } from '../../support/fake-clock.js';

const good: Verdict = { version: '1.0', error: null };
const bad: Verdict = { version: '1.0', error: 'nobody is logged in' };

/** A readiness whose checks end when they are told to. */
class House {
  readonly clock = new FakeClock();
  readonly checked: ReadinessEntry[] = [];
  readonly #waiting: { resolve(verdict: Verdict): void; reject(error: Error): void }[] = [];
  readonly readiness: Readiness;
  begun = 0;

  constructor({ intervalMs = 0, historyLimit = 100, random = (): number => 0.5 } = {}) {
    const probe = () =>
      new Promise<Verdict>((resolve, reject) => {
        this.begun++;
        this.#waiting.push({ resolve, reject });
      });
    const settings = { adapter: 'claude', intervalMs, historyLimit };
    this.readiness = new Readiness(probe, settings, this.clock, random, (entry) => this.checked.push(entry));
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

function failed(code: 'spawn_error' | 'cli_error' | 'timeout', reason?: string): JobFailed {
  const details = reason === undefined ? undefined : [{ path: 'reason', message: reason }];
  return { type: 'job-end', outcome: code, failure: { code, message: '', details }, queueMs: 0, executionMs: 0 };
}

/** The API refused its credential. */
function refused(executionMs: number): JobFailed {
  return { ...failed('cli_error', 'auth'), executionMs };
}

function answered(executionMs: number): JobDone {
  const usage = { inputTokens: null, outputTokens: null, costUsd: null };
  const answer = { text: null, model: null, usage, conversation: null };
  return { type: 'job-end', outcome: 'ok', ...answer, queueMs: 0, executionMs };
}

describe('readiness', () => {
  it('is unknown until the first check has ended', async () => {
    const house = new House();
    const { readiness, clock, checked } = house;
    readiness.start();
    expect(readiness.current).toMatchObject({ status: 'unknown', checkedAt: null, trigger: 'start' });
    expect(readiness.history(null)).toEqual([]);
    const checkedAt = clock.now();
    await clock.advance(40);
    await house.end(good);
    const entry = { status: 'ready', trigger: 'start', checkedAt, durationMs: 40, adapter: 'claude' };
    expect(readiness.current).toEqual({ ...entry, version: '1.0', error: null });
    expect(checked).toEqual([readiness.current]);
  });

  it('has one check at a time, which all who ask share', async () => {
    const house = new House();
    const calls = Array.from({ length: 20 }, () => house.readiness.check('forced'));
    await house.end(good);
    expect(new Set(await Promise.all(calls)).size).toBe(1);
    expect(house.begun).toBe(1);
    void house.readiness.check('forced');
    await house.end(bad);
    expect(house.readiness.current).toMatchObject({ status: 'not_ready', error: 'nobody is logged in' });
    expect([house.begun, house.checked.length]).toEqual([2, 2]);
  });

  it('is not told to who asks about now by a check that began for another cause', async () => {
    const house = new House();
    house.readiness.start();
    house.readiness.doubt();
    const calls = [house.readiness.check('forced'), house.readiness.check('forced'), house.readiness.check('interval')];
    await house.end(bad);
    expect(house.begun).toBe(2);
    await house.end(good);
    const entries = await Promise.all(calls);
    expect(entries.map(({ trigger, status }) => [trigger, status])).toEqual([
      ['forced', 'ready'],
      ['forced', 'ready'],
      ['start', 'not_ready'],
    ]);
    expect([house.begun, house.checked.length]).toEqual([2, 2]);
  });

  it('is lost by a check that breaks, or takes longer than 20 s', async () => {
    const house = new House();
    const errors: (string | null)[] = [];
    for (const error of [new RelayError('spawn_error', 'it is not installed'), new Error('secret')]) {
      const check = house.readiness.check('forced');
      await house.break(error);
      errors.push((await check).error);
    }
    const check = house.readiness.check('forced');
    await house.clock.advance(19_999);
    expect(house.checked).toHaveLength(2);
    await house.clock.advance(1);
    errors.push((await check).error);
    expect(errors).toEqual(['it is not installed', 'the check itself failed', 'the check took longer than 20000 ms']);
    expect(house.checked.map(({ status }) => status)).toEqual(['not_ready', 'not_ready', 'not_ready']);
  });

  it.each([
    [0, 900],
    [0.5, 1000],
    [1, 1100],
  ])('is looked at again after the interval, give or take a tenth (%d: %d ms)', async (random, dueMs) => {
    const house = new House({ intervalMs: 1000, random: () => random });
    house.readiness.start();
    await house.end(good);
    for (let round = 1; round <= 3; round++) {
      await house.clock.advance(dueMs - 1);
      expect(house.begun).toBe(round);
      await house.clock.advance(1);
      await house.end(good);
    }
    expect(house.checked.map(({ trigger }) => trigger)).toEqual(['start', 'interval', 'interval', 'interval']);
    house.readiness.stop();
    await house.clock.advance(100_000);
    expect(house.begun).toBe(4);
  });

  it('learns nothing from a check that ends with the service, and begins no other', async () => {
    const house = new House();
    house.readiness.start();
    await house.end(good);
    const cut = house.readiness.check('forced');
    house.readiness.stop();
    await house.end(bad); // its program was ended
    const [, last] = await Promise.all([house.readiness.check('failure'), cut]);
    expect(last).toMatchObject({ status: 'ready', trigger: 'start' });
    expect([house.checked.length, house.begun]).toEqual([1, 2]);
  });

  it('has no more checks than the first where the interval is 0', async () => {
    const house = new House();
    house.readiness.start();
    await house.end(good);
    await house.clock.advance(1_000_000);
    expect(house.begun).toBe(1);
  });

  it.each([
    [failed('spawn_error'), 1],
    [failed('cli_error', 'auth'), 1],
    [failed('cli_error', 'quota'), 0],
    [failed('cli_error', 'crashed'), 0],
    [failed('timeout'), 0],
  ])('is doubted after a failure that tells of the CLI, not of the job (%#)', async (end, checks) => {
    const house = new House();
    expect(learnFrom(end, house.readiness)).toBe(checks > 0);
    expect(house.begun).toBe(checks);
    await house.end(bad);
    learnFrom(end, house.readiness); // nothing that was not known
    expect(house.begun).toBe(checks);
    expect(house.checked.map(({ trigger }) => trigger)).toEqual(checks === 0 ? [] : ['failure']);
  });

  it('keeps its last checks, and gives those that are strictly later', async () => {
    const house = new House({ historyLimit: 3 });
    const times: number[] = [];
    for (let round = 0; round < 5; round++) {
      await house.clock.advance(10);
      times.push(house.clock.now());
      void house.readiness.check('forced');
      await house.end(good);
    }
    const timesOf = (since: number | null) => house.readiness.history(since).map(({ checkedAt }) => checkedAt);
    expect(timesOf(null)).toEqual(times.slice(2));
    expect(timesOf(times[3] as number)).toEqual(times.slice(4));
    expect(timesOf((times[3] as number) - 1)).toEqual(times.slice(3));
    expect(timesOf(0)).toEqual(times.slice(2));
  });
});

describe('a credential that the API refuses', () => {
  const refusal = expect.stringMatching(/credential was refused when a job used it/);

  /** A house whose CLI says that all is well, half a minute after a job had its credential refused. */
  async function refusedHouse(): Promise<House> {
    const house = new House({ intervalMs: 10_000 });
    house.readiness.start();
    await house.end(good);
    learnFrom(refused(100), house.readiness);
    await house.end(good);
    for (let round = 0; round < 3; round++) {
      await house.clock.advance(10_000);
      await house.end(good);
    }
    return house;
  }

  function verdicts(house: House) {
    return house.checked.map(({ trigger, status }) => `${trigger} ${status}`);
  }

  it('makes it not ready, whatever the CLI knows of its login', async () => {
    const house = await refusedHouse();
    expect(verdicts(house)).toEqual([
      'start ready',
      'failure not_ready',
      'interval not_ready',
      'interval not_ready',
      'interval not_ready',
    ]);
    expect(house.readiness.current).toMatchObject({ status: 'not_ready', error: refusal, version: '1.0' });
    learnFrom(refused(100), house.readiness);
    expect(house.begun).toBe(5);
  });

  it('is taken again when a job is answered that began later, and no earlier', async () => {
    const house = await refusedHouse();
    expect([learnFrom(answered(30_101), house.readiness), house.begun]).toEqual([false, 5]);
    expect([learnFrom(answered(30_000), house.readiness), house.begun]).toEqual([true, 6]);
    await house.end(good);
    expect([verdicts(house).at(-1), learnFrom(answered(0), house.readiness)]).toEqual(['failure ready', false]);
  });

  it('is told by the CLI where it knows more', async () => {
    const house = await refusedHouse();
    await house.clock.advance(10_000);
    await house.end(bad);
    expect(house.readiness.current.error).toBe('nobody is logged in');
  });

  it('is forgotten by a forced check, until another job shows it', async () => {
    const house = await refusedHouse();
    expect(house.readiness.isCredentialRefused).toBe(true);
    const check = house.readiness.check('forced');
    learnFrom(refused(1), house.readiness); // it began with the credential of before
    await house.end(good);
    expect((await check).status).toBe('ready');
    expect(house.readiness.isCredentialRefused).toBe(false);
    await house.clock.advance(1000);
    learnFrom(refused(900), house.readiness);
    await house.end(good);
    expect(verdicts(house).slice(-2)).toEqual(['forced ready', 'failure not_ready']);
  });
});
