import { chmod, copyFile, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { connectTo } from '../../../src/features/sqlite/node-sqlite.js';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { chat, startListener } from '../../support/clients/chat.js';
import { envFor, runCommand } from '../../support/clients/command.js';
import type { Service } from '../../support/service/service.js';

const key = 'a-key-that-is-long-enough-for-this';
const operator = { 'x-api-key': key };
const secret = 'wombat';

function storeIn(folder: TemporaryFolder) {
  const path = join(folder.path, 'state', 'store.db');
  return { path, env: { MODEL_API_STORE: `sqlite:${path}` } };
}

/** Starts a service with the key of an operator. */
function startWithKey(env: Readonly<Record<string, string>>): Promise<Service> {
  return startListener({ ...env, MODEL_API_KEY: key });
}

/** Runs `prompt-relay store`, with or without a running service. */
async function storeCommand(args: readonly string[], env: Readonly<Record<string, string>>, service?: Service) {
  const surroundings = { ...env, ...(service !== undefined && { ...envFor(service), MODEL_API_KEY: key }) };
  return runCommand(['store', ...args], { env: surroundings });
}

async function hasSecret(folder: string, names?: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const name of names ?? (await readdir(folder))) {
    if ((await readFile(join(folder, name), 'latin1')).includes(secret)) found.push(name);
  }
  return found.sort();
}

/** Stores a conversation of two turns, a background job, an idempotent answer, and usage. */
async function fill(service: Service): Promise<string> {
  const { id } = await chat(service, `${secret} one`, null, operator);
  await chat(service, `${secret} two`, id, operator);
  const accepted = await service.post('/ask', { prompt: `${secret} job` }, { ...operator, prefer: 'respond-async' });
  const { job_id: job } = accepted.body;
  for (let status: unknown; status !== 'succeeded'; ) ({ status } = (await service.get(`/jobs/${job}`, operator)).body);
  await service.post('/ask', { prompt: `${secret} once` }, { ...operator, 'idempotency-key': 'one' });
  return id;
}

describe('A backup', () => {
  it('of a running service is complete, readable for its owner only, and replaces no file', async () => {
    await using folder = await temporaryFolder();
    const { env, path } = storeIn(folder);
    const backup = join(dirname(path), 'backup.db');
    let id: string;
    {
      await using service = await startWithKey(env);
      id = await fill(service);
      const made = await storeCommand(['backup', 'backup.db'], env, service);
      expect([made.code, made.stdout]).toEqual([0, expect.stringMatching(`^${backup}: `)]);
      expect((await stat(backup)).mode & 0o777).toBe(0o600);
      expect((await storeCommand(['backup', backup], env, service)).code).toBe(65);
      const elsewhere = await storeCommand(['backup', join(folder.path, 'b.db')], env, service);
      expect([elsewhere.code, elsewhere.stderr]).toEqual([
        64,
        expect.stringContaining(`name a file in ${dirname(path)}`),
      ]);
      expect((await service.post('/store/backup', { name: '../b.db' }, operator)).status).toBe(400);
      await chat(service, 'after the backup', id, operator);
    }
    expect((await storeCommand(['verify', backup], env)).stdout).toMatch(/no faults/);
    await rm(path);
    await copyFile(backup, path);
    await using again = await startWithKey(env);
    expect((await again.get(`/chat/${id}`, operator)).body.message_count).toBe(4);
    expect((await chat(again, 'three', id, operator)).response.split('\n')).toHaveLength(3);
  });

  it('of an unused file needs no service, and may be written anywhere', async () => {
    await using folder = await temporaryFolder();
    const { env, path } = storeIn(folder);
    {
      await using service = await startWithKey(env);
      await fill(service);
    }
    const backup = join(folder.path, 'backup.db');
    const before = await readFile(path);
    expect((await storeCommand(['backup', backup], env)).code).toBe(0);
    expect((await storeCommand(['backup', backup], env)).code).toBe(65);
    expect((await readFile(path)).subarray(100).equals(before.subarray(100))).toBe(true);
    expect((await stat(backup)).mode & 0o777).toBe(0o600);
    const report = JSON.parse((await storeCommand(['verify', backup, '--json'], env)).stdout);
    expect(report).toMatchObject({ faults: [], rows: { conversations: 1, turns: 2, jobs: 1, usage: 1 } });
    expect(await readdir(folder.path)).toEqual(['backup.db', 'state']);
  });

  it('cannot have a name that the store uses, because the next start would remove it', async () => {
    await using folder = await temporaryFolder();
    const { env, path } = storeIn(folder);
    await (await startWithKey(env)).stop();
    for (const ending of ['-wal', '-journal']) {
      const { code, stderr } = await storeCommand(['backup', path + ending], env);
      expect([code, stderr]).toEqual([65, expect.stringContaining('is a name of the store itself')]);
    }
  });

  it('is rejected for Redis, which makes its backups itself, and for a store in memory', async () => {
    const redis = await storeCommand(['backup', 'b'], { MODEL_API_STORE: 'redis://127.0.0.1' });
    expect([redis.code, redis.stderr]).toEqual([64, expect.stringContaining('Redis creates its own backups')]);
    await using service = await startWithKey({});
    const memory = await storeCommand(['backup', 'b'], {}, service);
    expect([memory.code, memory.stderr]).toEqual([65, expect.stringContaining('the store is in memory')]);
    const other = await storeCommand(['purge', '--client', 'key a'], { MODEL_API_STORE: 'redis://127.0.0.1' }, service);
    expect([other.code, other.stderr]).toEqual([69, expect.stringContaining('does not use Redis')]);
    const unnamed = await storeCommand(['purge'], {});
    expect([unnamed.code, unnamed.stderr]).toEqual([64, expect.stringContaining('name the client with --client')]);
  });
});

describe('A check of the store', () => {
  it('of an empty file reports that, and leaves it empty', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'empty.db');
    await writeFile(path, '', { mode: 0o600 });
    const { code, stderr } = await storeCommand(['verify', path], {});
    expect([code, stderr]).toEqual([78, expect.stringContaining('is empty')]);
    expect((await stat(path)).size).toBe(0);
  });

  it('finds files that others can read, expired data, and damage', async () => {
    await using folder = await temporaryFolder();
    const { env, path } = storeIn(folder);
    {
      await using service = await startWithKey(env);
      await fill(service);
      const running = await storeCommand(['verify'], env, service);
      expect([running.code, running.stdout]).toEqual([0, expect.stringContaining('no faults')]);
    }
    await copyFile(path, `${path}.old`);
    await chmod(`${path}.old`, 0o644);
    const open = await storeCommand(['verify'], env);
    expect([open.code, open.stdout]).toEqual([1, expect.stringContaining(`others can read ${path}.old: chmod 600`)]);
    await rm(`${path}.old`);
    const sql = connectTo(path);
    sql.exec(
      "UPDATE conversations SET last_activity_at = 1; INSERT INTO turns VALUES (99, 1, x'00', x'00', NULL, 1, NULL)",
    );
    sql.close();
    const old = await storeCommand(['verify'], env);
    expect([old.code, old.stdout]).toEqual([
      1,
      expect.stringContaining('rows of turns without a row in conversations: 1'),
    ]);
    expect(old.stdout).toMatch(/expired +1 conversation$/m);
    const whole = await readFile(path);
    const damaged = async (from: number, to: number) => {
      await writeFile(path, Buffer.from(whole).fill(0, from, to));
      return storeCommand(['verify'], env);
    };
    const broken = await damaged(12_288, 28_672);
    expect([broken.code, broken.stdout]).toEqual([1, expect.stringMatching(/verdict +\d+ faults?\n/)]);
    expect((await damaged(0, 4096)).code).toBe(78); // the file cannot be read at all
    expect((await storeCommand(['verify', join(folder.path, 'none')], env)).code).toBe(78);
  });
});

describe('A purged client', () => {
  it('is removed from a running service and its files permanently', async () => {
    await using folder = await temporaryFolder();
    const { env, path } = storeIn(folder);
    {
      await using service = await startWithKey(env);
      const id = await fill(service);
      const purged = await storeCommand(['purge', '--client', 'key default'], env, service);
      expect([purged.code, purged.stdout]).toEqual([
        0,
        expect.stringMatching(/^key default: removed .*1 conversation,/),
      ]);
      expect(await hasSecret(dirname(path))).toEqual([]);
      expect((await service.get(`/chat/${id}`, operator)).status).toBe(404);
      expect((await service.get('/jobs', operator)).body.jobs).toEqual([]);
      expect((await service.get('/usage', operator)).body.usage).toEqual([]);
      expect(await service.log('client_purged')).toMatchObject({ client: 'key default' });
      const again = await storeCommand(['purge', '--client', 'key default'], env, service);
      expect(again.stdout).toContain('removed nothing');
      expect((await service.post('/store/purge', { client: 'default' }, operator)).status).toBe(400);
      expect((await service.post('/store/purge', { client: 'key default' })).status).toBe(401);
    }
    await using restarted = await startWithKey(env);
    expect((await restarted.get('/chat', operator)).body.conversations).toEqual([]);
    expect((await restarted.get('/usage', operator)).body.usage).toEqual([]);
  });

  it('is removed from an unused file; its backups are listed and unchanged', async () => {
    await using folder = await temporaryFolder();
    const { env, path } = storeIn(folder);
    {
      await using service = await startWithKey(env);
      await fill(service);
      await storeCommand(['backup', 'backup.db'], env, service);
    }
    const purged = await storeCommand(['purge', '--client', 'key default', '--json'], env);
    expect(JSON.parse(purged.stdout)).toMatchObject({
      removed: { conversations: 1, jobs: 1, usage: 1 },
      copies: ['backup.db'],
    });
    expect(await hasSecret(dirname(path))).toEqual(['backup.db']);
    await using service = await startWithKey(env);
    expect((await service.get('/chat', operator)).body.conversations).toEqual([]);
  });

  it('is removed from memory', async () => {
    await using service = await startWithKey({});
    const id = await fill(service);
    const { stdout } = await storeCommand(['purge', '--client', 'key default', '--json'], {}, service);
    expect(JSON.parse(stdout)).toMatchObject({ removed: { conversations: 1, jobs: 1, usage: 1, idempotency: 1 } });
    expect((await service.get(`/chat/${id}`, operator)).status).toBe(404);
  });
});
