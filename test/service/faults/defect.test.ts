import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createAnswerGate } from '../../support/agents/answer-gate.js';
import { temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import { metric } from '../../support/documents/exposition.js';
import { untilJobs } from '../../support/jobs/jobs.js';
import { failingService, programs, startWithProgram } from '../../support/service/service.js';

const loading = (program: string) => ({ NODE_OPTIONS: `--require=${join(programs, program)}` });
const record = { level: 'error', error: expect.stringMatching(/^Error: a defect of the test\n {4}at /) };

describe('A defect', () => {
  it('in the primary is logged, counted and shown in /health, and no job fails', async () => {
    await using gate = await createAnswerGate();
    await using service = await startWithProgram(gate.command, loading('throws-on-signal.js'));
    const job = service.post('/ask', { prompt: 'hello' });
    await untilJobs(service, 1, 0);
    service.process.kill('SIGUSR2');
    expect(await service.log('internal_error')).toMatchObject({ ...record, role: 'primary' });
    const { body } = await service.get('/health');
    expect(body).toMatchObject({ status: 'degraded', reasons: [{ part: 'service', name: 'primary' }] });
    expect(await metric(service, 'uncaught_exceptions_total{role="primary"}')).toBe(1);
    await gate.open();
    expect((await job).body.response).toBe('hello');
    expect((await service.post('/ask', { prompt: 'again' })).body.response).toBe('again');
    expect(await service.stop()).toBe(0);
  });

  it('in a worker breaks none of its open requests, and another worker replaces it', async () => {
    await using gate = await createAnswerGate();
    await using service = await startWithProgram(gate.command, loading('throws-on-signal.js'));
    const [broken = 0] = await service.workers();
    const job = service.post('/ask', { prompt: 'hello' });
    await untilJobs(service, 1, 0);
    process.kill(broken, 'SIGUSR2');
    expect(await service.log('internal_error')).toMatchObject({ ...record, role: 'worker' });
    const successor = () => service.workers().then((pids) => pids.length === 1 && !pids.includes(broken));
    await until(successor, 'the other worker');
    await gate.open();
    expect((await job).body.response).toBe('hello');
    expect(await metric(service, 'uncaught_exceptions_total{role="worker"}')).toBe(1);
    expect(await metric(service, 'worker_restarts_total{cause="crash"}')).toBe(1);
    expect((await service.get('/health')).body.status).toBe('ok');
  });

  it('during the start ends the service with 70, and leaves no folder', async () => {
    await using shared = await temporaryFolder();
    const env = { ...loading('throws-at-start.js'), TMPDIR: shared.path };
    await using service = await failingService(env);
    expect(await service.log('internal_error')).toMatchObject({ ...record, role: 'primary' });
    expect(service.code).toBe(70);
    expect(await readdir(shared.path)).toEqual([]);
  });
});
