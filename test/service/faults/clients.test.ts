import { once } from 'node:events';
import { chmod, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { digestOf } from '../../../src/shared/config/api-keys.js';
import { replaceFile } from '../../../src/shared/replace-file.js';
import { temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import { uploaded } from '../../support/clients/asker.js';
import { canBecomeOthers, sendAs, strangers, type UserRequest } from '../../support/clients/other-users.js';
import { exchangeFrom, jsonPost, RawConnection, request } from '../../support/clients/raw-http.js';
import { metric } from '../../support/documents/exposition.js';
import { untilJobs } from '../../support/jobs/jobs.js';
import { type Service, startService } from '../../support/service/service.js';

const { ada, bob } = strangers;
const ask: UserRequest = { method: 'POST', path: '/ask', body: { prompt: 'hello' } };
const chat = (fields: object): UserRequest => ({
  method: 'POST',
  path: '/chat',
  body: { message: 'hello', ...fields },
});

/** Returns the clients in the log of the answered requests, by path. */
async function clientsIn(service: Service, count: number): Promise<unknown[]> {
  const records = () =>
    service.logs.filter(({ event, path }) => event === 'http_request_completed' && /^\/(ask|chat)/.test(String(path)));
  await until(() => records().length >= count, `${count} requests in the log`);
  return records().map(({ client }) => client);
}

(canBecomeOthers ? describe : describe.skip)('Two local users without keys', () => {
  it('are distinguished, and neither can read, continue or delete a conversation of the other', async () => {
    await using service = await startService();
    const [begun] = await sendAs(ada, service, [chat({})]);
    const id = String(begun?.body.conversation_id);
    const path = `/chat/${id}`;
    const tries = [{ path }, chat({ conversation_id: id }), { method: 'DELETE', path }];
    const refused = await sendAs(bob, service, tries);
    expect(refused.map(({ status, body }) => [status, body.error])).toEqual([
      [404, 'not_found'],
      [400, 'validation_error'],
      [404, 'not_found'],
    ]);
    const own = await sendAs(ada, service, tries);
    expect(own.map(({ status }) => status)).toEqual([200, 200, 200]);
    const clients = await clientsIn(service, 7);
    expect(clients).toEqual(
      ['uid-64001', ...Array(3).fill('uid-64002'), ...Array(3).fill('uid-64001')].map((name) => `user ${name}`),
    );
  });

  it('are distinguished on a Unix socket too', async () => {
    await using folder = await temporaryFolder();
    await chmod(folder.path, 0o755);
    const socketPath = join(folder.path, 'socket');
    await using service = await startService({ env: { MODEL_API_SOCKET: socketPath } });
    await chmod(socketPath, 0o666);
    for (const uid of [ada, bob, ada]) {
      const [answer] = await sendAs(uid, service, [ask], { socketPath });
      expect(answer?.status).toBe(200);
    }
    expect(await clientsIn(service, 3)).toEqual(['user uid-64001', 'user uid-64002', 'user uid-64001']);
  });

  it('may send requests if they are allowed users, and otherwise get 403, except for public pages', async () => {
    await using service = await startService({
      env: { MODEL_API_LOCAL_USERS: 'require', MODEL_API_ALLOWED_USERS: `nobody,${ada}` },
    });
    const [allowed] = await sendAs(ada, service, [ask]);
    expect(allowed?.status).toBe(200);
    const [asked, looked, health] = await sendAs(bob, service, [ask, { path: '/chat/x' }, { path: '/health' }]);
    const message = 'the user uid-64002 is not in MODEL_API_ALLOWED_USERS';
    for (const refused of [asked, looked])
      expect(refused).toMatchObject({ status: 403, body: { error: 'forbidden', message } });
    expect(health?.status).toBe(200);
  });

  it('share one address behind a trusted proxy, and are refused there if a user name is required', async () => {
    const env = { MODEL_API_TRUST_PROXY: '127.0.0.1' };
    await using service = await startService({ env });
    await sendAs(ada, service, [ask, { ...ask, headers: { 'x-forwarded-for': '192.0.2.7' } }]);
    expect(await clientsIn(service, 2)).toEqual(['address 127.0.0.1', 'address 192.0.2.7']);
    await using strict = await startService({ env: { ...env, MODEL_API_LOCAL_USERS: 'require' } });
    const [refused] = await sendAs(ada, strict, [ask]);
    expect(refused).toMatchObject({ status: 403, body: { message: expect.stringContaining('MODEL_API_LOCAL_USERS') } });
  });
});

describe('The rate limit', () => {
  it.each(['identify', 'off'])('is one for all loopback addresses (local users: %s)', async (localUsers) => {
    await using service = await startService({
      env: { MODEL_API_RATE_LIMIT_MAX_REQUESTS: '3', MODEL_API_LOCAL_USERS: localUsers },
    });
    const hosts = Array.from({ length: 40 }, (_, index) => `127.0.0.${index + 2}`);
    const bytes = jsonPost('/ask', '{"prompt":"hello","model":"echo"}');
    const answers = await Promise.all(hosts.map((host) => exchangeFrom(host, service.port, bytes)));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(3);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(37);
  });
});

describe('Wrong API keys', () => {
  const key = 'the-right-key-of-this-test';
  const env = { MODEL_API_KEY: key, MODEL_API_WORKERS: '2' };
  const statusFor = async (service: Service, sent: string) =>
    (await service.post('/ask', { prompt: 'hi', model: 'echo' }, { 'x-api-key': sent })).status;

  it('get 429 after ten of them across all workers, while the right key from the same address is accepted', async () => {
    await using service = await startService({ env });
    const statuses: number[] = [];
    for (let times = 0; times < 40; times++) statuses.push(await statusFor(service, `wrong-key-${times}`));
    expect(statuses.filter((status) => status === 401)).toHaveLength(10);
    expect(statuses.slice(10)).toEqual(Array.from({ length: 30 }, () => 429));
    const refused = await service.post('/ask', {}, { 'x-api-key': 'wrong-key' });
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(20);
    expect(await statusFor(service, key)).toBe(200);
    expect(await service.log('wrong_keys')).toMatchObject({ level: 'warn', seconds: 30 });
    expect(service.logs.filter(({ event }) => event === 'wrong_keys')).toHaveLength(1);
    expect(JSON.stringify(service.logs)).not.toMatch(/wrong-key-|the-right-key/);
  });

  (canBecomeOthers ? it : it.skip)('of one local user do not block another user', async () => {
    await using service = await startService({ env });
    const guess = { ...ask, headers: { 'x-api-key': 'wrong-key' } };
    const guesses = await sendAs(
      ada,
      service,
      Array.from({ length: 12 }, () => guess),
    );
    expect(guesses.map(({ status }) => status)).toEqual([...Array(10).fill(401), 429, 429]);
    const [mistake] = await sendAs(bob, service, [guess]);
    expect(mistake?.status).toBe(401);
    expect(await service.log('wrong_keys')).toMatchObject({ client: 'user uid-64001' });
  });
});

describe('The keys file of a running service', () => {
  const lineOf = (name: string, options = '') => `${name}:sha256:${digestOf(`key-of-${name}`)}${options}\n`;
  const headersOf = (name: string) => ({ 'x-api-key': `key-of-${name}` });
  const statusFor = async (service: Service, name: string) =>
    (await service.post('/ask', { prompt: 'hi', model: 'echo' }, headersOf(name))).status;

  it('rejects a removed key, accepts a new one, and survives faults', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'keys');
    await writeFile(path, lineOf('ada') + lineOf('bob'));
    await using service = await startService({ env: { MODEL_API_KEYS_FILE: path, MODEL_API_WORKERS: '2' } });
    // A request in the moment of the removal is cut, as after a cancel.
    const statusOrCut = (name: string) => statusFor(service, name).catch(() => null);
    expect([await statusFor(service, 'ada'), await statusFor(service, 'bob')]).toEqual([200, 200]);
    await replaceFile(path, lineOf('bob'));
    await until(async () => {
      for (let times = 0; times < 8; times++) {
        // beyond ten wrong keys, the answer is 429
        if (![401, 429].includes((await statusOrCut('ada')) ?? 0)) return false;
      }
      return true;
    }, 'the key to be refused by both workers');
    await replaceFile(path, `${lineOf('bob')}${lineOf('max')}eve\n`);
    expect(await service.log('keys_rejected')).toMatchObject({ error: 'line 3: must begin with name:sha256:' });
    expect([await statusFor(service, 'bob'), await statusFor(service, 'max')]).toEqual([200, 200]);
    await replaceFile(path, `${lineOf('bob', ':scopes=ask+metrics')}@physics cost=200/month\n`);
    await until(
      async () => [401, 429].includes((await statusOrCut('max')) ?? 0),
      'the key to be refused despite the fault',
    );
    expect(await statusFor(service, 'bob')).toBe(200);
    expect((await service.get('/health', headersOf('bob'))).body).toMatchObject({ reasons: [{ part: 'keys' }] });
    expect((await service.get('/metrics', headersOf('bob'))).text).toContain(
      'model_api_config_file_faults{file="keys"} 1',
    );
    await replaceFile(path, lineOf('bob') + lineOf('eve'));
    await until(async () => (await statusFor(service, 'eve')) === 200, 'the new key to be accepted');
    expect(await statusFor(service, 'bob')).toBe(200);
  });

  it('ends the running and waiting jobs of a removed key within two seconds', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'keys');
    await writeFile(path, lineOf('ada') + lineOf('root', ':scopes=ask+admin'));
    const env = { MODEL_API_CLI: 'command', MODEL_API_CLI_COMMAND: "sh -c 'cat; exec sleep 600'" };
    await using service = await startService({
      env: { ...env, MODEL_API_KEYS_FILE: path, MODEL_API_MAX_CONCURRENT: '1', MODEL_API_TIMEOUT: '300' },
    });
    const running = service.post('/ask', { prompt: 'hi' }, headersOf('ada'));
    await untilJobs(service, 1, 0);
    const background = { ...headersOf('ada'), Prefer: 'respond-async' };
    const { body: job } = await service.post('/ask', { prompt: 'hi' }, background);
    expect((await service.get(`/jobs/${job.job_id}`, headersOf('ada'))).body).toMatchObject({ status: 'queued' });
    const startedMs = performance.now();
    await replaceFile(path, lineOf('root', ':scopes=ask+admin'));
    expect((await running.catch(() => null))?.status).not.toBe(200); // the connection closes, as after a cancel
    await service.log('background_job_ended');
    await untilJobs(service, 0, 0);
    expect(performance.now() - startedMs).toBeLessThan(20_000); // the job would run for five minutes
    expect(await service.jobProcesses()).toEqual([]);
  });

  it('ends the uploads, downloads and bodies of a removed key, and stores nothing of them', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'keys');
    await writeFile(path, lineOf('ada') + lineOf('bob'));
    await using service = await startService({ env: { MODEL_API_KEYS_FILE: path, MODEL_API_FILES: 'memory' } });
    const asker = { url: service.url, headers: headersOf('ada') };
    const stored = await uploaded(asker, Buffer.alloc(32 * 1024 * 1024));
    const key = 'X-API-Key: key-of-ada';
    const form = 'Content-Type: multipart/form-data; boundary=b';
    const part = '--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nhalf';
    using upload = await RawConnection.open(service.port);
    upload.send(request('POST /v1/files', [key, form, 'Content-Length: 1000'], part));
    using body = await RawConnection.open(service.port);
    body.send(jsonPost('/ask', '{"prompt"', [key, 'Content-Length: 1000']));
    const reader = connect(service.port, '127.0.0.1').on('error', () => {});
    reader.write(request(`GET /v1/files/${stored}/content`, [key]));
    await once(reader, 'readable'); // from now on, the client reads nothing
    const files = async (name: string) => (await service.get('/v1/files', headersOf(name))).status;
    await until(async () => (await metric(service, 'http_requests_in_flight')) >= 3, 'the requests to be open');
    await replaceFile(path, lineOf('bob'));
    for (const each of [upload, body]) {
      expect(await each.answer()).toMatchObject({ status: 401, body: { error: expect.anything() } });
      await each.closed();
    }
    const isCut = ({ path, status_code }: Record<string, unknown>) =>
      String(path).endsWith('/content') && status_code === 499;
    await until(() => service.logs.some(isCut), 'the end of the download');
    reader.destroy();
    expect([await files('ada'), await files('bob')]).toEqual([401, 200]);
    await replaceFile(path, lineOf('ada') + lineOf('bob'));
    await until(async () => (await files('ada')) === 200, 'the key to be accepted again');
    const { body: list } = await service.get('/v1/files', headersOf('ada'));
    expect((list.data as { id: string }[]).map(({ id }) => id)).toEqual([stored]);
  });

  it('limits each key to its scopes, models and rate, and shows process ids only to a key with the scope admin', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'keys');
    const file = [
      lineOf('ada', ':scopes=ask,models=echo'),
      lineOf('bob', ':scopes=chat+admin,rate=2/60'),
      lineOf('eve', ':scopes=metrics'),
      lineOf('old', ':expires=2020-01-01'),
    ];
    await writeFile(path, file.join(''));
    await using service = await startService({
      env: { MODEL_API_KEYS_FILE: path, MODEL_API_METRICS_AUTH: 'true', MODEL_API_WORKERS: '2' },
    });
    const [adas, bobs, eves] = ['ada', 'bob', 'eve'].map(headersOf) as [object, object, object] as Record<
      string,
      string
    >[];
    const summary = ({ status, body }: Awaited<ReturnType<Service['get']>>) => [status, body.message];
    expect(summary(await service.post('/chat', { message: 'hi' }, adas))).toEqual([
      403,
      'this API key lacks the scope chat: ask the operator for it',
    ]);
    expect(summary(await service.post('/health/recheck', '', adas))).toEqual([
      403,
      'this API key lacks the scope admin: ask the operator for it',
    ]);
    expect(summary(await service.get('/metrics', bobs))).toEqual([
      403,
      'this API key lacks the scope metrics: ask the operator for it',
    ]);
    expect((await service.get('/metrics')).status).toBe(401);
    expect((await service.get('/metrics', eves)).status).toBe(200);
    expect(summary(await service.post('/ask', { prompt: 'hi' }, headersOf('old')))).toEqual([
      401,
      expect.stringMatching(/^the API key expired at .*Z: ask the operator for a new one$/),
    ]);
    expect(summary(await service.post('/ask', { prompt: 'hi', model: 'eliza' }, adas))).toEqual([
      400,
      'model: must be one of echo (the models of its API key)',
    ]);
    expect((await service.post('/ask', { prompt: 'hi' }, adas)).body).toMatchObject({ response: 'hi', model: 'echo' });
    const chats = [];
    for (let times = 0; times < 3; times++) chats.push((await service.post('/chat', { message: 'hi' }, bobs)).status);
    expect(chats).toEqual([200, 200, 429]);
    const pids = async (headers: Record<string, string>) => {
      const { body } = await service.get('/health', headers);
      return (body.observability as { workers: object[] }).workers.map((worker) => 'pid' in worker);
    };
    expect(await pids({})).toEqual([false, false]);
    expect(await pids(adas ?? {})).toEqual([false, false]);
    expect(await pids(bobs ?? {})).toEqual([true, true]);
  });
});
