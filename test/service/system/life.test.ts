import { type AnswerGate, createAnswerGate } from '../../support/agents/answer-gate.js';
import { until } from '../../support/basics/until.js';
import { untilJobs } from '../../support/jobs/jobs.js';
import { isAlive } from '../../support/processes/processes.js';
import { type Service, startService, startWithProgram, twoWorkers } from '../../support/service/service.js';
import { expectNothingLeft, lifeEvents } from '../../support/service/shutdown.js';

const prompts = ['first', 'second', 'third', 'fourth', 'fifth'];

/** Starts a service with two slots, whose answers wait for the gate. Its drain is not meant to reach its limit. */
function startGated(gate: AnswerGate, isDetached = false): Promise<Service> {
  const env = { MODEL_API_MAX_CONCURRENT: '2', MODEL_API_DRAIN_TIMEOUT_SECONDS: '60', MODEL_API_TIMEOUT: '60' };
  return startWithProgram(gate.command, { ...twoWorkers, ...env }, { isDetached });
}

/** Starts two running and three waiting jobs. Returns their pending answers. */
async function fill(service: Service) {
  const answers = prompts.map((prompt) => service.post('/ask', { prompt }));
  await untilJobs(service, 2, 3);
  return answers;
}

async function expectAllAnswered(answers: Awaited<ReturnType<typeof fill>>): Promise<void> {
  const said = (await Promise.all(answers)).map(({ status, body }) => [status, body.response]);
  expect(said).toEqual(prompts.map((prompt) => [200, prompt]));
}

/** Sends requests of every kind, each on a new connection. Throws if a connection is refused. */
async function lookAround(service: Service, conversationId: string): Promise<void> {
  const own = { connection: 'close' };
  for (const [path, body] of [
    ['/ask', { prompt: 'late' }],
    ['/chat', { message: 'late' }],
    ['/chat', { message: 'late', conversation_id: conversationId }],
  ] as const) {
    const { status, headers, body: answer } = await service.post(path, body);
    expect({ status, error: answer.error }).toEqual({ status: 503, error: 'shutting_down' });
    expect(headers.get('connection')).toBe('close');
    expect(headers.get('retry-after')).toBe(String(answer.retry_after_seconds));
    expect(answer.retry_after_seconds).toBeGreaterThan(0);
  }
  for (const path of ['/version', '/models', '/health/history', '/openapi.yaml', '/docs/', `/chat/${conversationId}`]) {
    expect({ path, ...(await service.get(path, own)) }).toMatchObject({ path, status: 200 });
  }
  expect(await service.get('/health', own)).toMatchObject({ status: 503, body: { status: 'draining' } });
  expect((await service.get('/metrics', own)).text).toMatch(/^model_api_draining 1$/m);
}

describe('The service after SIGTERM', () => {
  it('refuses new jobs, answers all other requests, ignores SIGHUP, finishes running jobs, and exits with 0', async () => {
    await using gate = await createAnswerGate();
    await using service = await startGated(gate);
    await gate.open();
    const { body } = await service.post('/chat', { message: 'hello' });
    await gate.close();
    const workers = await service.workers();
    const answers = await fill(service);

    service.process.kill('SIGTERM');
    expect(await service.log('shutdown_start')).toMatchObject({ signal: 'SIGTERM', running: 2, queued: 3 });
    service.process.kill('SIGHUP');
    for (let round = 0; round < 5; round++) await lookAround(service, String(body.conversation_id));
    expect(await service.workers()).toEqual(workers);
    await untilJobs(service, 2, 3);
    expect((await service.get('/metrics')).text).toMatch(/^model_api_rejected_total\{reason="draining"\} 15$/m);
    await gate.open();

    await expectAllAnswered(answers);
    expect(await service.exited).toBe(0);
    expect(lifeEvents(service)).toEqual(['shutdown_start', 'shutdown_complete']);
    await expectNothingLeft(service, workers);
  });
});

describe('A Ctrl-C that every process of the service receives', () => {
  it('is handled by the primary: running jobs finish', async () => {
    await using gate = await createAnswerGate();
    await using service = await startGated(gate, true);
    const workers = await service.workers();
    const answers = await fill(service);
    // Between its fork and its exec, a program is still in the process group that receives the signal.
    await until(async () => (await service.jobProcesses()).length === 2, 'both programs to run');

    process.kill(-service.pid, 'SIGINT');
    expect(await service.log('shutdown_start')).toMatchObject({ signal: 'SIGINT' });
    expect(await service.get('/health')).toMatchObject({ status: 503 });
    expect(workers.filter(isAlive)).toEqual(workers);
    await gate.open();

    await expectAllAnswered(answers);
    expect(await service.exited).toBe(0);
    expect(lifeEvents(service)).toEqual(['shutdown_start', 'shutdown_complete']);
    await expectNothingLeft(service, workers);
  });
});

describe('A service with processes on standby', () => {
  it('exits at once with 0 after SIGINT if it is idle, and has written nothing to stderr under load', async () => {
    await using service = await startService({ env: { MODEL_API_STANDBY: '2' } });
    const workers = await service.workers();
    for (let round = 0; round < 2; round++) {
      const answers = Array.from({ length: 20 }, () => service.post('/ask', { prompt: 'hello' }));
      for (const { status } of await Promise.all(answers)) expect(status).toBe(200);
    }
    await untilJobs(service, 0, 0);
    service.process.kill('SIGINT');
    expect(await service.exited).toBe(0);
    expect(lifeEvents(service)).toEqual(['shutdown_start', 'shutdown_complete']);
    await expectNothingLeft(service, workers);
    expect(service.stderr).toEqual([]); // Node 22 and newer warn of a negative delay
  });
});
