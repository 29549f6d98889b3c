import { writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { type StatusBody, statusBody } from '../../../src/shared/api/status.js';
import { digestOf } from '../../../src/shared/config/api-keys.js';
import { createAnswerGate } from '../../support/agents/answer-gate.js';
import { temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import { type StreamAnswer, viewStatus } from '../../support/clients/event-stream.js';
import { request } from '../../support/clients/raw-http.js';
import { untilJobs } from '../../support/jobs/jobs.js';
import { memoryOf } from '../../support/processes/processes.js';
import { type Service, startService, startWithProgram, twoWorkers } from '../../support/service/service.js';

const megabyte = 1024 * 1024;
const ada = { 'x-api-key': 'key-of-ada' };
const bob = { 'x-api-key': 'key-of-bob' };
const lineOf = (name: string, options: string) => `${name}:sha256:${digestOf(`key-of-${name}`)}${options}\n`;
const adas = lineOf('ada', ':scopes=ask+admin');
const bobs = lineOf('bob', ':scopes=ask');

/** The status of a viewer, updated by the events that it receives. */
class View implements AsyncDisposable {
  status: StatusBody;
  readonly #answer: StreamAnswer;

  static async open(service: Service, headers: Record<string, string> = {}): Promise<View> {
    const answer = await viewStatus(service, headers);
    expect(answer.status).toBe(200);
    const first = await answer.next('snapshot').catch(() => null);
    // A reused connection may still lead to a worker that is about to exit: this worker ends the stream at once.
    return first === null ? View.open(service, headers) : new View(answer, statusBody.parse(first));
  }

  private constructor(answer: StreamAnswer, status: StatusBody) {
    this.#answer = answer;
    this.status = status;
  }

  /** Resolves when the status fits. */
  async untilIt(fits: (status: StatusBody) => boolean): Promise<StatusBody> {
    while (!fits(this.status))
      this.status = statusBody.parse({ ...this.status, ...(await this.#answer.next('change')) });
    return this.status;
  }

  /** Resolves when the service has ended the stream in order. */
  async ended(): Promise<void> {
    await this.#answer.remainingEvents();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#answer.leave();
  }
}

const isBusy = ({ slots, queue }: StatusBody) => slots.running.length === 1 && queue.waiting === 1;

describe('GET /status/stream', () => {
  it('shows an admin the clients of running and waiting jobs, hides names from others, and ends for a removed key', async () => {
    await using folder = await temporaryFolder();
    await using gate = await createAnswerGate();
    const path = join(folder.path, 'keys');
    await writeFile(path, adas + bobs);
    const env = { ...twoWorkers, MODEL_API_KEYS_FILE: path, MODEL_API_MAX_CONCURRENT: '1' };
    await using service = await startWithProgram(gate.command, env);
    for (const refused of ['/status', '/status/stream', '/setup']) {
      expect((await service.get(refused, { 'x-api-key': 'wrong' })).status).toBe(401);
    }
    expect((await service.get('/setup', bob)).status).toBe(403);
    expect((await service.get('/setup', ada)).body).toMatchObject({ keys: ['ada', 'bob'], needs_key: true });

    await using named = await View.open(service, ada);
    await using nameless = await View.open(service, bob);
    expect(named.status.workers).toMatchObject([{ pid: expect.any(Number) }, { pid: expect.any(Number) }]);
    const jobs = [service.post('/ask', { prompt: 'a secret' }, ada)];
    await untilJobs(service, 1, 0);
    jobs.push(service.post('/ask', { prompt: 'a secret' }, bob));
    const seen = [await named.untilIt(isBusy), await nameless.untilIt(isBusy)];
    expect(seen.map(({ slots }) => slots.running[0]?.client)).toEqual(['ada', null]);
    expect(seen.map(({ queue }) => queue.clients[0]?.client)).toEqual(['bob', null]);
    for (const word of ['"ada"', '"bob"', '"pid"', 'secret']) expect(JSON.stringify(seen[1])).not.toContain(word);
    expect(JSON.stringify(seen[0])).not.toContain('secret');
    expect((await service.get('/status', bob)).body).toMatchObject({ queue: { waiting: 1 } });
    await gate.open();
    expect((await Promise.all(jobs)).map(({ status }) => status)).toEqual([200, 200]);
    await named.untilIt(({ slots, queue }) => slots.running.length + queue.waiting === 0);
    expect(sumOf(statusBody.parse((await service.get('/status', ada)).body).last_hour)).toBe(2);

    await writeFile(path, adas);
    await nameless.ended();
    expect((await viewStatus(service, bob)).status).toBe(401);
    expect(named.status.service.status).toBe('ok');
  });

  it('ends cleanly when its worker is replaced, continues in a drain, and does not delay it', async () => {
    await using gate = await createAnswerGate();
    await using service = await startWithProgram(gate.command, { MODEL_API_DRAIN_TIMEOUT_SECONDS: '60' });
    await using first = await View.open(service);
    const replaced = (await service.workers())[0];
    service.process.kill('SIGHUP');
    await first.ended();
    await service.log('reload_complete');
    await using second = await View.open(service);
    await second.untilIt(({ workers }) => workers.every(({ pid }) => pid !== replaced));

    const job = service.post('/ask', { prompt: 'hello' });
    await second.untilIt(({ slots }) => slots.running.length === 1);
    service.process.kill('SIGTERM');
    const { service: drained, slots } = await second.untilIt(({ service: { status } }) => status === 'draining');
    const leftMs = Date.parse(drained.drain_ends_at ?? '') - Date.now();
    expect([slots.running.length, leftMs > 50_000 && leftMs <= 60_000]).toEqual([1, true]);
    await gate.open();
    expect((await job).status).toBe(200);
    const openedMs = performance.now();
    await second.ended();
    expect(await service.exited).toBe(0);
    expect(performance.now() - openedMs).toBeLessThan(1500); // an exchange that is not ended is cut after 2 s
  });
});

describe('Two hundred viewers that do not read', () => {
  it('cost their worker little, however much changes, and do not prevent its exit', async () => {
    await using service = await startService({ env: { MODEL_API_STANDBY: '0' } });
    for (let count = 0; count < 10; count++) await service.post('/ask', { prompt: 'hello' });
    const [worker = 0] = await service.workers();
    const before = (await memoryOf(worker)).bytes;
    const viewers = await Promise.all(Array.from({ length: 200 }, () => viewAndIgnore(service)));
    await until(async () => (await viewStatus(service)).status === 429, 'the viewers to be counted');
    const begunMs = performance.now();
    while (performance.now() - begunMs < 3000) await service.post('/ask', { prompt: 'hello' });
    expect((await memoryOf(worker)).bytes - before).toBeLessThan(200 * 0.25 * megabyte);
    expect((await service.get('/health')).status).toBe(200);
    const stoppedMs = performance.now();
    expect(await service.stop()).toBe(0);
    expect(performance.now() - stoppedMs).toBeLessThan(1500);
    for (const viewer of viewers) viewer.destroy();
  });
});

/** Opens the stream, and reads nothing of it. */
async function viewAndIgnore({ port }: Service): Promise<Socket> {
  const socket = connect(port, '127.0.0.1').pause();
  socket.on('error', () => {});
  await new Promise<void>((resolve) => void socket.write(request('GET /status/stream'), () => resolve()));
  return socket;
}

function sumOf(hour: StatusBody['last_hour']): number {
  return hour.reduce((sum, { jobs }) => sum + jobs, 0);
}
