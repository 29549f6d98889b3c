import { execFile } from 'node:child_process';
import { chmod, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { connectTo } from '../../../src/features/sqlite/node-sqlite.js';
import { migrations } from '../../../src/features/sqlite/schema.js';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { mountTinyDisk } from '../../support/basics/tiny-disk.js';
import { until } from '../../support/basics/until.js';
import { chat, chatOf, startListener } from '../../support/clients/chat.js';
import { metric } from '../../support/documents/exposition.js';
import { failingService, type Service, startService } from '../../support/service/service.js';

const run = promisify(execFile);

function storeIn(folder: Pick<TemporaryFolder, 'path'>) {
  const path = join(folder.path, 'state', 'store.db');
  return { path, env: { MODEL_API_STORE: `sqlite:${path}` } };
}

/** Returns the messages of a conversation as read back. */
async function messagesOf(service: Service, id: string): Promise<unknown> {
  const { body } = await service.get(`/chat/${id}/messages`);
  return body.messages;
}

describe('A restart with a store in a file', () => {
  it('preserves a conversation, which continues with the full history', async () => {
    await using folder = await temporaryFolder();
    const { env } = storeIn(folder);
    let id: string;
    let messages: unknown;
    {
      await using service = await startService({ env });
      ({ id } = await chat(service, 'My name is Ada'));
      messages = await messagesOf(service, id);
      expect(await metric(service, 'store_up')).toBe(1);
      expect(await service.stop()).toBe(0);
    }
    await using service = await startService({ env });
    expect(await service.log('store_opened')).toMatchObject({ store: 'sqlite', conversations: 1 });
    expect(await messagesOf(service, id)).toEqual(messages);
    const { response, count } = await chat(service, 'Who am I?', id);
    expect(response).toContain('Ada');
    expect(count).toBe(4);
  });

  it('preserves a response of the Responses API, which continues with the full history', async () => {
    await using folder = await temporaryFolder();
    const { env } = storeIn(folder);
    let first: unknown;
    {
      await using service = await startService({ env });
      ({ body: first } = await service.post('/v1/responses', { model: 'eliza', input: 'My name is Ada' }));
      expect(await service.stop()).toBe(0);
    }
    const { id } = first as { id: string };
    await using service = await startService({ env });
    expect((await service.get(`/v1/responses/${id}`)).body).toEqual(first);
    const next = { model: 'eliza', input: 'Who am I?', previous_response_id: id };
    expect((await service.post('/v1/responses', next)).text).toContain('Your name is Ada.');
  });

  it('does not restore deleted conversations, and preserves forks and owners', async () => {
    await using folder = await temporaryFolder();
    const { env } = storeIn(folder);
    const key = 'a-key-that-is-long-enough-for-this';
    const other = 'another-key-that-is-long-enough';
    const keys = { MODEL_API_KEY: key };
    const alice = { 'x-api-key': key };
    const ids: string[] = [];
    let forkId: unknown;
    {
      await using service = await startListener({ ...env, ...keys });
      for (const text of ['one', 'two']) ids.push((await chat(service, text, null, alice)).id);
      forkId = (await service.post(`/chat/${ids[0]}/fork`, {}, alice)).body.conversation_id;
      expect((await service.delete(`/chat/${ids[0]}`, alice)).status).toBe(200);
    }
    {
      await using service = await startListener({ ...env, ...keys });
      const statuses = [ids[0], ids[1], forkId].map(async (id) => (await service.get(`/chat/${id}`, alice)).status);
      expect(await Promise.all(statuses)).toEqual([404, 200, 200]);
      expect((await chat(service, 'more', String(forkId), alice)).response.split('\n')).toEqual(['one', 'more']);
    }
    await using stranger = await startListener({ ...env, MODEL_API_KEY_FILE: await keyFile(folder, other) });
    expect((await stranger.get(`/chat/${ids[1]}`, { 'x-api-key': other })).status).toBe(404);
  });
});

async function keyFile(folder: TemporaryFolder, key: string): Promise<string> {
  const path = join(folder.path, 'keys');
  await writeFile(path, `bob ${key}\n`, { mode: 0o600 });
  return path;
}

describe('Usage with a store in a file', () => {
  it('survives a restart, and kill -9 except for the last second', async () => {
    await using folder = await temporaryFolder();
    const { env, path } = storeIn(folder);
    const written = () =>
      stat(`${path}-wal`).then(
        ({ mtimeMs }) => mtimeMs,
        () => 0,
      );
    const jobs = async (service: Service) => {
      const rows = (await service.get('/usage')).body.usage as { jobs: { ok: number } }[];
      return rows.map((row) => row.jobs.ok);
    };
    {
      await using service = await startListener(env);
      for (let count = 0; count < 3; count++) await service.post('/ask', { prompt: 'Hi' });
    }
    const service = await startListener(env);
    expect(await jobs(service)).toEqual([3]);
    const before = await written();
    await service.post('/ask', { prompt: 'Hi' });
    await new Promise((resolve) => setTimeout(resolve, 1500)); // another write may come before that of the usage
    await until(async () => (await written()) !== before, 'the usage of the last second to be written');
    service.process.kill('SIGKILL');
    await service.stop();
    await using again = await startListener(env);
    expect(await jobs(again)).toEqual([4]);
  });
});

describe('A service whose store file is moved away while it runs', () => {
  it.each(['', '-wal'])('refuses data that would be lost, and continues once store.db%s is back', async (ending) => {
    await using folder = await temporaryFolder();
    const { env, path } = storeIn(folder);
    await using service = await startListener(env);
    const { id } = await chat(service, 'one');
    await rename(`${path}${ending}`, join(folder.path, 'away'));
    const turn = { message: 'two', conversation_id: id };
    expect((await service.post('/chat', turn)).body.error).toBe('store_unavailable');
    expect((await service.log('store_down')).error).toBe(`${path}${ending} was deleted or replaced`);
    expect((await service.get(`/chat/${id}`)).body.message_count).toBe(2);
    await rename(join(folder.path, 'away'), `${path}${ending}`);
    await service.log('store_back');
    expect(chatOf(await service.post('/chat', turn)).count).toBe(4);
  });

  it('can still save all data in a backup', async () => {
    await using folder = await temporaryFolder();
    const { env, path } = storeIn(folder);
    const operator = { 'x-api-key': 'a-key-that-is-long-enough-for-this' };
    const keyed = { ...env, MODEL_API_KEY: operator['x-api-key'] };
    const service = await startListener(keyed);
    const { id } = await chat(service, 'one', null, operator);
    for (const ending of ['', '-wal']) await rm(`${path}${ending}`);
    expect((await service.post('/store/backup', { name: 'saved.db' }, operator)).status).toBe(200);
    await service.stop();
    await rename(join(folder.path, 'state', 'saved.db'), path);
    await using again = await startListener(keyed);
    expect((await chat(again, 'two', id, operator)).response.split('\n')).toEqual(['one', 'two']);
  });
});

describe('A service whose store cannot be opened', () => {
  /** Returns the faults of the start, one sentence each. The service exits with 78. */
  async function faultOf(env: Readonly<Record<string, string>>): Promise<string> {
    const { code, logs } = await failingService(env);
    expect(code).toBe(78);
    return logs.flatMap(({ event, error }) => (event === 'config_invalid' ? [String(error)] : [])).join('\n');
  }

  it('reports a newer one, and one that others can read or change', async () => {
    await using folder = await temporaryFolder();
    const { env, path } = storeIn(folder);
    await (await startListener(env)).stop();
    await chmod(path, 0o644);
    expect(await faultOf(env)).toBe(`MODEL_API_STORE: others can read ${path}: chmod 600`);
    await chmod(path, 0o600);
    await chmod(join(folder.path, 'state'), 0o777);
    expect(await faultOf(env)).toContain('others can write to the folder');
    await chmod(join(folder.path, 'state'), 0o700);
    const sql = connectTo(path);
    sql.exec('PRAGMA user_version = 99');
    sql.close();
    expect(await faultOf(env)).toContain(
      `${path} belongs to a newer prompt-relay (version 99, this one knows ${migrations.length})`,
    );
  });
});

const isRoot = process.getuid?.() === 0;
if (!isRoot) process.stderr.write('Skipped, because only root can mount a disk: a disk that is full or read-only.\n');

(isRoot ? describe : describe.skip)('A separate disk', () => {
  it('may be full: failed requests leave no data, and the service recovers when there is space', async () => {
    await using disk = await mountTinyDisk(1024 * 1024);
    const { env } = storeIn(disk);
    let id: string;
    {
      await using service = await startListener(env);
      ({ id } = await chat(service, 'one'));
      await disk.fill();
      const long = 'x'.repeat(300_000); // larger than the free space within the file
      for (let attempt = 0; attempt < 3; attempt++) {
        const refused = await service.post('/chat', { message: long, conversation_id: id });
        expect(refused.status).toBe(503);
        expect(refused.body).toMatchObject({ error: 'store_unavailable', retry_after_seconds: 5 });
        expect(refused.headers.get('retry-after')).toBe('5');
      }
      expect((await service.delete(`/chat/${id}`)).body.error).toBe('store_unavailable');
      expect((await service.post(`/chat/${id}/fork`, {})).body.error).toBe('store_unavailable');
      const turns =
        /^(POST \/chat|DELETE \/chat\/{conversation_id}|POST \/chat\/{conversation_id}\/fork) 503 store_unavailable$/;
      expect(service.contract.unseen.filter((answer) => turns.test(answer))).toEqual([]);
      expect((await service.get('/health')).body).toMatchObject({
        status: 'degraded',
        reasons: [{ part: 'store', name: 'sqlite', message: expect.stringContaining('the store (sqlite) is down') }],
      });
      expect(await metric(service, 'store_up')).toBe(0);
      expect(service.logs.filter(({ event }) => event === 'store_down')).toHaveLength(1);
      expect((await service.get(`/chat/${id}`)).body.message_count).toBe(2);
      expect((await service.get('/chat')).body.conversations).toHaveLength(1);
      expect((await service.post('/ask', { prompt: 'Hi' })).status).toBe(200);
      await disk.empty();
      await service.log('store_back');
      const { response } = chatOf(await service.post('/chat', { message: 'two', conversation_id: id }));
      expect(response.split('\n')).toEqual(['one', 'two']);
      expect((await service.get('/health')).body.status).toBe('ok');
      const events = service.logs.map(({ event }) => event);
      expect(events.filter((event) => /^store_(down|back)$/.test(event))).toEqual(['store_down', 'store_back']);
    }
    await using service = await startListener(env);
    expect((await chat(service, 'three', id)).response.split('\n')).toEqual(['one', 'two', 'three']);
  });
});

describe('A service that shuts down', () => {
  it('leaves one file, and no write-ahead log', async () => {
    await using folder = await temporaryFolder();
    const { env, path } = storeIn(folder);
    const service = await startListener(env);
    await chat(service, 'one');
    expect(await service.stop()).toBe(0);
    const sql = connectTo(path);
    expect(sql.prepare('PRAGMA integrity_check').get()).toMatchObject({ integrity_check: 'ok' });
    expect(sql.prepare('SELECT count(*) AS n FROM turns').get()).toMatchObject({ n: 1 });
    sql.close();
    await until(async () => (await run('ls', [join(folder.path, 'state')])).stdout === 'store.db\n', 'one file');
  });
});
