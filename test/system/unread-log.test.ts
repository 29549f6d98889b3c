import { closeSync, openSync } from 'node:fs';
import { createPipe, type Pipe } from '../support/pipe.js';
import { isAlive } from '../support/processes.js';
import { type Service, spawnService } from '../support/service.js';
import { until } from '../support/until.js';

const endLimitMs = 10_000;

/** A service that logs to this pipe, once it listens. */
async function startAt(pipe: Pipe): Promise<Service> {
  const service = await spawnService({ stdout: pipe.open('blocking') });
  let log = '';
  try {
    const port = await until(() => {
      log += pipe.read();
      return /"service_ready".*"port":(\d+)/.exec(log)?.[1];
    }, 'the service to be ready');
    service.port = Number(port);
    await until(async () => (await service.workers()).length === 2, 'all workers to listen');
    return service;
  } catch (error) {
    await endOf(service);
    throw error;
  }
}

/** The exit code after a SIGTERM; null where it had to be killed. */
async function endOf(service: Service): Promise<number | null> {
  service.process.kill('SIGTERM');
  const timer = setTimeout(() => service.process.kill('SIGKILL'), endLimitMs);
  const code = await service.exited;
  clearTimeout(timer);
  return code;
}

async function request(service: Service, times: number): Promise<void> {
  for (let count = 0; count < times; count++) expect((await service.get('/version')).status).toBe(200);
}

describe('A service whose log nobody reads', () => {
  it('answers, and ends at SIGTERM', async () => {
    await using pipe = await createPipe();
    await using service = await startAt(pipe);
    pipe.fill();
    await request(service, 20);
    expect(await endOf(service)).toBe(0);
  });

  it('ends at SIGTERM after a reload too', async () => {
    await using pipe = await createPipe();
    await using service = await startAt(pipe);
    const old = await service.workers();
    service.process.kill('SIGHUP');
    await until(() => !old.some(isAlive), 'the workers to be replaced');
    pipe.fill();
    await request(service, 20);
    expect(await endOf(service)).toBe(0);
  });

  it('ends when its reader goes at the same moment', async () => {
    await using pipe = await createPipe();
    await using service = await startAt(pipe);
    pipe.fill();
    await request(service, 20);
    const ended = endOf(service);
    pipe.leave();
    expect(await ended).toBe(0);
  });

  it('is heard to the end by a reader that comes back in time', async () => {
    await using pipe = await createPipe();
    await using service = await startAt(pipe);
    pipe.fill();
    const ended = endOf(service);
    let log = '';
    await until(() => {
      log += pipe.read();
      return log.includes('"shutdown_complete"');
    }, 'the last record');
    expect(await ended).toBe(0);
  });

  it('says by its exit code what was wrong, though the disk under its log is full', async () => {
    const full = openSync('/dev/full', 'w');
    await using service = await spawnService({ env: { MODEL_API_PORT: 'x' }, stdout: full });
    expect(await service.exited).toBe(78);
    closeSync(full);
  });
});
