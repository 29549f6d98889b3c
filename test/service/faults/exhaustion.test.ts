import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { describeWith } from '../../support/basics/needs.js';
import { mountTinyDisk } from '../../support/basics/tiny-disk.js';
import { until } from '../../support/basics/until.js';
import { exchange, RawConnection, request } from '../../support/clients/raw-http.js';
import { type Aftermath, aftermathOf, untilHealthy } from '../../support/jobs/aftermath.js';
import { recovers, untilJobs, untilTreeGone } from '../../support/jobs/jobs.js';
import { mainProgram, type Service, script, startService, startWithProgram } from '../../support/service/service.js';

const strace = '/usr/bin/strace';
const run = promisify(execFile);

/** Makes these system calls of the process and its threads fail with this error until the end of the scope. */
async function failing(pid: number, calls: string, error: string): Promise<AsyncDisposable> {
  const filters = ['-e', `trace=${calls}`, '-e', `inject=${calls}:error=${error}`];
  const child = spawn(strace, ['-f', '-p', String(pid), '-o', '/dev/null', ...filters], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const exited = once(child, 'exit');
  let said = '';
  for await (const piece of child.stderr.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
    said += piece;
    if (said.includes('attached')) break;
  }
  if (!said.includes('attached')) throw new Error(`strace can not attach: ${said}`);
  child.stderr.resume();
  const stop = async () => {
    child.kill('SIGINT');
    await exited;
  };
  return { [Symbol.asyncDispose]: stop };
}

/** Prevents the process from opening another file until the end of the scope. */
async function withoutDescriptors(pid: number): Promise<AsyncDisposable> {
  const used = new Set((await readdir(`/proc/${pid}/fd`)).map(Number));
  let free = 0;
  while (used.has(free)) free++;
  return limited(pid, 'nofile', 'Max open files', free);
}

/**
 * Prevents the user of the process from starting processes and threads until the end of the scope. Root has no such
 * limit.
 */
function withoutProcesses(pid: number, user: number): Promise<AsyncDisposable> {
  return limited(pid, 'nproc', 'Max processes', 1, ['setpriv', `--reuid=${user}`, `--regid=${user}`, '--clear-groups']);
}

/** Sets a limit of a process. `as`: only root with every capability, or the process's user, may do this. */
async function limited(pid: number, limit: string, name: string, value: number, as: readonly string[] = []) {
  const limits = await readFile(`/proc/${pid}/limits`, 'utf8');
  const before = new RegExp(`^${name}\\s+(\\S+)`, 'm').exec(limits)?.[1];
  if (before === undefined) throw new Error(`the process has no limit ${name}`);
  const set = async (soft: string) => {
    const [program = '', ...args] = [...as, 'prlimit', '--pid', String(pid), `--${limit}=${soft}:`];
    await run(program, args);
  };
  await set(String(value));
  return { [Symbol.asyncDispose]: () => set(before) };
}

const spawning = 'clone,clone3,fork,vfork';

function notStarted(program: string, error: string): Aftermath {
  const message = `the model CLI ${program} could not be started: ${error}`;
  const counted = { 'ask spawn_error': 1, 'exit spawn_error': 1 };
  return { status: 500, error: 'spawn_error', message, outcome: 'spawn_error', counted };
}

/** Result of a failure before anything was started. */
function notPrepared(error: string): Aftermath {
  return { ...notStarted('cat', error), counted: { 'ask spawn_error': 1 } };
}

const answered: Aftermath = { status: 200, response: 'a', outcome: 'ok', counted: { 'ask ok': 1, 'exit ok': 1 } };

describeWith(strace)('A system call that fails in the primary', () => {
  describe.each(['auto', 'off'])('(MODEL_API_CGROUP=%s)', (cgroup) => {
    let service: Service;
    beforeAll(async () => {
      service = await startWithProgram('cat', { MODEL_API_CGROUP: cgroup, MODEL_API_MAX_CONCURRENT: '1' });
    });
    afterAll(() => service.stop());

    it.each<[string, string, Aftermath]>([
      [spawning, 'EAGAIN', notStarted('cat', 'EAGAIN')],
      [spawning, 'ENOMEM', notStarted('cat', 'ENOMEM')],
      ['execve', 'ENOMEM', notStarted('cat', 'ENOMEM')],
      ['execve', 'EACCES', notStarted('cat', 'EACCES')],
      ['execve', 'ETXTBSY', notStarted('cat', 'ETXTBSY')],
      ['socketpair', 'EMFILE', notStarted('cat', 'EMFILE')],
      ['socketpair', 'ENOBUFS', notStarted('cat', 'ENOBUFS')],
      ['pipe2', 'ENFILE', notStarted('cat', 'ENFILE')],
      ['mkdir,mkdirat', 'ENOSPC', notPrepared('ENOSPC')],
      ['mkdir,mkdirat', 'EDQUOT', notPrepared('Unknown system error -122')], // Node has no name for it
      ['mkdir,mkdirat', 'EROFS', notPrepared('EROFS')],
      ['mkdir,mkdirat', 'ENOMEM', notPrepared('ENOMEM')],
      ['rmdir,unlink,unlinkat', 'EIO', answered],
    ])('fails the jobs of that time, and no others: %s %s', async (calls, error, expected) => {
      {
        await using _fault = await failing(service.pid, calls, error);
        expect(await aftermathOf(service, { prompt: 'a' })).toEqual(expected);
      }
      expect(await aftermathOf(service, { prompt: 'a' })).toEqual(answered);
      await untilHealthy(service);
    });
  });

  describe.each(['auto', 'off'])('that ends a job (MODEL_API_CGROUP=%s)', (cgroup) => {
    let service: Service;
    beforeAll(async () => {
      const limits = { MODEL_API_TIMEOUT: '1', MODEL_API_KILL_GRACE_MS: '100', MODEL_API_MAX_CONCURRENT: '1' };
      service = await startWithProgram(script('setsid-child.pl'), { ...limits, MODEL_API_CGROUP: cgroup });
    });
    afterAll(() => service.stop());

    it.each([
      ['openat', 'EMFILE'], // first, while the service has not yet loaded what ends a job
      ['kill', 'EPERM'],
      ['openat', 'ENOMEM'],
      [spawning, 'EAGAIN'],
      ['rmdir,unlink,unlinkat', 'EROFS'],
    ])('neither prolongs it nor blocks a slot for good: %s %s', async (calls, error) => {
      const answer = service.post('/ask', { prompt: 'a' });
      await until(async () => (await service.jobProcesses()).length === 2, 'the tree');
      {
        await using _fault = await failing(service.pid, calls, error);
        expect(await answer).toMatchObject({ status: 504, body: { error: 'timeout' } });
        expect((await service.get('/health')).status).toBe(200);
      }
      await untilTreeGone(service, 15_000);
      await untilJobs(service, 0, 0);
    });
  });
});

describe('A service that has run out of descriptors', () => {
  it('closes new connections at once, serves the open ones, and recovers afterwards: in a worker', async () => {
    await using service = await startService();
    const [worker] = (await service.workers()) as [number];
    using kept = await RawConnection.open(service.port);
    kept.send(request('GET /version'));
    await kept.answer();
    {
      await using _fault = await withoutDescriptors(worker);
      const attempts = Array.from({ length: 10 }, async () => {
        using connection = await RawConnection.open(service.port);
        connection.send(request('GET /version'));
        await connection.closed();
        return connection.hasMore;
      });
      expect(await Promise.all(attempts)).toEqual(attempts.map(() => false));
      kept.send(request('GET /health'));
      expect((await kept.answer()).status).toBe(200);
    }
    expect((await exchange(service.port, request('GET /version'))).status).toBe(200);
    expect(await service.workers()).toEqual([worker]);
  });

  it('cannot start a program until descriptors are free: in the primary', async () => {
    await using service = await startWithProgram('cat');
    {
      await using _fault = await withoutDescriptors(service.pid);
      for (let count = 0; count < 5; count++) {
        expect(await aftermathOf(service, { prompt: 'a' })).toMatchObject({ status: 500, error: 'spawn_error' });
      }
    }
    expect(await aftermathOf(service, { prompt: 'a' })).toEqual(answered);
  });
});

/** A user without other processes, which would count, too. */
const user = 61_000 + (process.pid % 4000);
const canChangeUser = spawnSync('test', ['-r', mainProgram], { uid: user, gid: user }).status === 0;

(canChangeUser ? describe : describe.skip)('A user who has reached the process limit', () => {
  it('gets spawn_error for jobs, a new worker as soon as possible, and running jobs can be ended', async () => {
    await using service = await startWithProgram(
      `sh -c 'read word; test "$word" = wait && exec sleep 60; echo "$word"'`,
      { MODEL_API_MAX_CONCURRENT: '2' },
      { user },
    );
    const leaving = new AbortController();
    const running = service.post('/ask', { prompt: 'wait\n' }, {}, leaving.signal).catch(() => 'left');
    await untilJobs(service, 1, 0);
    const [worker] = (await service.workers()) as [number];
    {
      await using _fault = await withoutProcesses(service.pid, user);
      expect((await service.post('/ask', { prompt: 'a\n' })).body).toMatchObject({
        error: 'spawn_error',
        message: 'the model CLI sh could not be started: EAGAIN',
      });
      leaving.abort();
      await running;
      await untilTreeGone(service);
      await untilJobs(service, 0, 0);
      process.kill(worker, 'SIGKILL');
      await service.log('worker_start_failed');
    }
    await until(async () => (await service.workers().catch(() => [])).length === 1, 'a new worker');
    expect((await service.post('/ask', { prompt: 'a\n' })).body).toMatchObject({ response: 'a' });
    await recovers(service);
  });
});

const isRoot = process.getuid?.() === 0;

(isRoot ? describe : describe.skip)('A disk without space for the folder of a job', () => {
  it.each([
    ['a command', { MODEL_API_CLI: 'command', MODEL_API_CLI_COMMAND: 'cat' }],
    ['the demo model', { MODEL_API_CLI: 'demo' }],
  ])('fails the jobs of that time, and no others: %s', async (_what, cli) => {
    await using disk = await mountTinyDisk();
    await using service = await startService({ env: { ...cli, TMPDIR: disk.path } });
    await service.log('readiness_checked');
    await disk.fill();
    for (const prompt of ['a', 'b']) {
      const { status, body } = await service.post('/ask', { prompt });
      expect([status, body.error]).toEqual([500, 'spawn_error']);
      expect(body.message).toMatch(/could not be started: ENOSPC$/);
      await recovers(service);
    }
    await disk.empty();
    const answers = await Promise.all(['a', 'b'].map((prompt) => service.post('/ask', { prompt })));
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    await untilHealthy(service);
  });
});

describe('A model CLI that runs out of memory', () => {
  it('fails its job only', async () => {
    const greedy = `prlimit --as=200000000 perl -e 'my $all = "x" x 1e9; print length $all'`;
    await using service = await startWithProgram(greedy);
    const { error, reason, outcome } = await aftermathOf(service, { prompt: 'a' });
    expect([error, reason, outcome]).toEqual(['cli_error', 'crashed', 'cli_error']);
  });
});
