import { closeSync, constants, openSync } from 'node:fs';
import { readFile, readlink } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { createLogSocket, createPipe } from '../../support/basics/pipe.js';
import { until } from '../../support/basics/until.js';
import { isAlive } from '../../support/processes/processes.js';
import { mainProgram, programs, type Service, spawnService } from '../../support/service/service.js';

const exitLimitMs = 10_000;

/** Sink of a service's log, which is read only on request. */
interface LogReader extends AsyncDisposable {
  readonly stdout: number | Socket;
  fill(): void | Promise<void>;
  read(): string;
  leave(): void;
}

async function openPipe(): Promise<LogReader> {
  const pipe = await createPipe();
  return { ...pipe, stdout: pipe.open('blocking') };
}

async function openSocket(): Promise<LogReader> {
  const socket = await createLogSocket();
  return { ...socket, stdout: socket.writer };
}

/** Starts a service that logs to this reader. Resolves when its workers listen. */
async function startAt(reader: LogReader): Promise<Service> {
  const service = await spawnService({ stdout: reader.stdout });
  let log = '';
  try {
    const port = await until(() => {
      log += reader.read();
      return /"service_ready".*"port":(\d+)/.exec(log)?.[1];
    }, 'the service to be ready');
    service.port = Number(port);
    await until(async () => (await service.workers()).length === 1, 'the worker to listen');
    return service;
  } catch (error) {
    await exitCodeAfter(service, 'SIGTERM');
    throw error;
  }
}

/** Returns the exit code after these signals; null if the service had to be killed. */
async function exitCodeAfter(service: Service, ...signals: NodeJS.Signals[]): Promise<number | null> {
  for (const signal of signals) service.process.kill(signal);
  const timer = setTimeout(() => service.process.kill('SIGKILL'), exitLimitMs);
  const code = await service.exited;
  clearTimeout(timer);
  return code;
}

async function request(service: Service, times: number): Promise<void> {
  for (let count = 0; count < times; count++) expect((await service.get('/version')).status).toBe(200);
}

describe.each([
  ['a pipe', openPipe],
  ['a Unix socket', openSocket],
])('A service whose log is %s without a reader', (_what, open) => {
  it('exits on a second SIGTERM', async () => {
    await using reader = await open();
    await using service = await startAt(reader);
    await reader.fill();
    await request(service, 20);
    expect([0, 1]).toContain(await exitCodeAfter(service, 'SIGTERM', 'SIGTERM'));
  });

  it('answers, also after a reload, and exits on SIGTERM', async () => {
    await using reader = await open();
    await using service = await startAt(reader);
    const old = await service.workers();
    await reader.fill();
    await request(service, 20);
    service.process.kill('SIGHUP');
    await until(() => !old.some(isAlive), 'the workers to be replaced');
    await request(service, 20);
    expect(await exitCodeAfter(service, 'SIGTERM')).toBe(0);
  });

  it('exits if its reader closes at the same moment', async () => {
    await using reader = await open();
    await using service = await startAt(reader);
    await reader.fill();
    await request(service, 20);
    const exited = exitCodeAfter(service, 'SIGTERM');
    reader.leave();
    expect(await exited).toBe(0);
  });

  it('delivers its last record to a reader that resumes in time', async () => {
    await using reader = await open();
    await using service = await startAt(reader);
    await reader.fill();
    const exited = exitCodeAfter(service, 'SIGTERM');
    let log = '';
    await until(() => {
      log += reader.read();
      return log.includes('"shutdown_complete"');
    }, 'the last record');
    expect(await exited).toBe(0);
  });
});

describe('A worker whose service logs to a Unix socket', () => {
  it('has the log at none of its standard streams, because its start and exit would let a write block', async () => {
    await using reader = await openSocket();
    await using service = await startAt(reader);
    const linkOf = (pid: number, fd: number) => readlink(`/proc/${pid}/fd/${fd}`);
    const log = await linkOf(service.pid, 1);
    for (const pid of await service.workers()) {
      const links = await Promise.all([0, 1, 2, 4].map((fd) => linkOf(pid, fd)));
      expect(links.map((link) => link === log)).toEqual([false, false, false, true]);
    }
  });
});

describe('A service that shares its log pipe with other programs', () => {
  it('does not change the flags of the pipe', async () => {
    await using reader = await openPipe();
    await using service = await startAt(reader);
    const [, flags = ''] = /flags:\s*(\d+)/.exec(await readFile(`/proc/${service.pid}/fdinfo/1`, 'utf8')) ?? [];
    expect(Number.parseInt(flags, 8) & constants.O_NONBLOCK).toBe(0);
  });
});

describe('A service whose log can only be written synchronously', () => {
  it('ends itself if nothing reads the log', async () => {
    const env = { NODE: process.execPath, PROGRAM: mainProgram, MODEL_API_PORT: 'x' };
    await using service = await spawnService({ node: 'perl', program: join(programs, 'blocked-stdout.pl'), env });
    const startedMs = performance.now();
    expect(await exitCodeAfter(service)).toBe(null);
    expect(service.process.signalCode).toBe('SIGKILL');
    expect(performance.now() - startedMs).toBeLessThan(exitLimitMs / 2);
    expect(service.stderr.join()).toContain('MODEL_API_PORT');
  });
});

describe('A service whose log is a full disk', () => {
  it('reports its fault by its exit code', async () => {
    const full = openSync('/dev/full', 'w');
    await using service = await spawnService({ env: { MODEL_API_PORT: 'x' }, stdout: full });
    expect(await service.exited).toBe(78);
    closeSync(full);
  });
});
