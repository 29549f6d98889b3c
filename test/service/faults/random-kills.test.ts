import { createAnswerGate } from '../../support/agents/answer-gate.js';
import { until } from '../../support/basics/until.js';
import { metric } from '../../support/documents/exposition.js';
import { recovers, untilJobs } from '../../support/jobs/jobs.js';
import { script, startWithProgram, twoWorkers } from '../../support/service/service.js';

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
