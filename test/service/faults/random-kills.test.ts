import { readdir } from 'node:fs/promises';
import { withResolvers } from '../../../src/shared/async.js';
import { createAnswerGate } from '../../support/agents/answer-gate.js';
import { randomNumbers } from '../../support/basics/random.js';
import { until } from '../../support/basics/until.js';
import { metric } from '../../support/documents/exposition.js';
import { fateOf } from '../../support/jobs/job-fates.js';
import { recovers, untilJobs, untilTreeGone } from '../../support/jobs/jobs.js';
import { isAlive } from '../../support/processes/processes.js';
import { startFaulty } from '../../support/service/faulty-run.js';
import { type Service, script, startWithProgram, twoWorkers } from '../../support/service/service.js';

const seed = Number(process.env.FAULT_SEED ?? Date.now() % 1_000_000);
const goneMs = 10_000;
const lanes = 8;

/** Runs jobs of every kind, one after the other on each lane, until the service dies. */
async function loadUntilGone(service: Service, random: () => number, answered: () => void): Promise<string[]> {
  const kinds = ['echo', 'echo', 'hang-half', 'ignores-signals', 'exit:3', 'one-line'];
  const lane = async (index: number) => {
    const seen: string[] = [];
    for (let count = 0; seen.at(-1) !== 'ECONNREFUSED'; count++) {
      const model = kinds[Math.floor(random() * kinds.length)];
      const body = { prompt: 'hello', model, stream: random() < 0.5 };
      const fate = await fateOf(service.port, { id: `kill-${index}-${count}`, path: '/ask', body, leaveAfterMs: null });
      seen.push(fate.error ?? fate.kind);
      if (fate.kind === 'answered') answered();
    }
    return seen;
  };
  return (await Promise.all(Array.from({ length: lanes }, (_, index) => lane(index)))).flat();
}

describe('A primary that is killed at a random moment under load', () => {
  it.each([0, 1, 2])(`leaves nothing behind: seed ${seed} + %s`, async (round) => {
    const random = randomNumbers(seed + round);
    const service = await startFaulty({ MODEL_API_STANDBY: '2' });
    await using _ended = service;
    const workers = await service.workers();
    const { promise: hasAnswered, resolve: answered } = withResolvers();
    const load = loadUntilGone(service, random, answered);
    await hasAnswered;
    await new Promise((resolve) => setTimeout(resolve, random() * 1000));
    service.process.kill('SIGKILL');
    await service.exited;
    const fates = await load; // no client waits forever
    await until(() => !workers.some(isAlive), 'the workers to be gone', goneMs);
    await untilTreeGone(service, goneMs);
    await until(async () => (await readdir(service.home)).length === 0, 'its folders to be gone', goneMs);
    expect(fates.filter((fate) => fate === 'ECONNREFUSED')).toHaveLength(lanes);
  });
});

describe('A primary that is suspended for a while', () => {
  it('resumes: its jobs, its workers, and requests sent in the meantime', async () => {
    await using gate = await createAnswerGate();
    await using service = await startWithProgram(gate.command, twoWorkers);
    const workers = await service.workers();
    const running = service.post('/ask', { prompt: 'first' });
    await untilJobs(service, 1, 0);
    service.process.kill('SIGSTOP');
    await gate.open();
    const meanwhile = Promise.all([service.get('/health'), service.post('/ask', { prompt: 'second' })]);
    await new Promise((resolve) => setTimeout(resolve, 3000));
    service.process.kill('SIGCONT');
    expect((await running).status).toBe(200);
    expect((await meanwhile).map(({ status }) => status)).toEqual([200, 200]);
    await recovers(service);
    expect(await service.workers()).toEqual(workers);
  });
});

describe('A program that crashes at every start', () => {
  it('is not restarted in a loop for standby, and fails each job that uses it', async () => {
    await using service = await startWithProgram(script('misbehaves.pl', 'exit:3'), { MODEL_API_STANDBY: '4' });
    for (let count = 0; count < 3; count++) {
      expect((await service.post('/ask', { prompt: 'hello' })).body).toMatchObject({ error: 'cli_error' });
    }
    const before = await metric(service, 'cli_exits_total{class="nonzero"}');
    await new Promise((resolve) => setTimeout(resolve, 3000));
    const after = await metric(service, 'cli_exits_total{class="nonzero"}');
    expect(after - before).toBeLessThan(8);
    expect((await service.get('/health')).status).toBe(200);
  });
});

describe('Workers that are killed before they listen', () => {
  it('are started again until one survives, and the jobs of other workers continue', async () => {
    await using service = await startWithProgram(script('misbehaves.pl', 'echo'), twoWorkers);
    const [kept] = (await service.workers()) as [number];
    const starting = async () => {
      const { body } = await service.get('/health').catch(() => ({ body: null }));
      const workers =
        (body?.observability as { workers: { pid: number | null; state: string }[] } | undefined)?.workers ?? [];
      return workers.find(({ pid, state }) => pid !== null && pid !== kept && state === 'starting')?.pid;
    };
    const [, second] = (await service.workers()) as [number, number];
    process.kill(second, 'SIGKILL');
    for (let count = 0; count < 4; count++) {
      const pid = await until(starting, 'a worker that starts');
      process.kill(pid, 'SIGKILL');
      await until(async () => (await starting()) !== pid, 'it to be noticed');
    }
    expect((await service.post('/ask', { prompt: 'hello' })).status).toBe(200);
    await until(async () => (await service.workers().catch(() => [])).length === 2, 'both workers');
    expect(await service.workers()).toContain(kept);
  });
});
