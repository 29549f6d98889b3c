import { writeFile } from 'node:fs/promises';
import { describeWith } from '../../support/basics/needs.js';
import { until } from '../../support/basics/until.js';
import { haproxy } from '../../support/service/haproxy.js';
import { type FleetHost, HostFleet } from '../../support/service/host-fleet.js';
import { postJson } from '../../support/service/load.js';
import { script } from '../../support/service/service.js';
import { type RedisServer, startRedis } from '../../support/stores/redis-server.js';

/** Time for which a dead host holds the lock of a turn. */
const lockMs = 10_000;
/** Five times the maximum recovery time after Redis answers again, for a busy machine. */
const wellMs = 10_000;

interface Said {
  readonly id: string;
  readonly pid: number;
  readonly messages: readonly string[];
}

describeWith(haproxy)('Three hosts that share a Redis', () => {
  let redis: RedisServer;
  let fleet: HostFleet;

  beforeAll(async () => {
    redis = await startRedis('--appendonly', 'yes');
    const talkers = { MODEL_API_CLI: 'demo', MODEL_API_CLI_COMMAND: script('converses.pl') };
    const env = { ...talkers, MODEL_API_LIVE_SESSIONS: '20', MODEL_API_STORE: redis.url };
    fleet = await HostFleet.start({ env });
  });
  beforeEach(async () => {
    // A first try may have ended Redis or a host.
    if ((await redis.ask('PING').catch(() => null)) === null) await redis.start();
    for (const host of fleet.hosts) {
      host.goOn();
      await host.start();
      await fleet.untilUsed(host);
    }
  });
  afterAll(async () => {
    await fleet[Symbol.asyncDispose]();
    await redis[Symbol.asyncDispose]();
  });

  const post = (message: string, id?: string, url = fleet.url) =>
    postJson(`${url}/chat`, { message, ...(id !== undefined && { conversation_id: id }) });

  /** Runs a turn. Resolves with the messages of users that the process of the conversation has received. */
  async function turn(message: string, id?: string, url = fleet.url): Promise<Said> {
    const { status, body } = await post(message, id, url);
    expect([status, body.error]).toEqual([200, undefined]);
    const { pid, messages } = JSON.parse(String(body.response)) as {
      pid: number;
      messages: readonly { from: string; text: string }[];
    };
    const texts = messages.filter(({ from }) => from === 'user').map(({ text }) => text);
    return { id: String(body.conversation_id), pid, messages: texts };
  }

  /** Returns the host that has the live process of a conversation. */
  async function hostOf({ pid }: Said): Promise<FleetHost> {
    for (const host of fleet.hosts) if ((await host.service.jobProcesses()).includes(pid)) return host;
    throw new Error(`no host has process ${pid}`);
  }

  it('continue the conversations of a killed host, with the full history', async () => {
    const begun = await Promise.all(Array.from({ length: 9 }, (_, index) => turn(`I am ${index}`)));
    const again = await Promise.all(begun.map(({ id }) => turn('Again', id)));
    expect(again.map(({ pid }) => pid)).toEqual(begun.map(({ pid }) => pid)); // with their live processes
    const homes = await Promise.all(again.map(hostOf));
    const host = fleet.host('a');
    expect(homes).toContain(host);
    await host.kill();
    const after = await Promise.all(again.map(({ id }) => turn('And now?', id)));
    expect(after.map(({ messages }) => messages)).toEqual(
      begun.map((_, index) => [`I am ${index}`, 'Again', 'And now?']),
    );
    const moved = after.filter(({ pid }, index) => pid !== again[index]?.pid);
    // All other conversations stayed on their hosts.
    expect(moved).toHaveLength(homes.filter((home) => home === host).length);
    await host.start();
    await fleet.untilUsed(host);
  });

  it('take over a conversation in the middle of a turn, which is then discarded', async () => {
    const begun = await turn('I am Ada');
    const host = await hostOf(begun);
    const lost = post('hang', begun.id);
    await until(async () => (await fleet.running()) === 1, 'the turn to run');
    await host.kill();
    expect(await lost).toMatchObject({ status: 502, body: { error: 'host_lost' } });
    const askedMs = performance.now();
    const after = await turn('Who am I?', begun.id);
    expect(after.messages).toEqual(['I am Ada', 'Who am I?']);
    expect(performance.now() - askedMs).toBeLessThan(2 * lockMs);
    await host.start();
    await fleet.untilUsed(host);
  });

  it('store nothing from a suspended host once another host has taken over the conversation', async () => {
    const begun = await turn('I am Ada');
    const host = await hostOf(begun);
    const gate = `${fleet.front.folder}/open-${begun.id}`;
    const [late] = await Promise.all([
      post(`wait ${gate}`, begun.id),
      (async () => {
        await until(async () => (await fleet.running()) === 1, 'the turn to run');
        host.stop();
        const other = fleet.hosts.find((one) => one !== host) as FleetHost;
        const taken = await turn('I am Grace', begun.id, other.service.url);
        expect(taken.messages).toEqual(['I am Ada', 'I am Grace']);
        await writeFile(gate, '');
        host.goOn();
      })(),
    ]);
    expect(late).toMatchObject({ status: 503, body: { error: 'store_unavailable' } });
    await fleet.untilUsed(host);
    expect((await turn('Who?', begun.id)).messages).toEqual(['I am Ada', 'I am Grace', 'Who?']);
    expect((await turn('Who?', begun.id, host.service.url)).messages.slice(0, 2)).toEqual(['I am Ada', 'I am Grace']);
  });

  it('are all healthy within seconds after Redis is back', async () => {
    const begun = await turn('I am Ada');
    await redis.end();
    expect(await post('Are you there?', begun.id)).toMatchObject({ status: 503, body: { error: 'store_unavailable' } });
    expect(await postJson(`${fleet.url}/ask`, { prompt: 'Hello' })).toMatchObject({ status: 200 });
    await redis.start();
    for (const { service } of fleet.hosts) {
      await until(async () => (await service.get('/health')).body.status === 'ok', 'the host to be well', wellMs);
    }
    const after = await turn('Are you there?', begun.id);
    expect(after.messages).toEqual(['I am Ada', 'Are you there?']);
    for (const { service } of fleet.hosts) {
      const events = service.logs.map(({ event }) => event).filter((event) => /^store_(down|back)$/.test(event));
      expect(events.slice(-2)).toEqual(['store_down', 'store_back']);
    }
  });
});
