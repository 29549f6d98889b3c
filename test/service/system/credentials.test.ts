import { readFile } from 'node:fs/promises';
import { until } from '../../support/basics/until.js';
import { workersOf } from '../../support/processes/processes.js';
import { type Service, script, startWithProgram } from '../../support/service/service.js';

const credentials = {
  MODEL_API_KEY: 'key-of-the-service',
  MODEL_API_KEYS: 'key-under-a-mistyped-name',
  MODEL_CODE_OAUTH_TOKEN: 'token-of-the-cli',
};
const key = { 'x-api-key': credentials.MODEL_API_KEY };

/** Returns the environment of a process. During an exec, it is empty. */
async function environ(pid: number): Promise<string[]> {
  return (await until(() => readFile(`/proc/${pid}/environ`, 'utf8'), 'an environment')).split('\0');
}

/** Returns the names and values of credentials in the environments of these processes. */
async function seen(pids: readonly number[]): Promise<string[]> {
  const entries = (await Promise.all(pids.map(environ))).flat();
  const words = Object.entries(credentials).flat();
  return entries.filter((entry) => words.some((word) => entry.includes(word)));
}

/** Returns the processes of a job that never ends. */
async function jobOf(service: Service): Promise<number[]> {
  service.post('/ask', { prompt: 'hello' }, key).catch(() => {});
  return until(async () => {
    const pids = await service.jobProcesses();
    return pids.length > 0 ? pids : null;
  }, 'the job to run');
}

describe('The credentials of the service', () => {
  it('are absent from the environment of every worker, later workers included, and of every model CLI', async () => {
    await using service = await startWithProgram(script('forever.pl'), {
      ...credentials,
      MODEL_API_DRAIN_TIMEOUT_SECONDS: '0',
    });
    const workers = await workersOf(service.pid);
    expect(await seen([...workers, ...(await jobOf(service))])).toEqual([]);
    expect((await service.post('/ask', { prompt: 'hello' })).status).toBe(401);

    service.process.kill('SIGHUP');
    await service.log('reload_complete');
    // The other worker waits for its job.
    const successors = (await workersOf(service.pid)).filter((pid) => !workers.includes(pid));
    expect(successors).toHaveLength(1);
    expect(await seen(successors)).toEqual([]);
  });

  it('reach the model CLI only as its native credential, if it has a variable for that', async () => {
    await using service = await startWithProgram(script('takes-system-text.pl'), {
      ...credentials,
      MODEL_API_CLI: 'claude',
      MODEL_API_DRAIN_TIMEOUT_SECONDS: '0',
    });
    await service.log('readiness_checked'); // afterwards, no process runs the CLI for its version
    const [job] = await jobOf(service);
    expect(await seen([job as number])).toEqual([`CLAUDE_CODE_OAUTH_TOKEN=${credentials.MODEL_CODE_OAUTH_TOKEN}`]);
    expect(await seen(await workersOf(service.pid))).toEqual([]);
  });
});
