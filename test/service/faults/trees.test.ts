import { existsSync } from 'node:fs';
import { rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findProgram } from '../../../src/primary/cli/process/program.js';
import { temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import { metric } from '../../support/documents/exposition.js';
import { recovers, runtimeOf, untilJobs, untilTreeGone } from '../../support/jobs/jobs.js';
import { Children } from '../../support/processes/children.js';
import { isAlive } from '../../support/processes/processes.js';
import { namedProgram, programs, type Service, script, startWithProgram } from '../../support/service/service.js';

const limitMs = 1000;
const toleranceMs = 500;

/** Time until the slot of an answered job is free again, on a busy host. */
const slotFreeMs = 15_000;

const storm = 'fork-storm.pl';
/** Time limit for ending a storm of processes, which competes with the service for the processors. */
const stormGoneMs = 15_000;

/** Programs that never answer, and the number of processes that each starts. */
const endless: readonly [program: string, processes: number][] = [
  ['forever.pl', 1],
  ['forks-child.pl', 2],
  ['forks-grandchild.pl', 3],
  ['setsid-child.pl', 2],
  ['double-fork.pl', 2],
  ['double-fork-setsid.pl', 2],
  ['ignores-sigterm.pl', 2],
  [storm, 50],
];

/** Programs that answer, and leave processes behind. */
const leaving = ['leaves-children.pl', 'holds-stdout.pl'];

let service: Service;
async function startNamed(env: Readonly<Record<string, string>>): Promise<void> {
  service = await startWithProgram(namedProgram, {
    MODEL_API_MAX_CONCURRENT: '1',
    MODEL_API_DEFAULT_MODEL: 'upper.js',
    ...env,
  });
}
async function stopNamed(): Promise<void> {
  await recovers(service);
  await service.stop();
}

describe('A model CLI that never answers', () => {
  beforeAll(() => startNamed({ MODEL_API_TIMEOUT: String(limitMs / 1000) }));
  afterAll(stopNamed);

  it.each(endless)('is ended at the time limit with all its processes: %s', async (program, processes) => {
    const model = program;
    const startedMs = performance.now();
    const answer = service.post('/ask', { prompt: 'first', model });
    await until(async () => (await service.jobProcesses()).length >= processes, `${processes} processes`);
    const { status, body } = await answer;
    const tookMs = performance.now() - startedMs;

    expect({ status, error: body.error }).toEqual({ status: 504, error: 'timeout' });
    expect(tookMs).toBeGreaterThan(limitMs - toleranceMs);
    expect(tookMs).toBeLessThan(limitMs + 5 * toleranceMs); // on a busy machine
    await untilTreeGone(service, program === storm ? stormGoneMs : undefined);
    const next = await service.post('/ask', { prompt: 'second', model });
    expect(next.body).toMatchObject({
      error: 'timeout',
      message: `the model took longer than ${limitMs} ms (MODEL_API_TIMEOUT)`,
    });
    await untilTreeGone(service, program === storm ? stormGoneMs : undefined);
  });

  it('occupies its slot until its last process is gone', async () => {
    await using service = await startWithProgram(script('ignores-sigterm.pl'), { MODEL_API_TIMEOUT: '0.5' });
    const { status } = await service.post('/ask', { prompt: 'hello' });
    expect(status).toBe(504);
    const seen: { taken: number; left: number }[] = [];
    await until(async () => {
      const { active_requests: taken } = await runtimeOf(service); // slot first: the processes only become fewer
      seen.push({ taken, left: (await service.jobProcesses()).length });
      return taken === 0;
    }, 'the slot to be free');
    expect(seen.at(0)).toEqual({ taken: 1, left: 2 });
    expect(seen.at(-1)).toEqual({ taken: 0, left: 0 });
    for (const signal of ['SIGTERM', 'SIGKILL']) {
      expect(await metric(service, `cli_kills_total{signal="${signal}",reason="timeout"}`)).toBe(1);
    }
    expect(await metric(service, 'cli_exits_total{class="signal"}')).toBe(1);
  });
});

describe.each(['auto', 'off'])('A process whose main thread has exited, with MODEL_API_CGROUP=%s', (cgroup) => {
  it('is ended at the time limit, and its slot becomes free', async () => {
    await using service = await startWithProgram(script('leader-exits.pl'), {
      MODEL_API_CGROUP: cgroup,
      MODEL_API_TIMEOUT: String(limitMs / 1000),
    });
    const answer = service.post('/ask', { prompt: 'hello' });
    await until(async () => (await service.jobProcesses()).some(isZombie), 'its main thread to exit');
    expect((await answer).body).toMatchObject({ error: 'timeout' });
    await recovers(service);
    expect(await metric(service, 'cli_kills_total{signal="SIGKILL",reason="timeout"}')).toBe(1);
  });

  it('does not delay a job if it is unrelated', async () => {
    await using strangers = new Children();
    const stranger = await strangers.start({}, join(programs, 'leader-exits.pl'));
    await until(() => isZombie(stranger), 'its main thread to exit');
    await using service = await startWithProgram(script('leaves-children.pl'), { MODEL_API_CGROUP: cgroup });
    expect((await service.post('/ask', { prompt: 'hello' })).status).toBe(200);
    await untilJobs(service, 0, 0, slotFreeMs);
    expect(isZombie(stranger)).toBe(true);
  });
});

/** Whether its main thread has exited. While the process is listed at all, the kernel has not reaped it. */
function isZombie(pid: number): boolean {
  return !isAlive(pid) && existsSync(`/proc/${pid}`);
}

describe('A model CLI that answers and leaves processes behind', () => {
  beforeAll(() => startNamed({}));
  afterAll(stopNamed);

  it.each(leaving)('completes its job, and they are ended: %s', async (program) => {
    for (const prompt of ['first', 'second']) {
      const { status, body } = await service.post('/ask', { prompt, model: program });
      expect(status).toBe(200);
      expect(body.response).toBe(`done: ${prompt}`);
      await recovers(service);
    }
  });
});

describe('A model CLI that must be killed while ps fails', () => {
  async function pathOf(program: string): Promise<string> {
    const found = await findProgram(program, process.env.PATH ?? '');
    if (found.kind !== 'found') throw new Error(`no ${program} on PATH`);
    return found.path;
  }

  it.each([
    ['for the program itself', ''],
    ['for a child of it', 'exec ps "$@"'],
  ])('is ended with all its processes, and the service survives: %s', async (_, lastWord) => {
    await using folder = await temporaryFolder();
    const ps = join(folder.path, 'ps');
    await symlink(await pathOf('setpriv'), join(folder.path, 'setpriv'));
    await writeFile(ps, `#!/bin/sh\nPATH='${process.env.PATH}'\nrm "$0"\n${lastWord}\n`, { mode: 0o755 });
    await using service = await startWithProgram(script('ignores-sigterm.pl'), {
      PATH: folder.path,
      MODEL_API_TIMEOUT: '0.5',
    });
    if (lastWord === '') await rm(ps); // the service found it at its start
    const { body } = await service.post('/ask', { prompt: 'hello' });
    expect(body).toMatchObject({ error: 'timeout' });
    await recovers(service);
    await until(async () => (await stat(ps).catch(() => null)) === null, 'ps to have been asked');
    expect(service.logs.filter(({ level }) => level === 'error')).toEqual([]);
  });
});
