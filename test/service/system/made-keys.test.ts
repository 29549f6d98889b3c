import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf } from '../../../src/shared/config/api-keys.js';
import { replaceFile } from '../../../src/shared/replace-file.js';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import { upload } from '../../support/clients/batches.js';
import { runCommand } from '../../support/clients/command.js';
import { headersOf, type NamedKeys, writeNamedKeys } from '../../support/doors/named-keys.js';
import { type Service, startService, twoWorkers } from '../../support/service/service.js';

const operator = headersOf('operator');
const ada = { 'x-user': 'ada' };

let folder: TemporaryFolder;
let named: NamedKeys;
let service: Service;
let env: Record<string, string>;

beforeAll(async () => {
  folder = await temporaryFolder();
  named = await writeNamedKeys();
  const file = named.env.MODEL_API_KEYS_FILE ?? '';
  await replaceFile(file, `${await readFile(file, 'utf8')}sso:ada:own_keys=1,scopes=ask\n`);
  env = {
    ...twoWorkers,
    ...named.env,
    MODEL_API_STATE_FOLDER: folder.path,
    MODEL_API_AUDIT_FILE: join(folder.path, 'audit.jsonl'),
    MODEL_API_TRUST_PROXY: '127.0.0.1',
    MODEL_API_USER_HEADER: 'X-User',
    MODEL_API_FILES: 'memory',
  };
  service = await startService({ env });
});
beforeEach(async () => {
  // The first try of a test may have left keys.
  const { body } = await service.get('/keys', operator);
  for (const { name, source } of body.keys as readonly { name: string; source: string }[])
    if (source !== 'operator') await service.delete(`/keys/${name}`, operator);
});
afterAll(async () => {
  await service.stop();
  await named[Symbol.asyncDispose]();
  await folder[Symbol.asyncDispose]();
});

const ask = (key: unknown) => service.post('/ask', { prompt: 'Hello' }, { 'x-api-key': String(key) });
type Made = Awaited<ReturnType<Service['post']>>;
const withKey = ({ body }: Made) => ({ 'x-api-key': String(body.key) });
const acts = async () => {
  const { body } = await service.get('/audit', operator);
  return (body.records as { act: string; by: string; target: string }[]).map(({ act, by, target }) => [
    act,
    by,
    target,
  ]);
};

describe('A key that is made over HTTP', () => {
  it('is never in the report of check --ask, even if the program prints it', async () => {
    const { key } = (await service.post('/keys', { name: 'printed' }, operator)).body;
    const program = join(folder.path, 'bad.sh');
    await writeFile(program, `#!/bin/sh\necho refused: ${key} >&2\nexit 3\n`, { mode: 0o755 });
    const cli = { MODEL_API_CLI: 'command', MODEL_API_CLI_COMMAND: program, MODEL_API_EXPOSE_STDERR: 'true' };
    const { stdout, stderr } = await runCommand(['check', '--ask'], { env: { ...env, ...cli } });
    expect(stdout).toMatch(/^answer .*refused: \[API key\]/m);
    expect(stdout + stderr).not.toContain(String(key));
  });

  it('works at once, survives a restart and a reload of the keys file, and works no more when it is deleted', async () => {
    const made = await service.post('/keys', { name: 'lab', scopes: ['ask'], rate: '60/60' }, operator);
    expect([made.status, made.headers.get('cache-control')]).toEqual([201, 'no-store']);
    const { key } = made.body;
    expect((await ask(key)).status).toBe(200);
    expect((await service.get('/keys', operator)).text).not.toContain(String(key));
    await service.stop();
    service = await startService({ env });
    const { status, headers } = await ask(key);
    expect([status, headers.get('ratelimit-policy')]).toEqual([200, '"per-client";q=60;w=60']);
    expect((await service.patch('/keys/lab', { rate: '50/60' }, operator)).body).toMatchObject({ rate: '50/60' });
    const rotated = await service.post('/keys/lab/rotate', {}, operator);
    await until(async () => (await ask(key)).status === 401, 'the old key to be refused');
    expect((await ask(rotated.body.key)).status).toBe(200);
    expect((await service.delete('/keys/lab', operator)).status).toBe(200);
    await until(async () => (await ask(rotated.body.key)).status === 401, 'the deleted key to be refused');
    expect((await service.get('/keys', operator)).body.keys).toMatchObject([
      ...['operator', 'alice', 'bob'].map((name) => ({ name, source: 'operator' })),
    ]);
  });

  it('works after a restart although the record of another key is damaged, which can only be deleted', async () => {
    const [good, bad] = await Promise.all(['good', 'bad'].map((name) => service.post('/keys', { name }, operator)));
    await service.stop();
    const path = join(folder.path, 'made-keys.json');
    const content = JSON.parse(await readFile(path, 'utf8'));
    const damage = (row: { name: string }) =>
      row.name === 'bad' ? { ...row, options: { scopes: 'everything' } } : row;
    await writeFile(path, JSON.stringify({ ...content, keys: content.keys.map(damage) }));
    service = await startService({ env });
    expect([(await ask(good?.body.key)).status, (await ask(bad?.body.key)).status]).toEqual([200, 401]);
    expect((await service.get('/health', operator)).body).toMatchObject({
      ...{ status: 'degraded', reasons: [{ part: 'keys', name: 'made_keys' }] },
    });
    expect((await service.post('/keys/bad/rotate', {}, operator)).status).toBe(403);
    for (const name of ['bad', 'good']) expect((await service.delete(`/keys/${name}`, operator)).status).toBe(200);
    expect((await service.get('/health', operator)).body.status).toBe('ok');
  });

  it('belongs to the person who has signed on', async () => {
    const made = await service.post('/keys', { name: 'laptop' }, ada);
    expect(made).toMatchObject({ status: 201, body: { owner: 'sso ada', scopes: ['ask'] } });
    expect((await ask(made.body.key)).status).toBe(200);
    expect((await service.post('/keys', { name: 'second' }, ada)).status).toBe(403);
    expect((await service.patch('/keys/laptop', { scopes: ['admin'] }, ada)).status).toBe(400);
    expect((await service.delete('/keys/laptop', { 'x-user': 'eve' })).status).toBe(403);
    expect((await service.delete('/keys/laptop', ada)).status).toBe(200);
  });

  it('sees nothing of a deleted key with its name, neither files nor jobs', async () => {
    const before = await service.post('/keys', { name: 'phone', scopes: ['ask', 'chat'] }, operator);
    const uploaded = await upload(service, 'secret', { purpose: 'user_data' }, withKey(before));
    const hanging = await service.post('/ask', { prompt: 'hang on' }, { ...withKey(before), prefer: 'respond-async' });
    expect([uploaded.status, hanging.status]).toEqual([200, 202]);
    await service.delete('/keys/phone', operator);
    for (const by of [operator, ada]) {
      const after = await service.post('/keys', { name: 'phone' }, by);
      expect(after.status).toBe(201);
      const { id } = uploaded.body;
      expect((await service.get(`/v1/files/${id}/content`, withKey(after))).status).toBe(404);
      expect((await service.get(`/jobs/${hanging.body.job_id}`, withKey(after))).status).toBe(404);
      expect((await service.get('/jobs', withKey(after))).body.jobs).toEqual([]);
      await service.delete('/keys/phone', by);
    }
    await service.delete(`/jobs/${hanging.body.job_id}`, operator);
  });

  it('remains another client than a key of the operator that gets its name, also after a restart', async () => {
    const made = await service.post('/keys', { name: 'desk' }, ada);
    const file = named.env.MODEL_API_KEYS_FILE ?? '';
    const others = (await readFile(file, 'utf8')).replace(/^desk:.*\n/m, ''); // of a first try
    await replaceFile(file, `${others}desk:sha256:${digestOf('the-key-of-the-operator')}\n`);
    const callerOf = async (key: unknown) => (await service.get('/usage', { 'x-api-key': String(key) })).body.caller;
    await until(async () => (await callerOf('the-key-of-the-operator')) !== undefined, 'the new line');
    for (let starts = 0; starts < 2; starts++) {
      expect(await callerOf('the-key-of-the-operator')).toMatchObject({ kind: 'key', client: 'desk' });
      const client = expect.stringMatching(/^ada\/desk~\w+$/);
      expect(await callerOf(made.body.key)).toMatchObject({ kind: 'sso', client });
      await service.log('config_warning');
      await service.stop();
      service = await startService({ env });
    }
    await service.delete('/keys/desk', ada);
  });

  it.each<[string, object, number]>([
    ['a name that exists', { name: 'alice' }, 400],
    ['no name', {}, 400],
    ['an unknown option', { name: 'x', own_keys: 3 }, 400],
    ['a wrong option', { name: 'x', tokens: '5/year' }, 400],
  ])('is refused with %s', async (_, body, status) => {
    expect((await service.post('/keys', body, operator)).status).toBe(status);
  });

  it('needs the scope admin or a person', async () => {
    for (const headers of [headersOf('alice'), { 'x-user': 'eve' }])
      expect((await service.post('/keys', { name: 'x' }, headers)).status).toBe(403);
    expect((await service.post('/keys', { name: 'x' })).status).toBe(401);
    expect((await service.delete('/keys/alice', operator)).status).toBe(403);
    expect((await service.delete('/keys/nothing', operator)).status).toBe(404);
    expect((await service.get('/audit', headersOf('alice'))).status).toBe(403);
  });
});

describe('The audit', () => {
  it('has a record of each act of an administrator, in the file too', async () => {
    const before = (await acts()).length;
    const { body } = await service.post(
      '/chat',
      { message: 'hang on' },
      { ...headersOf('bob'), prefer: 'respond-async' },
    );
    await service.post('/health/recheck', {}, operator);
    await service.post('/store/purge', { client: 'key bob' }, operator);
    process.kill(service.pid, 'SIGHUP');
    await service.log('reload_complete');
    expect(body.job_id).toBeDefined();
    expect((await acts()).slice(0, -before)).toEqual([
      ['service_reloaded', 'signal SIGHUP', null],
      ['client_purge_ended', 'key operator', 'key bob'],
      ['client_purged', 'key operator', 'key bob'],
      ['health_rechecked', 'key operator', null],
    ]);
    const lines = (await readFile(env.MODEL_API_AUDIT_FILE ?? '', 'utf8')).trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line).act).toReversed()).toEqual((await acts()).map(([act]) => act));
    expect((await stat(env.MODEL_API_AUDIT_FILE ?? '')).mode & 0o777).toBe(0o600);
  });
});
