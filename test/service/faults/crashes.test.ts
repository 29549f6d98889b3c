import { copyFile, readFile, rename, writeFile } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import { recovers, untilJobs, untilTreeGone } from '../../support/jobs/jobs.js';
import { isAlive, programsOf } from '../../support/processes/processes.js';
import { scratchCgroup } from '../../support/processes/scratch-cgroup.js';
import {
  type Service,
  script,
  startService,
  startWithProgram,
  startWithPrograms,
  twoWorkers,
} from '../../support/service/service.js';

interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

/** Connection that stays open, and is therefore served by one worker. */
class Wire implements Disposable {
  readonly #service: Service;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });

  constructor(service: Service) {
    this.#service = service;
  }

  ask(prompt: string): Promise<Answer> {
    return this.#send('POST', '/ask', { prompt });
  }

  /** Returns the pid of the worker that serves the connection, by the log. */
  async worker(): Promise<number> {
    const requestId = crypto.randomUUID();
    await this.#send('GET', '/health', undefined, { 'x-request-id': requestId });
    const { pid } = await this.#service.log('http_request_completed', (record) => record.request_id === requestId);
    return pid as number;
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }

  #send(method: string, path: string, body?: object, headers: Record<string, string> = {}): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const options = { method, agent: this.#agent, headers: { 'content-type': 'application/json', ...headers } };
      const sent = request(this.#service.url + path, options, (response) => {
        const answer = (parsed: unknown) => ({ status: response.statusCode ?? 0, body: parsed as Answer['body'] });
        json(response).then((parsed) => resolve(answer(parsed)), reject);
      });
      sent.once('error', reject);
      sent.end(body && JSON.stringify(body));
    });
  }
}

/** Opens connections until the worker serves this many. */
async function wiresTo(service: Service, worker: number, count: number): Promise<Wire[]> {
  const wires: Wire[] = [];
  for (let tries = 0; wires.length < count && tries < 20 * count; tries++) {
    const wire = new Wire(service);
    if ((await wire.worker()) === worker) wires.push(wire);
    else wire[Symbol.dispose]();
  }
  return wires;
}

/** Five times the documented second, for a busy machine. */
const goneMs = 5000;
/** Time for a replacement: a second on an idle machine, but other tests run too. */
const replacedMs = 15_000;

async function startTurns(folder: string) {
  const [order, gate] = [join(folder, 'order'), join(folder, 'gate')];
  const service = await startWithProgram(script('takes-turns.pl', order, gate), {
    ...twoWorkers,
    MODEL_API_MAX_CONCURRENT: '2',
    TMPDIR: folder,
  });
  return { service, open: () => writeFile(gate, ''), order: async () => (await readFile(order, 'utf8')).split('\n') };
}

/** Resolves with the outcome of a request whose connection may break. */
function fate(answer: Promise<{ readonly status: number }>): Promise<number | 'broken'> {
  return answer.then(
    ({ status }) => status,
    () => 'broken',
  );
}

function startFailures(service: Service): number {
  return service.logs.filter(({ event }) => event === 'worker_start_failed').length;
}

async function untilReplaced(service: Service, worker: number, withinMs: number): Promise<void> {
  const others = async () => (await service.workers().catch(() => [])).filter((pid) => pid !== worker);
  await until(async () => (await others()).length === 2, 'a new worker to listen', withinMs);
}

describe('A worker that is killed', () => {
  it('ends its jobs, running and queued, and no others, and a new worker replaces it', async () => {
    await using folder = await temporaryFolder();
    const { service, open, order } = await startTurns(folder.path);
    await using _running = service;
    const [doomed, sound] = (await service.workers()) as [number, number];
    const [first, third] = await wiresTo(service, doomed, 2);
    const [second, fourth] = await wiresTo(service, sound, 2);
    const fates: Promise<number | 'broken'>[] = [];
    for (const [index, wire] of [first, second, third, fourth].entries()) {
      if (wire === undefined) throw new Error('no connection to that worker');
      fates.push(fate(wire.ask(`job ${index + 1}`)));
      await untilJobs(service, Math.min(index + 1, 2), Math.max(index - 1, 0));
    }

    process.kill(doomed, 'SIGKILL');
    await Promise.all([untilJobs(service, 2, 0, goneMs), untilReplaced(service, doomed, replacedMs)]);
    await until(async () => (await service.jobProcesses()).length === 2, 'the two other programs', goneMs);
    const [fresh] = await wiresTo(service, (await service.workers()).find((pid) => pid !== sound) as number, 1);
    expect(fresh).toBeDefined();

    await open();
    expect(await Promise.all(fates)).toEqual(['broken', 200, 'broken', 200]);
    expect((await order()).toSorted()).toEqual(['', 'job 1', 'job 2', 'job 4']); // the first two start together
    for (const wire of [second, fourth, fresh]) wire?.[Symbol.dispose]();
    await recovers(service);
  });
});

describe('A worker that hangs', () => {
  it('is killed and replaced after ten seconds, and its jobs are cancelled', async () => {
    await using service = await startWithProgram(script('forever.pl'), twoWorkers);
    const [hung] = (await service.workers()) as [number];
    const [wire] = await wiresTo(service, hung, 1);
    const answer = fate((wire as NonNullable<typeof wire>).ask('hello'));
    await untilJobs(service, 1, 0);
    process.kill(hung, 'SIGSTOP');
    const stoppedMs = performance.now();
    await service.log('worker_unresponsive');
    // The ten seconds count from its last heartbeat, which is seconds old on a busy machine.
    expect(performance.now() - stoppedMs).toBeGreaterThan(5000);
    expect(await answer).toBe('broken');
    await until(() => !isAlive(hung), 'the worker to be gone', goneMs);
    await until(async () => (await service.workers()).length === 2, 'a new worker to listen');
    await recovers(service);
  });
});

describe('A worker that cannot be started', () => {
  it('is started as soon as possible, and until then does not prevent a shutdown', async () => {
    await using folder = await temporaryFolder();
    const [node, away] = [join(folder.path, 'node'), join(folder.path, 'away')];
    await copyFile(process.execPath, node);
    await using service = await startWithProgram('cat', twoWorkers, { node });
    const killOneWithout = async () => {
      const failures = startFailures(service);
      const [doomed] = (await service.workers()) as [number];
      await rename(node, away); // as an upgrade of Node does for a moment
      process.kill(doomed, 'SIGKILL');
      await until(() => startFailures(service) > failures, 'a start in vain');
      return doomed;
    };
    const doomed = await killOneWithout();
    await rename(away, node);
    await untilReplaced(service, doomed, replacedMs);

    await killOneWithout();
    service.process.kill('SIGTERM');
    expect(await service.exited).toBe(0);
  });
});

describe('A primary that is killed', () => {
  it('leaves no worker and no process of a job, however its programs resist', async () => {
    const trees = { forever: 1, 'leader-exits': 1, 'ignores-sigterm': 2, 'setsid-child': 2, 'double-fork-setsid': 2 };
    const names = Object.keys(trees);
    const commands = Object.fromEntries(names.map((name) => [name, script(`${name}.pl`)]));
    const env = { ...twoWorkers, MODEL_API_MAX_CONCURRENT: String(names.length) };
    await using service = await startWithPrograms(commands, env);
    const workers = await service.workers();
    const answers = names.map((model) => fate(service.post('/ask', { prompt: 'hello', model })));
    for (const [name, processes] of Object.entries(trees))
      await until(async () => (await programsOf(service, `${name}.pl`)).length >= processes, `the tree of ${name}`);
    service.process.kill('SIGKILL');
    await Promise.all([
      untilTreeGone(service, goneMs),
      until(() => !workers.some(isAlive), 'the workers to be gone', goneMs),
    ]);
    expect(await Promise.all(answers)).toEqual(names.map(() => 'broken'));
  });
});

describe('A service that starts', () => {
  /** Kills a service and its workers at once, so that none of them can clean up. Returns the remaining processes. */
  async function leaveOrphans(
    places: Readonly<Record<string, string>>,
  ): Promise<{ readonly service: Service; readonly orphans: number[] }> {
    const service = await startWithProgram(script('double-fork-setsid.pl'), { ...twoWorkers, ...places });
    void fate(service.post('/ask', { prompt: 'hello' }));
    await until(async () => (await service.jobProcesses()).length === 2, 'the program and its daemon');
    const workers = await service.workers();
    for (const pid of [...workers, service.pid]) process.kill(pid, 'SIGKILL');
    await service.exited;
    return { service, orphans: await service.jobProcesses() };
  }

  it('ends the processes of a dead predecessor, logs it, and leaves a running neighbour alone', async () => {
    await using folder = await temporaryFolder();
    const { service: neighbour, open } = await startTurns(folder.path);
    await using _running = neighbour;
    const answer = neighbour.post('/ask', { prompt: 'hello' });
    await until(async () => (await neighbour.jobProcesses()).length === 1, 'the neighbour’s program');

    // A cgroup of its own: services of other tests, which start meanwhile, end the cgroups of dead services beside theirs.
    await using scratch = await scratchCgroup().catch(() => null);
    const places = { TMPDIR: folder.path, MODEL_API_CGROUP: scratch?.cgroup.path ?? 'off' };
    const { service, orphans } = await leaveOrphans(places);
    await using successor = await startService({ env: { ...twoWorkers, ...places } });
    expect(await service.jobProcesses()).toEqual([]);
    await successor.log('orphans_reaped', ({ processes }) => processes === orphans.length);
    await service.stop();
    await open();
    expect((await answer).body.response).toBe('hello');
  });
});
