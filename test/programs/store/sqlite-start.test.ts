import { execFile } from 'node:child_process';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { temporaryFolder } from '../../support/basics/folder.js';
import { mountTinyDisk } from '../../support/basics/tiny-disk.js';
import { chat, startListener } from '../../support/clients/chat.js';
import type { Service } from '../../support/service/service.js';

const run = promisify(execFile);

function storeAt(path: string) {
  return { path, env: { MODEL_API_STORE: `sqlite:${path}` } };
}

const inBackground = { prefer: 'respond-async' };

/** Expects the service to answer prompts, and to refuse every request that needs the store. */
async function expectDegraded(service: Service, conversation: string): Promise<void> {
  expect((await service.get('/health')).body).toMatchObject({
    status: 'degraded',
    reasons: [{ part: 'store', name: 'sqlite' }],
  });
  expect((await service.post('/ask', { prompt: 'Hi' })).status).toBe(200);
  const path = `/chat/${conversation}`;
  const refused = [
    await service.post('/chat', { message: 'Hi' }),
    await service.post('/chat', { message: 'Hi', conversation_id: conversation }),
    await service.get('/chat'),
    await service.get(path),
    await service.get(`${path}/messages`),
    await service.patch(path, { title: 'Hi' }),
    await service.post(`${path}/fork`, {}),
    await service.delete(path),
    await service.get('/jobs'),
    await service.post('/ask', { prompt: 'Hi' }, inBackground),
    await service.post('/chat', { message: 'Hi', conversation_id: conversation }, inBackground),
    await service.get('/usage'),
  ];
  expect(refused.map(({ status, body }) => [status, body.error])).toEqual(
    refused.map(() => [503, 'store_unavailable']),
  );
}

describe('A service that cannot open its file yet', () => {
  it('waits for another process that uses it, and then continues all stored conversations', async () => {
    await using folder = await temporaryFolder();
    const { env, path } = storeAt(join(folder.path, 'state', 'store.db'));
    const first = await startListener(env);
    const { id } = await chat(first, 'one');
    await using second = await startListener(env);
    expect(await second.log('store_down')).toMatchObject({ error: `${path} is in use by process ${first.pid}` });
    await expectDegraded(second, id);
    await chat(first, 'two', id);
    await first.stop();
    await second.log('store_back');
    expect(second.logs.filter(({ event }) => event === 'store_down')).toHaveLength(1);
    expect(await second.log('store_opened')).toMatchObject({ conversations: 1 });
    expect((await chat(second, 'three', id)).response.split('\n')).toEqual(['one', 'two', 'three']);
    expect((await second.get('/health')).body.status).toBe('ok');
    const { usage } = (await second.get('/usage')).body as { usage: { jobs: { ok: number } }[] };
    expect(usage.map(({ jobs }) => jobs.ok)).toEqual([4]); // three turns, and the prompt answered in between
  });

  it('waits for the folder of a mount, and reports its faults', async () => {
    await using folder = await temporaryFolder();
    const { env, path } = storeAt(join(folder.path, 'mount', 'state', 'store.db'));
    await using service = await startListener(env);
    expect(await service.log('store_down')).toMatchObject({ error: `${dirname(path)} cannot be created (ENOENT)` });
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await writeFile(path, '', { mode: 0o644 });
    await service.log('store_down', ({ error }) => error === `others can read ${path}: chmod 600`);
    await chmod(path, 0o600);
    await service.log('store_back');
    await chat(service, 'one');
  });

  it('shuts down cleanly while it waits', async () => {
    await using folder = await temporaryFolder();
    const { env } = storeAt(join(folder.path, 'mount', 'state', 'store.db'));
    const service = await startListener(env);
    expect(await service.stop()).toBe(0);
  });
});

const isRoot = process.getuid?.() === 0;
if (!isRoot) process.stderr.write('Skipped, because only root can mount a disk: a disk that is read-only.\n');

(isRoot ? it : it.skip)(
  'A service with a read-only disk starts, and continues stored conversations once the disk is writable',
  async () => {
    await using disk = await mountTinyDisk(1024 * 1024);
    const { env, path } = storeAt(join(disk.path, 'state', 'store.db'));
    const remount = (mode: string) => run('mount', ['-o', `remount,${mode}`, disk.path]);
    const first = await startListener(env);
    const { id } = await chat(first, 'one');
    await first.stop();
    await remount('ro');
    await using service = await startListener(env);
    expect((await service.log('store_down')).error).toContain(`${path} cannot be`);
    await expectDegraded(service, id);
    await remount('rw');
    await service.log('store_back');
    expect((await chat(service, 'two', id)).response.split('\n')).toEqual(['one', 'two']);
  },
);
