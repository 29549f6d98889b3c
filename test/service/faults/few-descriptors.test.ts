import { readdir, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { type AnswerGate, createAnswerGate } from '../../support/agents/answer-gate.js';
import { until } from '../../support/basics/until.js';
import { untilJobs } from '../../support/jobs/jobs.js';
import { mainProgram, programs, type Service, startService } from '../../support/service/service.js';

/** Number of slots. Each running program uses three sockets of the primary, so that not all slots can be filled. */
const slots = 20;
const descriptors = 64;
const jobs = 24;

/** Starts a service with so few descriptors that most slots stay empty while its programs wait for the gate. */
function startWithFew(cgroup: string, gate: AnswerGate): Promise<Service> {
  const env = {
    ...{ NODE: process.execPath, PROGRAM: mainProgram, DESCRIPTORS: String(descriptors) },
    ...{ MODEL_API_CLI: 'command', MODEL_API_CLI_COMMAND: gate.command, MODEL_API_CGROUP: cgroup },
    MODEL_API_MAX_CONCURRENT: String(slots),
  };
  return startService({ node: '/bin/sh', program: join(programs, 'few-descriptors.sh'), env });
}

async function socketsOf(pid: number): Promise<number> {
  const fds = await readdir(`/proc/${pid}/fd`);
  const targets = await Promise.all(fds.map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => '')));
  return targets.filter((target) => target.startsWith('socket:')).length;
}

/** Starts jobs until one cannot be started, then opens the gate. Resolves with the outcome of each job. */
async function exhaust(service: Service, gate: AnswerGate): Promise<unknown[]> {
  await gate.close();
  const ends: unknown[] = [];
  const asked = Array.from({ length: jobs }, async (_, index) => {
    const { status, body } = await service.post('/ask', { prompt: `hello ${index}` });
    ends.push(status === 200 ? 'ok' : body.error);
  });
  await until(() => ends.includes('spawn_error'), 'a job that can not be started');
  await gate.open();
  await Promise.all(asked);
  return ends;
}

describe.each(['auto', 'off'])('A service that has run out of file descriptors, with MODEL_API_CGROUP=%s', (cgroup) => {
  it('leaks none after a failed start, and runs every job once the load is over', async () => {
    await using gate = await createAnswerGate();
    await gate.open();
    await using service = await startWithFew(cgroup, gate);
    expect((await service.post('/ask', { prompt: 'hello' })).status).toBe(200);
    const before = await socketsOf(service.pid);
    for (let round = 0; round < 3; round++) {
      const ends = await exhaust(service, gate);
      expect(new Set(ends)).toEqual(new Set(['ok', 'spawn_error']));
      await untilJobs(service, 0, 0);
    }
    await until(async () => (await service.jobProcesses()).length === 0, 'the processes to be gone');
    await until(async () => (await socketsOf(service.pid)) <= before, `no more than ${before} sockets`);
    for (let count = 0; count < 5; count++) {
      const { status, body } = await service.post('/ask', { prompt: `alone ${count}` });
      expect([status, body.response]).toEqual([200, `alone ${count}`]);
    }
  });
});
