import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf } from '../../../src/shared/config/api-keys.js';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import { Exposition, metric } from '../../support/documents/exposition.js';
import { recovers, untilJobs } from '../../support/jobs/jobs.js';
import { type Answer, type Service, script, startWithProgram, twoWorkers } from '../../support/service/service.js';

const slots = 2;
const places = 100;
const share = 25;
const crowd = 1000;
const keys = { greedy: { 'x-api-key': 'key-of-greedy' }, modest: { 'x-api-key': 'key-of-modest' } } as const;
type Client = keyof typeof keys;

/** A service whose jobs record their start and wait for a gate. */
class Turns {
  readonly #folder: TemporaryFolder;
  readonly service: Service;

  constructor(folder: TemporaryFolder, service: Service) {
    this.#folder = folder;
    this.service = service;
  }

  static async start(folder: TemporaryFolder, options = 'scopes=ask+chat+admin'): Promise<Turns> {
    const file = join(folder.path, 'keys');
    const lines = Object.entries(keys).map(
      ([name, { 'x-api-key': key }]) => `${name}:sha256:${digestOf(key)}:${options}\n`,
    );
    await writeFile(file, lines.join(''), { mode: 0o600 });
    const program = script('takes-turns.pl', join(folder.path, 'order'), join(folder.path, 'gate'));
    const service = await startWithProgram(program, {
      ...twoWorkers,
      MODEL_API_KEYS_FILE: file,
      MODEL_API_MAX_CONCURRENT: String(slots),
      MODEL_API_MAX_QUEUE: String(places),
      MODEL_API_QUEUE_TIMEOUT_MS: '100000',
    });
    return new Turns(folder, service);
  }

  ask(client: Client, prompt: string, signal?: AbortSignal): Promise<Answer> {
    return this.service.post('/ask', { prompt }, keys[client], signal);
  }

  crowd(client: Client, count: number): Promise<Answer[]> {
    return Promise.all(Array.from({ length: count }, (_, number) => this.ask(client, `${client} ${number}`)));
  }

  open(): Promise<void> {
    return writeFile(join(this.#folder.path, 'gate'), '');
  }

  close(): Promise<void> {
    return rm(join(this.#folder.path, 'gate'));
  }

  /** Returns the prompts of the jobs that have started, in order. */
  async order(): Promise<string[]> {
    const text = await readFile(join(this.#folder.path, 'order'), 'utf8').catch(() => '');
    return text.split('\n').slice(0, -1);
  }

  untilQueued(client: Client, count: number): Promise<boolean> {
    // A client without waiting jobs has no series.
    const queued = async () =>
      new Exposition((await this.service.get('/metrics')).text).sum('client_jobs_queued', { client }) === count;
    return until(queued, `${count} jobs of ${client} to wait`, 60_000);
  }
}

function statusesOf(answers: readonly Answer[]): Record<number, number> {
  const counts: Record<number, number> = {};
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

describe('A client with a thousand jobs', () => {
  it('loses no accepted job, and leaves free places to a new client, which waits for no more than its turn', async () => {
    await using folder = await temporaryFolder();
    const turns = await Turns.start(folder);
    await using service = turns.service;
    const running = turns.crowd('greedy', slots);
    await untilJobs(service, slots, 0);
    const leavers = Array.from({ length: 10 }, () => new AbortController());
    const left = leavers.map(({ signal }) => turns.ask('greedy', 'left', signal).catch(() => null));
    await turns.untilQueued('greedy', leavers.length);
    const greedy = turns.crowd('greedy', crowd);
    await turns.untilQueued('greedy', places); // the only client: all places, and not one more
    const waiting = places - leavers.length;
    await until(
      async () => (await metric(service, 'client_refused_total{client="greedy"}')) === crowd - waiting,
      'all to be refused',
      60_000,
    );
    expect((await turns.ask('modest', 'too early')).body).toMatchObject({
      error: 'concurrency_limited',
      message: expect.stringContaining('the queue is full'),
    });
    const modest: Promise<Answer>[] = [];
    for (const [index, leaver] of leavers.entries()) {
      leaver.abort();
      await turns.untilQueued('greedy', places - index - 1);
      expect((await turns.ask('greedy', 'one more')).body.message).toContain(
        `its share is ${share} of ${places} places`,
      );
      modest.push(turns.ask('modest', `modest ${index + 1}`));
      await turns.untilQueued('modest', index + 1);
    }
    const started = (await turns.order()).length;
    await turns.open();
    expect((await Promise.all(modest)).map(({ status }) => status)).toEqual(Array(10).fill(200));

    expect(statusesOf(await running)).toEqual({ 200: slots });
    expect(statusesOf(await greedy)).toEqual({ 200: waiting, 429: crowd - waiting });
    await Promise.all(left);
    expect(started).toBe(slots);
    const order = await turns.order();
    for (let number = 1; number <= 10; number++) {
      const before = number === 1 ? started : order.indexOf(`modest ${number - 1}`) + 1;
      expect(order.indexOf(`modest ${number}`) - before).toBeLessThanOrEqual(slots + 2);
    }
    await recovers(service);
  });

  it('gets a quarter of the queue while other clients are active, and is reported separately', async () => {
    await using folder = await temporaryFolder();
    const turns = await Turns.start(folder);
    await using service = turns.service;
    await turns.open();
    expect((await turns.ask('modest', 'modest 0')).status).toBe(200);
    await turns.close();
    const greedy = turns.crowd('greedy', crowd);
    const admitted = slots + share;
    await until(
      async () => (await metric(service, 'client_refused_total{client="greedy"}')) === crowd - admitted,
      'the refusals',
      60_000,
    );
    await untilJobs(service, slots, share);
    const modest = turns.crowd('modest', share);
    await untilJobs(service, slots, 2 * share);
    expect(await metric(service, 'rejected_total{reason="client_bound"}')).toBe(crowd - admitted);
    expect(await metric(service, 'rejected_total{reason="queue_full"}')).toBe(0);
    await turns.open();
    expect(statusesOf(await modest)).toEqual({ 200: share });
    const answers = await greedy;
    expect(statusesOf(answers)).toEqual({ 200: admitted, 429: crowd - admitted });
    const { body, headers } = answers.find(({ status }) => status === 429) as Answer;
    expect(body.error).toBe('concurrency_limited');
    // The delay is the duration of the earlier jobs, on a busy machine too.
    expect(headers.get('retry-after')).toMatch(/^[1-9]$/);
    expect(body.message).toContain(`its share is ${share} of ${places} places`);
    expect(body.message).toContain('MODEL_API_MAX_QUEUE');

    const { usage } = (await service.get('/usage', keys.modest)).body as { usage: object[] };
    expect(usage).toMatchObject([
      { client: 'greedy', kind: 'key', jobs: { ok: admitted, queue_timeout: 0 }, refused: crowd - admitted },
      { client: 'modest', kind: 'key', jobs: { ok: share + 1 }, refused: 0 },
    ]);
    const scrape = new Exposition((await service.get('/metrics')).text);
    expect(scrape.sum('client_jobs_total', { outcome: 'ok' })).toBe(scrape.sum('jobs_total', { outcome: 'ok' }));
    await recovers(service);
  });

  it('leaves slots to other clients if its key limits its running jobs', async () => {
    await using folder = await temporaryFolder();
    const turns = await Turns.start(folder, 'concurrent=1');
    await using service = turns.service;
    const greedy = turns.crowd('greedy', 20);
    await untilJobs(service, 1, 19);
    const modest = turns.ask('modest', 'modest');
    await untilJobs(service, 2, 19);
    await until(async () => (await turns.order()).includes('modest'), 'the modest one to start');
    await turns.open();
    expect((await modest).status).toBe(200);
    expect(statusesOf(await greedy)).toEqual({ 200: 20 });
    await recovers(service);
  });
});
