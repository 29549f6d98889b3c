import type { UsageReport } from '../../../src/features/usage/report-form.js';
import { until } from '../../support/basics/until.js';
import { chat, chatOf, startListener } from '../../support/clients/chat.js';
import { metric } from '../../support/documents/exposition.js';
import type { Service } from '../../support/service/service.js';
import { startRedis } from '../../support/stores/redis-server.js';

async function messagesOf(service: Service, id: string): Promise<unknown> {
  return (await service.get(`/chat/${id}/messages`)).body.messages;
}

describe('Two hosts with one Redis', () => {
  it('continue each other’s conversations, with the full history', async () => {
    await using redis = await startRedis();
    const env = { MODEL_API_STORE: redis.url };
    await using north = await startListener(env);
    await using south = await startListener(env);
    const { id } = await chat(north, 'one');
    expect((await chat(south, 'two', id)).response.split('\n')).toEqual(['one', 'two']);
    expect((await chat(north, 'three', id)).response.split('\n')).toEqual(['one', 'two', 'three']);
    expect((await chat(north, 'four', id)).response.split('\n')).toEqual(['one', 'two', 'three', 'four']);
    expect(await messagesOf(north, id)).toEqual(await messagesOf(south, id));
    const { body } = await south.get('/chat');
    expect(body.conversations).toMatchObject([{ conversation_id: id, message_count: 8, title: 'one' }]);
    const fork = (await south.post(`/chat/${id}/fork`, { from: 4 })).body.conversation_id;
    expect((await chat(north, 'five', String(fork))).response.split('\n')).toEqual(['one', 'two', 'five']);
    expect((await south.delete(`/chat/${id}`)).status).toBe(200);
    expect((await north.get(`/chat/${id}`)).status).toBe(404);
    expect((await north.post('/chat', { message: 'six', conversation_id: id })).status).toBe(400);
  });

  it('run the turns of one conversation one after the other', async () => {
    await using redis = await startRedis();
    const env = { MODEL_API_STORE: redis.url };
    await using north = await startListener(env);
    await using south = await startListener(env);
    const { id } = await chat(north, 'begin');
    const texts = Array.from({ length: 10 }, (_, index) => `number ${index}`);
    const hosts = [north, south];
    await Promise.all(texts.map((text, index) => chat(hosts[index % 2] ?? north, text, id)));
    const { response } = await chat(south, 'end', id);
    expect(response.split('\n').toSorted()).toEqual(['begin', 'end', ...texts].toSorted());
  });

  it('are delayed only briefly by a hanging Redis, and are healthy when it resumes', async () => {
    await using redis = await startRedis();
    await using host = await startListener({ MODEL_API_STORE: redis.url });
    const { id } = await chat(host, 'one');
    const turn = { message: 'two', conversation_id: id };
    redis.stop();
    const refused = await host.post('/chat', turn);
    expect(refused.status).toBe(503);
    expect(refused.body).toMatchObject({ error: 'store_unavailable', retry_after_seconds: 5 });
    expect((await host.post('/chat', { message: 'new' })).body.error).toBe('store_unavailable');
    expect((await host.get(`/chat/${id}`)).body.error).toBe('store_unavailable');
    expect((await host.post('/ask', { prompt: 'Hi' })).status).toBe(200);
    const reasons = [{ part: 'store', name: 'redis' }];
    expect((await host.get('/health')).body).toMatchObject({ status: 'degraded', reasons });
    expect(await metric(host, 'store_up')).toBe(0);
    redis.goOn();
    await host.log('store_back');
    expect(chatOf(await host.post('/chat', turn)).count).toBe(4);
    const events = host.logs.map(({ event }) => event);
    expect(events.filter((event) => /^store_(down|back)$/.test(event))).toEqual(['store_down', 'store_back']);
  });

  it('enforce one rate limit for a client together', async () => {
    await using redis = await startRedis();
    const env = { MODEL_API_STORE: redis.url, MODEL_API_RATE_LIMIT_MAX_REQUESTS: '30', MODEL_API_MAX_CONCURRENT: '1' };
    await using north = await startListener(env);
    await using south = await startListener(env);
    await using west = await startListener(env);
    const hosts = [north, south, west];
    // Six at once: a host that gets no answer of Redis within 200 ms counts by itself.
    const statuses: number[] = [];
    let asked = 0;
    const ask = async (host: Service) => {
      while (asked++ < 100) statuses.push((await host.post('/ask', { prompt: 'Hi' })).status);
    };
    await Promise.all([...hosts, ...hosts].map(ask));
    expect(statuses.filter((status) => status === 200)).toHaveLength(30);
    expect(statuses.filter((status) => status === 429)).toHaveLength(70);
    // Each host adds its own usage to the store within a second.
    const counted = async (host: Service) => {
      const { usage } = (await host.get('/usage')).body as UsageReport;
      return usage[0]?.jobs.ok === 30 && usage[0].refused === 70;
    };
    for (const host of hosts) await until(() => counted(host), 'the usage of all hosts');
  });

  it('count separately, without delay, while Redis hangs', async () => {
    await using redis = await startRedis();
    const env = { MODEL_API_STORE: redis.url, MODEL_API_RATE_LIMIT_MAX_REQUESTS: '1000' };
    await using host = await startListener(env);
    await host.post('/ask', { prompt: 'Hi' });
    redis.stop();
    const times: number[] = [];
    for (let asked = 0; asked < 30; asked++) {
      const begunMs = performance.now();
      expect((await host.post('/ask', { prompt: 'Hi' })).status).toBe(200);
      times.push(performance.now() - begunMs);
    }
    process.stderr.write(`/ask while Redis hangs, ms: ${times.map(Math.round).join(' ')}\n`);
    expect((await host.get('/usage')).body.error).toBe('store_unavailable');
    redis.goOn();
    await host.log('store_back');
    expect((await host.get('/usage')).body.usage).toMatchObject([{ jobs: { ok: 31 } }]);
  });

  it('fail a turn whose lock another host has taken, and store nothing of it', async () => {
    await using redis = await startRedis();
    await using host = await startListener({ MODEL_API_STORE: redis.url });
    const { id } = await chat(host, 'one');
    const hanging = host.post('/chat', { message: 'hang', conversation_id: id });
    await until(async () => (await metric(host, 'jobs_active')) === 1, 'the turn to run');
    await redis.ask('HINCRBY', `prompt-relay:conversation:${id}`, 'fence', '1');
    const refused = await hanging;
    expect(refused.status).toBe(503);
    expect(refused.body.message).toContain('lost its turn lock');
    await redis.ask('HSET', `prompt-relay:conversation:${id}`, 'until', '0');
    expect((await chat(host, 'two', id)).response.split('\n')).toEqual(['one', 'two']);
  });

  it('continue after one was killed in the middle of a turn', async () => {
    await using redis = await startRedis();
    const env = { MODEL_API_STORE: redis.url };
    await using north = await startListener(env);
    await using south = await startListener(env);
    const { id } = await chat(north, 'one');
    const lost = north.post('/chat', { message: 'hang', conversation_id: id }).catch(() => null);
    await until(async () => (await metric(north, 'jobs_active')) === 1, 'the turn to run');
    north.process.kill('SIGKILL');
    const begunMs = performance.now();
    expect((await chat(south, 'two', id)).response.split('\n')).toEqual(['one', 'two']);
    expect(performance.now() - begunMs).toBeLessThan(25_000);
    await lost;
  });

  it('need no queue place for a turn that does not have to wait', async () => {
    await using redis = await startRedis();
    await using host = await startListener({ MODEL_API_STORE: redis.url, MODEL_API_MAX_QUEUE: '0' });
    const { id } = await chat(host, 'one');
    expect((await chat(host, 'two', id)).count).toBe(4);
    const job = await host.post('/chat', { message: 'three', conversation_id: id }, { prefer: 'respond-async' });
    expect(job.status).toBe(202);
    await until(async () => (await host.get(`/chat/${id}`)).body.message_count === 6, 'the background job to end');
  });
});
