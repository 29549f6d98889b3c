import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { randomNumbers } from '../../support/basics/random.js';
import { until } from '../../support/basics/until.js';
import { recovers, runtimeOf, untilJobs } from '../../support/jobs/jobs.js';
import { type Service, script, startWithProgram, twoWorkers } from '../../support/service/service.js';

const seed = 20_240_607;

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

async function linesOf(path: string): Promise<string[]> {
  return (await readFile(path, 'utf8').catch(() => '')).split('\n').filter((line) => line !== '');
}

describe('The limit of concurrent model CLIs', () => {
  const slots = 4;
  const requests = 200;
  const kills = 3;

  /** Sends a request. In every fourth case, disconnects before the answer. */
  async function askOrLeave(service: Service, random: () => number): Promise<number | 'gone'> {
    const signal = random() < 0.25 ? AbortSignal.timeout(Math.round(random() * 1500)) : undefined;
    return service.post('/ask', { prompt: 'hello' }, {}, signal).then(
      ({ status }) => status,
      () => 'gone', // the client disconnected, or the worker was killed
    );
  }

  async function killWorkers(service: Service, random: () => number): Promise<void> {
    for (let count = 0; count < kills; count++) {
      await pause(200 + random() * 300);
      await until(async () => (await service.workers().catch(() => [])).length === 2, 'both workers to listen');
      const workers = await service.workers();
      process.kill(workers[Math.floor(random() * workers.length)] as number, 'SIGKILL');
    }
  }

  it('is never exceeded by 200 requests at once, with clients that leave and workers that die', async () => {
    const random = randomNumbers(seed);
    await using folder = await temporaryFolder();
    await using service = await startWithProgram(script('counts-itself.pl', folder.path, '0.05'), {
      ...twoWorkers,
      MODEL_API_MAX_CONCURRENT: String(slots),
      MODEL_API_MAX_QUEUE: String(requests),
      MODEL_API_QUEUE_TIMEOUT_MS: '60000',
    });
    const answers = Promise.all(Array.from({ length: requests }, () => askOrLeave(service, random)));
    await killWorkers(service, random);
    const statuses = await answers;

    expect(new Set(statuses)).toEqual(new Set([200, 'gone']));
    const counts = (await linesOf(join(folder.path, 'counts'))).map(Number);
    expect(Math.max(...counts)).toBe(slots);
    expect(counts.length).toBeGreaterThanOrEqual(statuses.filter((status) => status === 200).length);
    await recovers(service);
    expect((await service.post('/ask', { prompt: 'still there?' })).body.response).toBe('still there?');
  });
});

describe('A request beyond the queue limit', () => {
  it('is refused at once, and the others wait no longer than their time limit', async () => {
    const [slots, places, tooMany] = [2, 3, 7];
    await using service = await startWithProgram(script('forever.pl'), {
      ...twoWorkers,
      MODEL_API_MAX_CONCURRENT: String(slots),
      MODEL_API_MAX_QUEUE: String(places),
      MODEL_API_QUEUE_TIMEOUT_MS: '2500',
      MODEL_API_TIMEOUT: '5',
    });
    const asked = performance.now();
    const ask = async () => {
      const answer = await service.post('/ask', { prompt: 'hello' });
      return { ...answer, afterMs: performance.now() - asked };
    };
    const answers = await Promise.all(Array.from({ length: slots + places + tooMany }, ask));
    const withError = (error: string) => answers.filter(({ body }) => body.error === error);

    const refused = withError('concurrency_limited');
    expect(refused).toHaveLength(tooMany);
    for (const { status, headers, body, afterMs } of refused) {
      expect(status).toBe(429);
      expect(headers.get('retry-after')).toBe(String(body.retry_after_seconds));
      expect(body.retry_after_seconds).toBe(1); // the duration of jobs is not known yet
      expect(afterMs).toBeLessThan(2500);
    }
    const waitedInVain = withError('queue_timeout');
    expect(waitedInVain.map(({ status }) => status)).toEqual(Array(places).fill(504));
    expect(waitedInVain[0]?.body.message).toBe('waited 2500 ms for a slot (MODEL_API_QUEUE_TIMEOUT_MS)');
    for (const { headers, body } of waitedInVain)
      expect(headers.get('retry-after')).toBe(String(body.retry_after_seconds));
    expect(withError('timeout').map(({ status }) => status)).toEqual(Array(slots).fill(504));
    expect(await runtimeOf(service)).toMatchObject({ rejected_total: tooMany, queue_timeouts_total: places });
    await recovers(service);

    const caller = new AbortController();
    const patient = () => service.post('/ask', { prompt: 'hello' }, {}, caller.signal).catch(() => null);
    const others = Array.from({ length: slots + places }, patient);
    await untilJobs(service, slots, places);
    const { body, headers } = await service.post('/ask', { prompt: 'hello' });
    expect(body.error).toBe('concurrency_limited');
    expect(body.retry_after_seconds).toBeGreaterThanOrEqual((5 * places) / slots);
    expect(body.retry_after_seconds).toBeLessThan(20);
    expect(headers.get('retry-after')).toBe(String(body.retry_after_seconds));
    caller.abort();
    await Promise.all(others);
  });
});

describe('The order of waiting jobs', () => {
  interface Client {
    readonly greedy: Record<string, string>;
    readonly modest: Record<string, string>;
  }

  async function startTurns(folder: TemporaryFolder, env: Record<string, string>) {
    const [order, gate] = [join(folder.path, 'order'), join(folder.path, 'gate')];
    await writeFile(join(folder.path, 'keys'), 'greedy key-of-greedy\nmodest key-of-modest\n');
    const service = await startWithProgram(script('takes-turns.pl', order, gate), {
      ...twoWorkers,
      MODEL_API_MAX_CONCURRENT: '1',
      ...env,
    });
    return { service, open: () => writeFile(gate, ''), order: () => linesOf(order) };
  }

  const withKeys = (folder: TemporaryFolder) => ({ MODEL_API_KEY_FILE: join(folder.path, 'keys') });
  const withProxy = () => ({ MODEL_API_TRUST_PROXY: '127.0.0.1' });
  const keys: Client = { greedy: { 'x-api-key': 'key-of-greedy' }, modest: { 'x-api-key': 'key-of-modest' } };
  const addresses: Client = {
    greedy: { 'x-forwarded-for': '192.0.2.1' },
    modest: { 'x-forwarded-for': '192.0.2.2' },
  };

  it.each([
    ['key', withKeys, keys],
    ['address', withProxy, addresses],
  ])(
    'alternates between clients, identified by %s, and is first come first served for each',
    async (_, env, client) => {
      await using folder = await temporaryFolder();
      const { service, open, order } = await startTurns(folder, env(folder));
      await using _running = service;
      const answers: Promise<unknown>[] = [];
      const ask = async (prompt: string, headers: Record<string, string>) => {
        answers.push(service.post('/ask', { prompt }, headers));
        await untilJobs(service, 1, answers.length - 1);
      };
      for (const prompt of ['g1', 'g2', 'g3', 'g4', 'g5']) await ask(prompt, client.greedy);
      for (const prompt of ['m1', 'm2']) await ask(prompt, client.modest);
      await open();
      await Promise.all(answers);
      expect(await order()).toEqual(['g1', 'g2', 'm1', 'g3', 'm2', 'g4', 'g5']);
    },
  );
});
