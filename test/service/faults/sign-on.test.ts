import { chmod, writeFile } from 'node:fs/promises';
import { request as send } from 'node:http';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { replaceFile } from '../../../src/shared/replace-file.js';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import { canBecomeOthers, sendAs, strangers } from '../../support/clients/other-users.js';
import { exchangeFrom, jsonPost, type RawAnswer, RawConnection, request } from '../../support/clients/raw-http.js';
import { expectSound } from '../../support/doors/door.js';
import { type Service, startService } from '../../support/service/service.js';

/** Address of the trusted proxy. Tests connect from it, or from another address of loopback. */
const proxy = '127.0.0.9';
const ada = 'X-User: ada@example.org';
const key = 'a-key-of-some-length-1234';
const operators = 'X-Groups: operators';

let folder: TemporaryFolder;
let keysFile: string;
let service: Service;

const firstLines = 'sso:group:operators:scopes=ask+chat+admin\nsso:*:rate=100/60\n';

beforeAll(async () => {
  folder = await temporaryFolder();
  await chmod(folder.path, 0o755);
  keysFile = join(folder.path, 'keys');
  await writeFile(keysFile, firstLines, { mode: 0o600 });
  service = await startService({
    env: {
      MODEL_API_TRUST_PROXY: proxy,
      MODEL_API_USER_HEADER: 'X-User',
      MODEL_API_GROUPS_HEADER: 'X-Groups',
      MODEL_API_KEYS_FILE: keysFile,
      MODEL_API_KEY: key,
      MODEL_API_SOCKET: join(folder.path, 'socket'),
    },
  });
});
afterAll(async () => {
  await expectSound(service, { 'x-api-key': key });
  await service.stop();
  await folder[Symbol.asyncDispose]();
});

/** Sends a request. The proxy names the groups of each person: none if the test names none. */
function ask(bytes: Buffer, from = proxy): Promise<RawAnswer> {
  const text = bytes.toString('latin1');
  const isWhole = from !== proxy || !/^x-user:/im.test(text) || /^x-groups:/im.test(text);
  const sent = isWhole ? bytes : Buffer.from(text.replace(/\r\n/, '\r\nX-Groups:\r\n'), 'latin1');
  return exchangeFrom(from, service.port, sent);
}

async function okJobsOf(person: string): Promise<number> {
  const usage = (await ask(request('GET /usage', [person]))).body.usage as readonly { jobs: { ok: number } }[];
  return usage[0]?.jobs.ok ?? 0;
}

const caller = async (...headers: string[]) => (await ask(request('GET /usage', headers))).body.caller;

describe('A person whom the trusted proxy names', () => {
  it('asks, continues a conversation, and sees only its own usage', async () => {
    const okBefore = await okJobsOf(ada);
    const { status, body } = await ask(jsonPost('/chat', '{"message":"Hello"}', [ada]));
    expect(status).toBe(200);
    const path = `/chat/${String(body.conversation_id)}`;
    expect((await ask(request(`GET ${path}`, [ada]))).status).toBe(200);
    expect((await ask(request(`GET ${path}`, ['X-User: eve@example.org']))).status).toBe(404);
    expect((await ask(request('GET /usage', [ada]))).body).toMatchObject({
      caller: { client: 'ada@example.org', kind: 'sso', scopes: ['ask', 'chat'] },
      usage: [{ client: 'ada@example.org', kind: 'sso', jobs: { ok: okBefore + 1 } }],
    });
    const record = await service.log('http_request_completed', ({ path: logged }) => logged === '/chat');
    expect(record.client).toBe('sso ada@example.org');
  });

  it('is counted by the rate of its line', async () => {
    const { headers } = await ask(jsonPost('/ask', '{"prompt":"Hello"}', ['X-User: joe']));
    expect(headers['ratelimit-policy']).toBe('"per-client";q=100;w=60');
  });

  it('has the rights of a changed line within a second', async () => {
    await replaceFile(keysFile, firstLines); // a first try may have left others
    await until(async () => JSON.stringify(await caller(ada, operators)).includes('"admin"'), 'the first lines');
    await replaceFile(keysFile, 'sso:*:rate=100/60\nsso:ada@example.org:scopes=metrics\n');
    await until(async () => JSON.stringify(await caller(ada, operators)).includes('["metrics"]'), 'the changed line');
    expect((await ask(jsonPost('/ask', '{"prompt":"Hello"}', [ada, operators]))).status).toBe(403);
    await replaceFile(keysFile, firstLines);
    await until(async () => JSON.stringify(await caller(ada, operators)).includes('"admin"'), 'the old lines');
  });
});

describe('A forged header', () => {
  const forged: [string, string[]][] = [
    ['a person', [ada]],
    ['an operator', [ada, operators]],
    ['groups alone', [operators]],
    ['a person in small letters', ['x-user: ada@example.org']],
    ['a person, with the address of the proxy', [ada, `X-Forwarded-For: ${proxy}`, `Forwarded: for=${proxy}`]],
    ['a person with _', ['X_User: ada@example.org']],
  ];

  it.each(forged)('is refused from another address: %s', async (_, headers) => {
    for (const path of ['GET /usage', 'GET /health', 'GET /console/', 'GET /nothing', 'POST /v1/messages'])
      expect((await ask(request(path, headers), '127.0.0.1')).status).toBe(400);
  });

  it('is refused on the Unix socket', async () => {
    const options = { socketPath: join(folder.path, 'socket'), path: '/usage', headers: { 'X-User': 'ada' } };
    const status = await new Promise((resolve, reject) => {
      send(options, (res) => void text(res).then(() => resolve(res.statusCode)))
        .on('error', reject)
        .end();
    });
    expect(status).toBe(400);
  });

  it.each<[string, string]>([
    ['a space before the colon', 'X-User : ada'],
    ['a folded line', 'X-Other: a\r\n X-User: ada'],
    ['a bare CR', 'X-Other: a\rX-User: ada'],
    ['a bare LF', 'X-Other: a\nX-User: ada'],
    ['NUL', 'X-User: ada\0'],
    ['a name that begins with a space', ' X-User: ada'],
  ])('does not get in by %s', async (_, line) => {
    for (const from of [proxy, '127.0.0.1']) {
      const { status, text: body } = await ask(request('GET /usage', ['X-Before: 1', line]), from);
      expect(body).not.toContain('"sso"');
      expect([400, 401]).toContain(status);
    }
  });

  it('after a request of the proxy on the same connection counts for its own request only', async () => {
    using connection = await RawConnection.open(service.port, proxy);
    connection.send(
      Buffer.concat([
        request('GET /usage', [ada, 'X-Groups:']),
        request('GET /usage'),
        request('GET /usage', ['X-User: eve', 'X-Groups:']),
      ]),
    );
    expect((await connection.answer()).body.caller).toMatchObject({ client: 'ada@example.org' });
    expect((await connection.answer()).status).toBe(401);
    expect((await connection.answer()).body.caller).toMatchObject({ client: 'eve' });
  });
});

describe('A proxy on this machine', () => {
  const env = { MODEL_API_TRUST_PROXY: '127.0.0.1', MODEL_API_USER_HEADER: 'X-User' };

  (canBecomeOthers ? it : it.skip)('is believed only if its user may call', async () => {
    await using other = await startService({ env: { ...env, MODEL_API_ALLOWED_USERS: userInfo().username } });
    expect((await other.get('/usage', { 'X-User': 'ada' })).status).toBe(200);
    const forged = { path: '/usage', headers: { 'X-User': 'ada' } };
    expect(await sendAs(strangers.ada, other, [forged])).toMatchObject([{ status: 403 }]);
    expect((await other.get('/usage', { 'X-User': 'ada' })).body.caller).toMatchObject({ client: 'ada', kind: 'sso' });
  });

  it('causes a warning at the start if each local user can pose as it', async () => {
    await using other = await startService({ env });
    const { warning } = await other.log('config_warning');
    expect(warning).toContain('each user of this machine can pose as the proxy');
  });
});
