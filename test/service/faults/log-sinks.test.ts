import { closeSync, openSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { freePort } from '../../support/basics/free-port.js';
import { createLogSocket, createPipe } from '../../support/basics/pipe.js';
import { mountTinyDisk } from '../../support/basics/tiny-disk.js';
import { until } from '../../support/basics/until.js';
import { metric } from '../../support/documents/exposition.js';
import { recovers } from '../../support/jobs/jobs.js';
import { type Service, spawnService } from '../../support/service/service.js';

/** Starts a service whose log is not read. */
async function startWithLog(stdout: number | Socket): Promise<Service> {
  const port = await freePort();
  const service = await spawnService({ env: { MODEL_API_PORT: String(port) }, stdout });
  service.port = port;
  await until(async () => (await service.workers().catch(() => [])).length === 1, 'the worker to listen');
  return service;
}

const lost = (service: Service) => metric(service, 'log_write_errors_total');

/** Expects the service to answer, to count the records that it could not log, and to exit in order. */
async function expectServed(service: Service): Promise<void> {
  const before = await lost(service);
  for (let count = 0; count < 20; count++) {
    expect((await service.post('/ask', { prompt: 'hello' })).status).toBe(200);
  }
  await until(async () => (await lost(service)) > before, 'lost records to be counted');
  await recovers(service);
  expect(service.stderr).toEqual([]);
}

describe('A service whose log cannot be written', () => {
  it('still answers, counts the lost records, and exits with 0: a full device', async () => {
    const full = openSync('/dev/full', 'w');
    await using service = await startWithLog(full);
    closeSync(full);
    await expectServed(service);
    expect(await service.stop()).toBe(0);
  });

  it('still answers, counts the lost records, and exits with 0: a pipe whose reader has closed it', async () => {
    await using pipe = await createPipe();
    await using service = await startWithLog(pipe.open('blocking'));
    pipe.leave();
    await expectServed(service);
    expect(await service.stop()).toBe(0);
  });

  it('still answers, counts the lost records, and exits with 0: a socket whose reader has closed it', async () => {
    await using socket = await createLogSocket();
    await using service = await startWithLog(socket.writer);
    socket.leave();
    await expectServed(service);
    expect(await service.stop()).toBe(0);
  });

  it('still answers, drops excess records, and logs again once its reader resumes: a full pipe', async () => {
    await using pipe = await createPipe();
    await using service = await startWithLog(pipe.open('blocking'));
    pipe.fill();
    for (let count = 0; count < 50; count++) expect((await service.get('/version')).status).toBe(200);
    pipe.read();
    const headers = { 'x-request-id': 'after-the-jam' };
    await service.get('/version', headers);
    let log = '';
    await until(() => {
      log += pipe.read();
      return log.includes('after-the-jam');
    }, 'the log to go on');
    expect(await service.stop()).toBe(0);
  });
});

const isRoot = process.getuid?.() === 0;

(isRoot ? describe : describe.skip)('A service that logs to a file on a full disk', () => {
  it('still answers, counts the lost records, and logs again once there is space', async () => {
    await using disk = await mountTinyDisk();
    const path = join(disk.path, 'log');
    const file = openSync(path, 'a');
    await using service = await startWithLog(file);
    closeSync(file);
    await disk.fill();
    for (let count = 0; count < 30; count++) await service.get('/version'); // fills the rest of the last page
    await expectServed(service);
    await disk.empty();
    await service.get('/version', { 'x-request-id': 'after-the-flood' });
    await until(async () => (await readFile(path, 'utf8')).includes('after-the-flood'), 'the log to go on');
    expect(await service.stop()).toBe(0);
  });
});
