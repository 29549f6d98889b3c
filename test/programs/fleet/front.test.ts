import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { describeWith } from '../../support/basics/needs.js';
import { until } from '../../support/basics/until.js';
import { untilJobs } from '../../support/jobs/jobs.js';
import { checkDelivered, checkOfPage, HaProxy, haproxy } from '../../support/service/haproxy.js';
import { HostFleet } from '../../support/service/host-fleet.js';
import { postJson } from '../../support/service/load.js';
import { script } from '../../support/service/service.js';

/** A model that reports its process and the messages it received. Processes stay with their conversations. */
const talkers = {
  MODEL_API_CLI: 'demo',
  MODEL_API_CLI_COMMAND: script('converses.pl'),
  MODEL_API_LIVE_SESSIONS: '20',
};
/** Maximum time from the disconnection of a client to the end of its job, on a busy machine. */
const goneMs = 15_000;

describeWith(haproxy)('deploy/fleet/haproxy.cfg', () => {
  it('is accepted by HAProxy without a warning', async () => {
    const said = await checkDelivered();
    expect(said).toContain('Configuration file is valid');
    expect(said).not.toContain('WARNING');
  });

  it('is also valid for a single machine with its certificate, when both are created as the documentation says', async () => {
    const { config, output } = await checkOfPage();
    expect(output).toContain('Configuration file is valid');
    const servers = Array.from(config.matchAll(/^ *server (.*)$/gm), ([, server]) => server);
    const one = [1, 2, 3].map((n) => `${'abc'[n - 1]} 127.0.0.1:506${n} agent-port 507${n}`);
    expect(servers).toEqual([...one, ...one]);
  });

  describe('before three hosts', () => {
    let fleet: HostFleet;

    beforeAll(async () => {
      // Shortens the client timeout, to show that it does not limit a client that waits for its answer.
      const change = (config: string) => config.replace('timeout client 75s', 'timeout client 1s');
      fleet = await HostFleet.start({ env: talkers, front: { change } });
    });
    afterAll(() => fleet[Symbol.asyncDispose]());

    const turn = async (message: string, id?: string, headers = {}) => {
      const said = { message, ...(id !== undefined && { conversation_id: id }) };
      const answer = await postJson(`${fleet.url}/chat`, said, headers);
      expect(answer).toMatchObject({ status: 200 });
      const { pid } = JSON.parse(String(answer.body.response)) as { pid: number };
      return { pid, id: String(answer.body.conversation_id), named: answer.headers.get('x-conversation-id') };
    };

    it('distributes questions over all hosts', async () => {
      const answers = await Promise.all(
        Array.from({ length: 12 }, () => postJson(`${fleet.url}/ask`, { prompt: 'drip 2 50' })),
      );
      const told = await Promise.all(answers.map(({ body }) => fleet.answerOf(String(body.request_id))));
      expect(new Set(told.map(({ host }) => host.name))).toEqual(new Set(['a', 'b', 'c']));
    });

    it('routes each conversation to the host that has its process, by the id in the body', async () => {
      const begun = await Promise.all(Array.from({ length: 9 }, (_, index) => turn(`I am ${index}`)));
      expect(begun.map(({ named }) => named)).toEqual(begun.map(({ id }) => id));
      for (const round of [1, 2]) {
        const answers = await Promise.all(begun.map(({ id }) => turn(`Once more, ${round}`, id)));
        expect(answers.map(({ pid }) => pid)).toEqual(begun.map(({ pid }) => pid));
      }
    });

    it('routes a conversation by a header too, if the body is larger than the part that HAProxy reads', async () => {
      const begun = await Promise.all(Array.from({ length: 3 }, () => turn('Hello')));
      const large = 'x'.repeat(300_000);
      const named = begun.map(({ id }) => turn(large, id, { 'X-Conversation-Id': id }));
      expect((await Promise.all(named)).map(({ pid }) => pid)).toEqual(begun.map(({ pid }) => pid));
    });

    it('routes a request with the conversation in its path', async () => {
      for (const { id } of await Promise.all(Array.from({ length: 3 }, () => turn('Hello')))) {
        // With a store in memory, other hosts do not have the conversation.
        expect((await fetch(`${fleet.url}/chat/${id}`)).status).toBe(200);
        expect((await fetch(`${fleet.url}/chat/${id}/messages`)).status).toBe(200);
        expect((await fetch(`${fleet.url}/chat/${id}`, { method: 'DELETE' })).status).toBe(200);
      }
    });

    it('sends the client address to the hosts, even if the client sends a false one', async () => {
      const forged = { 'X-Forwarded-For': '203.0.113.9', 'X-Request-Id': 'forged-address' };
      await postJson(`${fleet.url}/ask`, { prompt: 'Hello' }, forged);
      const { record } = await fleet.answerOf('forged-address');
      expect(record.client).toBe('address 127.0.0.1');
    });

    it('streams an answer as it arrives, and disconnects from the host when the client disconnects', async () => {
      const ask = ['-sN', `${fleet.url}/ask`, '-H', 'Content-Type: application/json'];
      const client = spawn('curl', [...ask, '-d', '{"prompt":"hang","stream":true}']);
      let said = '';
      for await (const piece of client.stdout.setEncoding('utf8')) {
        said += piece;
        if (said.includes('event: delta')) break; // the job never ends
      }
      client.kill('SIGKILL');
      await Promise.all(fleet.hosts.map(({ service }) => untilJobs(service, 0, 0, goneMs)));
    });

    it('disconnects from the host if the client disconnects before the first output', async () => {
      const client = new AbortController();
      const asked = fetch(`${fleet.url}/ask`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{"prompt":"hang"}',
        signal: client.signal,
      }).catch(() => {});
      await until(async () => (await fleet.running()) === 1, 'a host to run the job');
      client.abort();
      await asked;
      await Promise.all(fleet.hosts.map(({ service }) => untilJobs(service, 0, 0, goneMs)));
    });

    it('receives the load of a host', async () => {
      const { service } = fleet.host('a');
      await fleet.front.untilSeen('a', ({ weight }) => weight === 100, 'idle');
      // Directly, not through the front.
      const asked = Array.from({ length: 4 }, () => service.post('/ask', { prompt: 'drip 2 1200' }));
      await fleet.front.untilSeen('a', ({ weight }) => weight === 50, 'with every slot taken');
      await Promise.all(asked);
      await fleet.front.untilSeen('a', ({ weight }) => weight === 100, 'idle again');
    });

    it('forwards each word when it is written', async () => {
      const response = await fetch(`${fleet.url}/ask`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{"prompt":"drip 5 200","stream":true}',
      });
      const times: number[] = [];
      for await (const piece of response.body ?? []) {
        if (Buffer.from(piece).includes('event: delta')) times.push(performance.now());
      }
      expect(times.length).toBeGreaterThanOrEqual(4); // not buffered
    });

    it('waits longer for an answer than for a client', async () => {
      expect(await postJson(`${fleet.url}/ask`, { prompt: 'drip 2 1200' })).toMatchObject({ status: 200 });
    });

    it.each(['/metrics', '/health', '/health/history'])('does not expose %s', async (path) => {
      const response = await fetch(fleet.url + path);
      expect([response.status, await response.json()]).toEqual([404, expect.objectContaining({ error: 'not_found' })]);
    });

    it('rejects a body that is too large before it is sent', async () => {
      const socket = connect(fleet.front.port, '127.0.0.1');
      socket.write('POST /ask HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 16777217\r\n\r\n{');
      const [piece] = (await once(socket, 'data')) as [Buffer];
      socket.destroy();
      expect(piece.toString()).toMatch(/^HTTP\/1\.1 413 .*"error":"payload_too_large"/s);
    });

    it('forwards large bodies', async () => {
      const { status, body } = await postJson(`${fleet.url}/ask`, { prompt: 'x'.repeat(12e6), model: 'unknown' });
      expect([status, body.error]).toEqual([400, 'validation_error']); // the body is read, then its model is rejected
    });

    it('times out if a body does not arrive', async () => {
      const socket = connect(fleet.front.port, '127.0.0.1');
      socket.write(
        'POST /chat HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{',
      );
      expect(await text(socket)).toMatch(/^HTTP\/1\.1 4\d\d /);
    });

    it('shows the state of the hosts, to Prometheus too', async () => {
      const metrics = await (await fetch(`http://127.0.0.1:${fleet.front.statusPort}/metrics`)).text();
      expect(metrics).toMatch(/haproxy_server_status\{proxy="relays",server="c",state="UP"\} 1/);
    });
  });

  it('redirects plain requests to TLS, and terminates TLS for the hosts', async () => {
    await using fleet = await HostFleet.start({ size: 1, front: { hasTls: true } });
    const { port, tlsPort, folder } = fleet.front;
    const to = await fetch(`http://127.0.0.1:${port}/docs`, { redirect: 'manual' });
    expect([to.status, to.headers.get('location')]).toEqual([
      308,
      'https://127.0.0.1/docs'.replace('127.0.0.1', `127.0.0.1:${port}`),
    ]);
    const resolve = ['--resolve', `relay.example.org:${tlsPort}:127.0.0.1`, '--cacert', `${folder}/certificate.pem`];
    const curl = spawn('curl', ['-sS', ...resolve, `https://relay.example.org:${tlsPort}/version`]);
    expect(JSON.parse(await text(curl.stdout))).toMatchObject({ name: 'prompt-relay' });
  });

  it('reports in the format of the service that there is no host', async () => {
    await using front = await HaProxy.start([{ port: 1, agentPort: 1 }]);
    await front.untilSeen('a', ({ status }) => status === 'DOWN', 'down');
    const answer = await postJson(`${front.url}/ask`, { prompt: 'Hello' });
    expect([answer.status, answer.body.error, answer.headers.get('retry-after')]).toEqual([503, 'no_host', '5']);
  });
});
