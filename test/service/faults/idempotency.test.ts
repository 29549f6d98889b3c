import { createAnswerGate } from '../../support/agents/answer-gate.js';
import { until } from '../../support/basics/until.js';
import { untilJobs } from '../../support/jobs/jobs.js';
import { startWithProgram, twoWorkers } from '../../support/service/service.js';

const key = { 'idempotency-key': 'k' };

describe('A worker that is killed while it answers a request with an idempotency key', () => {
  it('frees the key at once for every worker', async () => {
    await using gate = await createAnswerGate();
    await using service = await startWithProgram(gate.command, twoWorkers);
    const cut = service.post('/ask', { prompt: 'once' }, key).catch(() => 'cut');
    await untilJobs(service, 1, 0);
    for (const pid of await service.workers()) process.kill(pid, 'SIGKILL');
    expect(await cut).toBe('cut');
    await until(async () => (await service.workers().catch(() => [])).length === 2, 'two new workers');
    await gate.open();
    const answer = await service.post('/ask', { prompt: 'once' }, key);
    expect([answer.status, answer.headers.get('idempotency-replayed')]).toEqual([200, null]);
  });
});
