import { join } from 'node:path';
import { temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import { writeBudgetKey } from '../../support/doors/budget-key.js';
import { Receiver } from '../../support/service/receiver.js';
import { type Service, startService } from '../../support/service/service.js';
import { startRedis } from '../../support/stores/redis-server.js';

interface Entry {
  readonly id: string;
  readonly status: string;
}

async function askInBackground(service: Service, headers: Record<string, string> = {}): Promise<string> {
  const { status, body } = await service.post('/ask', { prompt: 'Hello' }, { Prefer: 'respond-async', ...headers });
  expect(status).toBe(202);
  return String(body.job_id);
}

async function deliveriesOf(service: Service, headers: Record<string, string> = {}): Promise<Entry[]> {
  return (await service.get('/webhooks/deliveries', headers)).body.deliveries as Entry[];
}

/** Kills a service. Resolves when the processes of its jobs have ended, too. */
async function kill(service: Service): Promise<void> {
  process.kill(service.pid, 'SIGKILL');
  await service.exited;
  await until(async () => (await service.jobProcesses()).length === 0, 'the end of its processes');
}

describe('A receiver of notices', () => {
  it('that hangs delays no request and no end, and gets the notice from the next service after a kill', async () => {
    await using folder = await temporaryFolder();
    await using receiver = await Receiver.start();
    const env = { ...receiver.env, MODEL_API_STORE: `sqlite:${join(folder.path, 'state', 'store.db')}` };
    let id: string;
    {
      await using service = await startService({ env });
      receiver.answer = () => {};
      id = await askInBackground(service);
      await receiver.notice('job.ended');
      expect((await service.post('/ask', { prompt: 'Hello' })).status).toBe(200);
      await kill(service); // during the attempt
    }
    receiver.answer = (res) => void res.writeHead(204).end();
    await using service = await startService({ env });
    const isDelivered = async () =>
      (await deliveriesOf(service)).find((each) => each.id === `job_${id}`)?.status === 'delivered';
    await until(isDelivered, 'the delivery by the next service');
    receiver.answer = () => {};
    const seen = receiver.notices.length;
    await askInBackground(service);
    await until(() => receiver.notices.length > seen, 'an attempt that hangs');
    expect(await service.stop()).toBe(0);
  });
});

describe('The notice of a job that ended just before a kill', () => {
  it('is sent by the next service if the last one has not stored it, and only once', async () => {
    await using folder = await temporaryFolder();
    await using receiver = await Receiver.start();
    const env = { MODEL_API_STORE: `sqlite:${join(folder.path, 'state', 'store.db')}` };
    let id: string;
    {
      await using service = await startService({ env }); // stores no notices
      id = await askInBackground(service);
      await until(async () => (await service.get(`/jobs/${id}`)).body.status === 'succeeded', 'the end of the job');
      await kill(service);
    }
    for (const count of [1, 2]) {
      await using service = await startService({ env: { ...env, ...receiver.env } });
      const isDelivered = async () => (await deliveriesOf(service)).filter(({ status }) => status === 'delivered');
      await until(async () => (await isDelivered()).length === count, 'the notices');
      await askInBackground(service);
      await until(() => receiver.notices.length === count + 1, 'the notice of another job');
    }
    expect(receiver.notices.filter((notice) => notice.id === `job_${id}`)).toHaveLength(1);
  });
});

/** Time after which another host makes the attempt of a killed host: its lease, and the next check. */
const takeOverMs = 60_000;

describe('Two hosts with one Redis', () => {
  it('send a notice of a used budget once', async () => {
    await using redis = await startRedis();
    await using receiver = await Receiver.start();
    await using key = await writeBudgetKey('scopes=ask+admin');
    const env = { ...key.env, ...receiver.env, MODEL_API_STORE: redis.url };
    await using north = await startService({ env });
    await using south = await startService({ env });
    const usedOn = async (host: Service) => {
      const [budget] = (await host.get('/usage', key.headers)).body.budgets as { tokens: { used: number } }[];
      return budget?.tokens.used ?? 0;
    };
    await key.change('scopes=ask+admin,tokens=1000000/day');
    for (const host of [north, south]) await host.log('keys_loaded');
    expect((await north.post('/ask', { prompt: 'Hello' }, key.headers)).status).toBe(200);
    const used = await usedOn(north);
    for (const host of [north, south]) await until(async () => (await usedOn(host)) === used, 'the use on both hosts');
    await key.change(`scopes=ask+admin,tokens=${Math.floor(used / 0.9)}/day`);
    const nearly = await receiver.notice('budget.nearly_used');
    expect(nearly.data).toMatchObject({ client: 'ada', used });
    expect((await south.post('/ask', { prompt: 'Hello' }, key.headers)).status).toBe(200);
    for (const host of [north, south]) await until(async () => (await usedOn(host)) > used, 'the use on both hosts');
    await receiver.notice('budget.used_up');
    const jobs = [];
    for (const host of [north, south]) {
      await key.change('scopes=ask+admin');
      await until(async () => (await host.post('/ask', { prompt: 'Hi' }, key.headers)).status === 200, 'no budget');
      jobs.push(await askInBackground(host, key.headers));
    }
    await until(() => receiver.notices.length >= 4, 'the notices of both jobs');
    const sent = receiver.notices.map(({ id, type }) => (type === 'job.ended' ? id : type)).toSorted();
    expect(sent).toEqual(['budget.nearly_used', 'budget.used_up', ...jobs.map((id) => `job_${id}`).toSorted()]);
  });

  it('deliver the notices of a host that is killed in the middle of an attempt', async () => {
    await using redis = await startRedis();
    await using receiver = await Receiver.start();
    const env = { ...receiver.env, MODEL_API_STORE: redis.url };
    await using south = await startService({ env });
    const north = await startService({ env });
    receiver.answer = () => {};
    const ids: string[] = [];
    try {
      for (let index = 0; index < 3; index++) ids.push(await askInBackground(north));
      await receiver.notice('job.ended');
      await until(async () => (await deliveriesOf(south)).length === 3, 'the deliveries of all jobs');
    } finally {
      await kill(north);
      await north.stop();
    }
    receiver.answer = (res) => void res.writeHead(204).end();
    const isDone = async () => (await deliveriesOf(south)).every(({ status }) => status === 'delivered');
    await until(isDone, 'the deliveries by the other host', takeOverMs);
    const attempts = ids.map((id) => receiver.notices.filter((notice) => notice.id === `job_${id}`).length);
    for (const count of attempts) expect([1, 2]).toContain(count);
    expect(receiver.notices).toHaveLength(attempts.reduce((sum, count) => sum + count));
  });
});
