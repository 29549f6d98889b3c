import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { startReportingModel, untilProcesses } from '../../support/agents/reporting-model.js';
import { temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import { jsonPost } from '../../support/clients/raw-http.js';
import { untilJobs } from '../../support/jobs/jobs.js';
import { isAlive } from '../../support/processes/processes.js';
import { type Service, script, startWithProgram, twoWorkers } from '../../support/service/service.js';

/** Starts a running and a waiting job. Resolves once both are in this state. */
async function twoJobs(service: Service) {
  const running = service.post('/ask', { prompt: 'running' });
  await untilJobs(service, 1, 0);
  const waiting = service.post('/ask', { prompt: 'waiting' });
  await untilJobs(service, 1, 1);
  return Promise.all([running, waiting]).then((answers) => ({ answers }));
}

describe.each(['SIGTERM', 'SIGINT'] as const)('%s', (signal) => {
  it('lets running and queued jobs finish, refuses new ones, and exits with 0', async () => {
    await using folder = await temporaryFolder();
    const gate = join(folder.path, 'gate');
    await using service = await startWithProgram(script('takes-turns.pl', join(folder.path, 'order'), gate), {
      ...twoWorkers,
      MODEL_API_MAX_CONCURRENT: '1',
      MODEL_API_DRAIN_TIMEOUT_SECONDS: '30',
    });
    const workers = await service.workers();
    const jobs = twoJobs(service);
    await untilJobs(service, 1, 1);
    service.process.kill(signal);
    await service.log('shutdown_start');

    const refused = await service.post('/ask', { prompt: 'too late' });
    expect(refused.status).toBe(503);
    expect(refused.body).toMatchObject({ error: 'shutting_down', retry_after_seconds: expect.any(Number) });
    expect(refused.headers.get('retry-after')).toBe(String(refused.body.retry_after_seconds));
    // The rest of the drain: no job has ended yet, so their duration is unknown.
    expect(refused.body.retry_after_seconds).toBeGreaterThan(15);
    expect(refused.body.retry_after_seconds).toBeLessThanOrEqual(30);
    expect(refused.headers.get('connection')).toBe('close');
    const health = await service.get('/health');
    const drain = { status: 'draining', drain_ends_at: expect.stringMatching(/Z$/) };
    expect(health).toMatchObject({ status: 503, body: drain });

    await writeFile(gate, '');
    const { answers } = await jobs;
    expect(answers.map(({ body }) => body.response)).toEqual(['running', 'waiting']);
    expect(await service.exited).toBe(0);
    expect(workers.filter(isAlive)).toEqual([]);
    expect(service.logs).toContainEqual(
      expect.objectContaining({ event: 'shutdown_start', signal, running: 1, queued: 1 }),
    );
    expect(service.logs).toContainEqual(expect.objectContaining({ event: 'shutdown_complete', running: 0, queued: 0 }));
  });
});

describe('The listener', () => {
  it('closes last: no client gets a refused connection while a slow process on standby ends', async () => {
    const env = { MODEL_API_STANDBY: '1', MODEL_API_KILL_GRACE_MS: '3000' };
    await using service = await startWithProgram(script('ignores-sigterm.pl'), { ...twoWorkers, ...env });
    await untilProcesses(service, { standby: 1 });
    service.process.kill('SIGTERM');
    await service.log('shutdown_start');
    await untilProcesses(service, { standby: 0, stopping: 1 });
    const refused = await service.post('/ask', { prompt: 'too late' });
    expect(refused).toMatchObject({ status: 503, body: { error: 'shutting_down' } });
    expect(await service.jobProcesses()).not.toEqual([]);
    expect(await service.exited).toBe(0);
    expect(await service.jobProcesses()).toEqual([]);
  });
});

describe('A drain that is cut short', () => {
  async function expectCut(service: Service, cut: () => void): Promise<void> {
    const workers = await service.workers();
    const jobs = twoJobs(service);
    await untilJobs(service, 1, 1);
    service.process.kill('SIGTERM');
    await service.log('shutdown_start');
    cut();
    const { answers } = await jobs;
    for (const { status, headers, body } of answers) {
      expect({ status, error: body.error }).toEqual({ status: 503, error: 'shutting_down' });
      expect(headers.get('retry-after')).toBe(String(body.retry_after_seconds));
    }
    expect(await service.exited).toBe(1);
    expect(await service.jobProcesses()).toEqual([]);
    expect(workers.filter(isAlive)).toEqual([]);
    expect(service.logs).toContainEqual(expect.objectContaining({ event: 'shutdown_timeout', running: 1, queued: 1 }));
  }

  it.each(['ignores-sigterm.pl', 'double-fork-setsid.pl'])(
    'at its time limit answers clients, ends process trees, and exits with 1: %s',
    async (program) => {
      await using service = await startWithProgram(script(program), {
        ...twoWorkers,
        MODEL_API_MAX_CONCURRENT: '1',
        MODEL_API_DRAIN_TIMEOUT_SECONDS: '1',
      });
      await expectCut(service, () => {});
    },
  );

  it('by a second signal does the same at once', async () => {
    await using service = await startWithProgram(script('ignores-sigterm.pl'), {
      ...twoWorkers,
      MODEL_API_MAX_CONCURRENT: '1',
      MODEL_API_DRAIN_TIMEOUT_SECONDS: '60',
    });
    const started = performance.now();
    await expectCut(service, () => service.process.kill('SIGINT'));
    expect(performance.now() - started).toBeLessThan(45_000); // the drain would take 60 s
  });
});

describe('An answer that is still being sent when a drain finishes', () => {
  const large = 8 * 1024 * 1024;

  /**
   * Starts an answer that the service has written and the client does not read. Resolves once the drain waits only for
   * it.
   */
  async function unread(service: Service, isReloaded = false, bytes = large): Promise<Socket> {
    const socket = connect(service.port, '127.0.0.1').pause();
    socket.on('error', () => {});
    socket.write(jsonPost('/ask', JSON.stringify({ prompt: `big ${bytes}` })));
    await once(socket, 'readable');
    await untilJobs(service, 0, 0);
    if (isReloaded) service.process.kill('SIGHUP');
    if (isReloaded) await service.log('reload_complete');
    service.process.kill('SIGTERM');
    await service.log('shutdown_start');
    return socket;
  }

  it('is sent completely, as fast as its client reads', async () => {
    await using service = await startReportingModel({ ...twoWorkers, MODEL_API_MAX_OUTPUT_BYTES: String(large) });
    const socket = await unread(service);
    await until(
      () =>
        service.get('/health').then(
          () => false,
          () => true,
        ),
      'the listener to close',
    );
    let received = 0;
    socket.on('data', (bytes) => {
      received += bytes.length;
    });
    await once(socket, 'close');
    expect(received).toBeGreaterThan(large);
    expect(await service.exited).toBe(0);
  });

  it.each([
    ['', false],
    [', also by a worker that was being replaced', true],
  ])('is abandoned if the client does not read it, and the service exits with 0%s', async (_, isReloaded) => {
    const env = { MODEL_API_MAX_OUTPUT_BYTES: String(large), MODEL_API_DRAIN_TIMEOUT_SECONDS: '1' };
    await using service = await startReportingModel({ ...twoWorkers, ...env });
    const socket = await unread(service, isReloaded);
    expect(await service.exited).toBe(0);
    socket.destroy();
    expect(service.logs).toContainEqual(expect.objectContaining({ event: 'shutdown_complete' }));
  });

  it('is cut off at the drain limit while its client reads it, and the service exits with 1', async () => {
    const huge = 4 * large;
    const env = { MODEL_API_MAX_OUTPUT_BYTES: String(huge), MODEL_API_DRAIN_TIMEOUT_SECONDS: '1' };
    await using service = await startReportingModel({ ...twoWorkers, ...env });
    const socket = await unread(service, false, huge);
    const reading = setInterval(() => socket.read(huge / 256), 50); // a fifth of the answer in two and a half seconds
    expect(await service.exited).toBe(1);
    clearInterval(reading);
    socket.destroy();
    expect(service.logs).toContainEqual(expect.objectContaining({ event: 'shutdown_timeout' }));
  });

  it('does not delay a drain if it is an unread stream: its job is cancelled, and the service exits with 0', async () => {
    const env = { MODEL_API_MAX_OUTPUT_BYTES: String(large), MODEL_API_DRAIN_TIMEOUT_SECONDS: '6' };
    await using service = await startReportingModel({ ...twoWorkers, ...env });
    const socket = connect(service.port, '127.0.0.1').pause();
    socket.on('error', () => {});
    socket.write(jsonPost('/ask', JSON.stringify({ prompt: `big ${large}`, stream: true })));
    await once(socket, 'readable');
    await untilJobs(service, 1, 0);
    const begun = performance.now();
    service.process.kill('SIGTERM');
    expect(await service.exited).toBe(0);
    expect(performance.now() - begun).toBeLessThan(6000);
    socket.destroy();
    expect(service.logs).toContainEqual(expect.objectContaining({ event: 'http_request_completed', status_code: 499 }));
  });
});
