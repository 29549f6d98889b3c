import { type AnswerGate, createAnswerGate } from '../../support/agents/answer-gate.js';
import { until } from '../../support/basics/until.js';
import { askInBackground, statusOf, untilEnded, untilStatus } from '../../support/clients/background.js';
import { chat, startListener } from '../../support/clients/chat.js';
import { follow, namesOf, textOf } from '../../support/clients/event-stream.js';
import { headersOf, writeNamedKeys } from '../../support/doors/named-keys.js';
import { untilTreeGone } from '../../support/jobs/jobs.js';
import { type Service, script, startService, startWithProgram } from '../../support/service/service.js';
import { type RedisServer, startRedis } from '../../support/stores/redis-server.js';

/** Two hosts on one Redis. Jobs at the first one wait for the gate. */
interface Hosts {
  readonly redis: RedisServer;
  readonly gate: AnswerGate;
  start(slots?: number): Promise<Service>;
}

/** Runs a test, and ends everything that was started. */
async function withHosts(test: (hosts: Hosts) => Promise<void>): Promise<void> {
  await using redis = await startRedis('--appendonly', 'yes', '--appendfsync', 'always');
  await using gate = await createAnswerGate();
  const services: Service[] = [];
  const start = async (slots = 1) => {
    // Longer than the start of another host on a busy machine.
    const drain = { MODEL_API_DRAIN_TIMEOUT_SECONDS: '30' };
    const env = { MODEL_API_STORE: redis.url, MODEL_API_MAX_CONCURRENT: String(slots), ...drain };
    const service = await startWithProgram(gate.command, env);
    services.push(service);
    return service;
  };
  try {
    await test({ redis, gate, start });
  } finally {
    await gate.open();
    await Promise.all(services.map((service) => service.stop()));
  }
}

async function kill(service: Service): Promise<void> {
  service.process.kill('SIGKILL');
  await service.exited;
}

describe('Background jobs on two hosts', () => {
  it('are started by any host with a free slot, and shown by both', () =>
    withHosts(async ({ gate, start }) => {
      const [north, south] = [await start(), await start()];
      const ids = [await askInBackground(north, 'one'), await askInBackground(north, 'two')];
      for (const id of ids) await untilStatus(south, id, 'running');
      const third = await askInBackground(north, 'three');
      for (const host of [north, south]) {
        expect((await host.get(`/jobs/${third}`)).body).toMatchObject({ status: 'queued', position: 1 });
      }
      await gate.open();
      for (const host of [north, south]) {
        const answers = await Promise.all([...ids, third].map((id) => untilEnded(host, id)));
        expect(answers.map(({ result }) => (result as { response: string }).response)).toEqual(['one', 'two', 'three']);
        const { body } = await host.get('/jobs?status=succeeded');
        expect((body.jobs as { job_id: string }[]).map((job) => job.job_id)).toEqual([third, ...ids.toReversed()]);
      }
    }));

  it('can be followed live on the other host, and from the position of an earlier reader', async () => {
    await using redis = await startRedis();
    const model = { MODEL_API_CLI: 'demo', MODEL_API_CLI_COMMAND: script('converses.pl') };
    await using north = await startService({ env: { MODEL_API_STORE: redis.url, ...model } });
    await using south = await startService({ env: { MODEL_API_STORE: redis.url, ...model } });
    const id = await askInBackground(north, 'drip 5 300');
    const streams = await Promise.all([north, south].map((host) => follow(host, id)));
    const [one = [], other = []] = await Promise.all(streams.map((stream) => stream.remainingEvents()));
    expect([textOf(one), one.at(-1)]).toEqual([textOf(other), other.at(-1)]);
    for (const events of [one, other]) {
      // The pieces arrive one by one.
      expect(namesOf(events).filter((name) => name === 'delta').length).toBeGreaterThanOrEqual(3);
    }
    const half = Math.floor(textOf(one).length / 2);
    for (const host of [north, south]) {
      expect(textOf(await (await follow(host, id, half + 1)).remainingEvents())).toBe(textOf(one).slice(half));
    }
  });

  it('can be cancelled from the other host while they wait and while they run', () =>
    withHosts(async ({ start }) => {
      const north = await start();
      const runs = await askInBackground(north, 'runs');
      await untilStatus(north, runs, 'running');
      const south = await start();
      const fills = await askInBackground(south, 'fills');
      await untilStatus(south, fills, 'running');
      const waits = await askInBackground(north, 'waits');
      expect((await south.delete(`/jobs/${waits}`)).body).toMatchObject({ status: 'cancelled', deleted: false });
      const begunMs = performance.now();
      expect((await south.delete(`/jobs/${runs}`)).body).toMatchObject({ status: 'cancelled', deleted: false });
      await untilTreeGone(north);
      expect(performance.now() - begunMs).toBeLessThan(7500);
      for (const id of [waits, runs]) expect(await statusOf(north, id)).toBe('cancelled');
      expect((await north.delete(`/jobs/${waits}`)).body).toMatchObject({ deleted: true });
      expect((await south.get(`/jobs/${waits}`)).status).toBe(404);
    }));

  it('and requests of callers are ended by an administrator on either host', async () => {
    await using redis = await startRedis('--appendonly', 'yes', '--appendfsync', 'always');
    await using gate = await createAnswerGate();
    await using keys = await writeNamedKeys();
    const env = { ...keys.env, MODEL_API_STORE: redis.url, MODEL_API_MAX_CONCURRENT: '2' };
    await using north = await startWithProgram(gate.command, env);
    const [alice, operator] = [headersOf('alice'), headersOf('operator')];
    const answer = north.post('/ask', { prompt: 'live' }, alice);
    const runs = await askInBackground(north, 'runs', alice);
    await untilStatus(north, runs, 'running', alice);
    await using south = await startWithProgram(gate.command, { ...env, MODEL_API_MAX_CONCURRENT: '1' });
    const fills = await askInBackground(south, 'fills', alice);
    await untilStatus(south, fills, 'running', alice);
    const waits = await askInBackground(north, 'waits', alice);
    const { body } = await north.get('/status', operator);
    const { running } = body.slots as { running: readonly { id: string }[] };
    const live = running.map(({ id }) => id).find((id) => id !== runs);
    const all = await south.get('/jobs?all=true', operator);
    expect((all.body.jobs as { job_id: string }[]).map(({ job_id }) => job_id)).toEqual([waits, fills, runs]);
    expect((await south.delete(`/jobs/${live}`, headersOf('bob'))).status).toBe(404);
    expect((await south.delete('/jobs/1-12345678', operator)).status).toBe(404);
    for (const id of [live, waits, runs])
      expect((await south.delete(`/jobs/${id}`, operator)).body).toMatchObject({ status: 'cancelled', deleted: false });
    expect(await answer).toMatchObject({ status: 403, body: { message: 'an administrator has ended the job' } });
    for (const id of [waits, runs])
      expect(await untilEnded(north, id, alice)).toMatchObject({ status: 'cancelled', cancelled_by: 'administrator' });
    await untilTreeGone(north);
    const ended = await until(() => {
      const records = south.logs.filter(({ event }) => event === 'job_ended_by_admin');
      return records.length === 3 ? records : null;
    }, 'three log records');
    expect(ended.map(({ by, job_id, client }) => [by, job_id, client])).toEqual(
      [live, waits, runs].map((id) => ['key operator', id, 'key alice']),
    );
    expect(ended[0]?.request_id).toEqual(expect.any(String));
    await gate.open();
  });

  it('are lost with their host if they were running, and run elsewhere if they were waiting', () =>
    withHosts(async ({ gate, start }) => {
      const north = await start(2);
      const lost = await Promise.all(['one', 'two'].map((prompt) => askInBackground(north, prompt)));
      for (const id of lost) await untilStatus(north, id, 'running');
      const waiting = await Promise.all(['three', 'four'].map((prompt) => askInBackground(north, prompt)));
      await kill(north);
      await gate.open();
      const south = await start(2);
      for (const id of waiting) expect(await untilEnded(south, id)).toMatchObject({ status: 'succeeded' });
      for (const id of lost) {
        const error = { error: 'cli_error', reason: 'host_lost' };
        expect(await untilEnded(south, id)).toMatchObject({ status: 'failed', error });
      }
    }));

  it('are taken over by the other host if one drains', () =>
    withHosts(async ({ gate, start }) => {
      const north = await start();
      const ids = await Promise.all(['one', 'two', 'three'].map((prompt) => askInBackground(north, prompt)));
      await until(async () => (await statusOf(north, ids[0])) === 'running', 'the first one to run');
      const ended = north.stop();
      await north.log('shutdown_start');
      const south = await start();
      await gate.open();
      for (const id of ids) expect(await untilEnded(south, id)).toMatchObject({ status: 'succeeded' });
      expect(await ended).toBe(0);
    }));

  it('continue while Redis is down, and their end is stored once it is back', () =>
    withHosts(async ({ redis, gate, start }) => {
      const north = await start();
      const id = await askInBackground(north, 'runs');
      const next = await askInBackground(north, 'waits');
      await untilStatus(north, id, 'running');
      await redis.end();
      await north.log('store_down');
      expect((await north.get('/jobs')).body.error).toBe('store_unavailable');
      const refused = await north.post('/ask', { prompt: 'x' }, { prefer: 'respond-async' });
      expect([refused.status, refused.body.error]).toEqual([503, 'store_unavailable']);
      await gate.open();
      expect((await north.post('/ask', { prompt: 'Hi' })).status).toBe(200);
      await redis.start();
      for (const each of [id, next]) expect(await untilEnded(north, each)).toMatchObject({ status: 'succeeded' });
    }));

  it('continue a conversation of another host', async () => {
    await using redis = await startRedis();
    await using north = await startListener({ MODEL_API_STORE: redis.url });
    await using south = await startListener({ MODEL_API_STORE: redis.url, MODEL_API_MAX_CONCURRENT: '2' });
    const { id } = await chat(north, 'one');
    for (const text of ['two', 'three', 'four']) {
      const body = { message: text, conversation_id: id };
      const { body: accepted } = await south.post('/chat', body, { prefer: 'respond-async' });
      expect(await untilEnded(north, accepted.job_id)).toMatchObject({ status: 'succeeded' });
    }
    expect((await chat(north, 'five', id)).response.split('\n')).toEqual(['one', 'two', 'three', 'four', 'five']);
  });
});
