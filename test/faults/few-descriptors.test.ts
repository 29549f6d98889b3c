import { readdir, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { fixture, mainProgram, programs, type Service, startService } from '../support/service.js';
import { until } from '../support/until.js';

const jobs = 40;

/** A service that may open so few files that most of many jobs at once cannot be started. */
function startWithFew(cgroup: string): Promise<Service> {
  const env = {
    ...{ NODE: process.execPath, PROGRAM: mainProgram, DESCRIPTORS: '64' },
    ...{ MODEL_API_CLI: 'command', MODEL_API_CLI_COMMAND: fixture('upper.js'), MODEL_API_CGROUP: cgroup },
    MODEL_API_MAX_CONCURRENT: '20',
  };
  return startService({ node: '/bin/sh', program: join(programs, 'few-descriptors.sh'), env });
}

async function socketsOf(pid: number): Promise<number> {
  const fds = await readdir(`/proc/${pid}/fd`);
  const targets = await Promise.all(fds.map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => '')));
  return targets.filter((target) => target.startsWith('socket:')).length;
}

async function codesOf(service: Service, round: number): Promise<number[]> {
  const asked = Array.from({ length: jobs }, (_, index) =>
    service.post('/ask', { prompt: `hello ${round} ${index}` }).then(
      ({ status }) => status,
      () => 0, // the worker can accept no more connections for a moment
    ),
  );
  return Promise.all(asked);
}

describe.each(['auto', 'off'])('A service that has run out of file descriptors, with MODEL_API_CGROUP=%s', (cgroup) => {
  it('keeps none of a start that has failed, and does every job once the load is over', async () => {
    await using service = await startWithFew(cgroup);
    expect((await service.post('/ask', { prompt: 'hello' })).status).toBe(200);
    const before = await socketsOf(service.pid);
    const codes = [...(await codesOf(service, 1)), ...(await codesOf(service, 2)), ...(await codesOf(service, 3))];
    expect(codes.some((code) => code !== 200)).toBe(true); // else nothing was tried
    await until(async () => (await service.jobProcesses()).length === 0, 'the processes to be gone');
    await until(async () => (await socketsOf(service.pid)) <= before, `no more than ${before} sockets`);
    for (let count = 0; count < 5; count++) {
      const { status, body } = await service.post('/ask', { prompt: `alone ${count}` });
      expect([status, body.response]).toEqual([200, `ALONE ${count}`]);
    }
  });
});
