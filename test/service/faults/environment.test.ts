import { existsSync } from 'node:fs';
import { readdir, readFile, readlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { filesBelow, temporaryFolder } from '../../support/basics/folder.js';
import { describeWith } from '../../support/basics/needs.js';
import { until } from '../../support/basics/until.js';
import { workersOf } from '../../support/processes/processes.js';
import {
  mainProgram,
  programs,
  type Service,
  script,
  startService,
  startWithProgram,
} from '../../support/service/service.js';

const secrets = { MODEL_API_KEY: 'key-of-the-service-0123', MODEL_CODE_OAUTH_TOKEN: 'token-of-the-cli-0123' };
const key = { 'x-api-key': secrets.MODEL_API_KEY };

async function entriesOf(pid: number, file: 'environ' | 'cmdline'): Promise<string[]> {
  return (await readFile(`/proc/${pid}/${file}`, 'utf8')).split('\0').slice(0, -1);
}

/** Returns the target of each descriptor of a process, by number. */
async function descriptorsOf(pid: number): Promise<Record<string, string>> {
  const fds = await readdir(`/proc/${pid}/fd`);
  const targets = await Promise.all(fds.map((fd) => readlink(`/proc/${pid}/fd/${fd}`)));
  return Object.fromEntries(fds.map((fd, index) => [fd, (targets[index] ?? '').replace(/\d+/, 'n')]));
}

/**
 * Returns the one process of a job that never ends, after its exec: before it, the process is the shell that enters the
 * cgroup.
 */
async function jobOf(service: Service): Promise<number> {
  service.post('/ask', { prompt: 'hello' }, key).catch(() => {});
  return until(async () => {
    for (const pid of await service.jobProcesses()) {
      if (basename(await readlink(`/proc/${pid}/exe`)).startsWith('perl')) return pid;
    }
    return null;
  }, 'the job to run');
}

describe.each(['auto', 'off'])('A model CLI, with MODEL_API_CGROUP=%s', (cgroup) => {
  it('receives only the listed environment variables, arguments, folder and descriptors', async () => {
    await using folder = await temporaryFolder();
    await using service = await startWithProgram(`${script('forever.pl')} --word`, {
      ...secrets,
      ...{
        MODEL_API_CGROUP: cgroup,
        MODEL_API_DRAIN_TIMEOUT_SECONDS: '0',
        MODEL_API_SOCKET: join(folder.path, 'socket'),
      },
      ...{ OTHER: 'not allowed', NODE_OPTIONS: '--no-deprecation', NOTIFY_SOCKET: '/nowhere', LISTEN_FDS: '0' },
      ...{ LANG: 'C.UTF-8', MODEL_API_CLI_ENV: 'FURTHER', FURTHER: 'allowed' },
    });
    const pid = await jobOf(service);
    const cwd = await readlink(`/proc/${pid}/cwd`);
    const own = (await readdir(service.home)).find((name) => name.startsWith('prompt-relay-')) ?? '';
    expect(cwd).toMatch(new RegExp(`^${service.home}/[0-9a-f]{16}/\\d+$`));
    expect(await readdir(cwd)).toEqual([]);
    const environ = await entriesOf(pid, 'environ');
    expect(environ.toSorted()).toEqual([
      'FURTHER=allowed',
      `HOME=${service.home}`,
      'LANG=C.UTF-8',
      `PATH=${process.env.PATH}`,
      expect.stringMatching(new RegExp(`^PROMPT_RELAY_JOB=${service.pid}\\.\\d+\\.\\d+:\\d+$`)),
      `TMPDIR=${join(service.home, own, basename(cwd))}`,
    ]);
    expect((await entriesOf(pid, 'cmdline')).slice(-2)).toEqual([join(programs, 'forever.pl'), '--word']);
    expect(await descriptorsOf(pid)).toEqual({ '0': 'socket:[n]', '1': 'socket:[n]', '2': 'socket:[n]' });
  });
});

describe('The processes of the service', () => {
  it('show no key and no token in /proc, from the first job on and after a worker is replaced', async () => {
    await using service = await startWithProgram(script('forever.pl'), {
      ...secrets,
      MODEL_API_DRAIN_TIMEOUT_SECONDS: '0',
    });
    const seen = async () => {
      const pids = [service.pid, ...(await workersOf(service.pid))];
      const texts = (
        await Promise.all(pids.flatMap((pid) => [entriesOf(pid, 'environ'), entriesOf(pid, 'cmdline')]))
      ).flat();
      return texts.filter((text) => /MODEL_|of-the-service|of-the-cli/.test(text));
    };
    expect(await seen()).toEqual([]);
    await jobOf(service);
    service.process.kill('SIGHUP');
    await service.log('reload_complete');
    expect(await seen()).toEqual([]);
    expect(service.logs.filter(({ warning }) => String(warning).includes('environment of this process'))).toEqual([]);
    expect((await service.post('/ask', { prompt: 'hello' })).status).toBe(401); // the service still has the key
  });

  it('do not open a debugger on SIGUSR1', async () => {
    await using service = await startService();
    for (const pid of [service.pid, ...(await service.workers())]) process.kill(pid, 'SIGUSR1');
    for (let count = 0; count < 10; count++) expect((await service.post('/ask', { prompt: 'hi' })).status).toBe(200);
    expect(service.stderr.join('\n')).not.toContain('Debugger');
    expect(await service.stop()).toBe(0);
    expect(service.stderr).toEqual([]);
  });
});

describeWith('/usr/bin/strace')('A prompt', () => {
  /** Starts a service under a trace of every execve, with all arguments and environments. */
  async function startTraced(trace: string): Promise<Service> {
    const env = { NODE: process.execPath, PROGRAM: mainProgram, TRACE: trace, MODEL_API_CLI: 'command' };
    const command = { MODEL_API_CLI_COMMAND: `perl -0777 -ne 'sleep 60 if /hang/; print uc'`, MODEL_API_CGROUP: 'off' };
    return startService({ node: '/bin/sh', program: join(programs, 'traced.sh'), env: { ...env, ...command } });
  }

  it('is in no execve, no log record, no metric and no file, whether its job succeeds or is cut off', async () => {
    await using folder = await temporaryFolder();
    const trace = join(folder.path, 'trace');
    const secret = `canary${Math.random().toString(36).slice(2)}`;
    const service = await startTraced(trace);
    try {
      const { status, body } = await service.post('/ask', { prompt: `say ${secret}`, system: `be ${secret}` });
      expect([status, body.response]).toEqual([200, expect.stringContaining(secret.toUpperCase())]);
      const controller = new AbortController();
      const cut = service.post('/ask', { prompt: `hang ${secret}` }, {}, controller.signal).catch(() => null);
      await until(async () => (await service.jobProcesses()).length > 0, 'the job to run');
      controller.abort();
      await cut;
      await until(async () => (await service.jobProcesses()).length === 0, 'the job to be gone');
      expect((await service.get('/metrics')).text).not.toContain(secret);
      for (const file of await filesBelow(service.home)) {
        expect(await readFile(file, 'utf8').catch(() => '')).not.toContain(secret);
      }
    } finally {
      await service.stop();
    }
    expect(JSON.stringify([service.logs, service.stderr])).not.toContain(secret);
    const traced = await readFile(trace, 'utf8');
    expect(traced).toContain('-0777'); // the trace contains the programs of jobs
    expect(traced.toLowerCase()).not.toContain(secret);
    expect(existsSync(join(service.home, 'core'))).toBe(false);
  });
});
