import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf } from '../../../src/shared/config/api-keys.js';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { askInBackground, untilEnded as untilJobEnded } from '../../support/clients/background.js';
import { promptLine, upload } from '../../support/clients/batches.js';
import { headersOf, keyOf } from '../../support/doors/named-keys.js';
import { type Service, startService } from '../../support/service/service.js';
import { startRedis } from '../../support/stores/redis-server.js';

const marker = 'marker-zq7x';
const refused = [403, 'storing_is_off'];

interface Place {
  readonly folder: TemporaryFolder;
  readonly env: Readonly<Record<string, string>>;
  readonly isShared: boolean;
  /** Returns everything that the store has, as text. */
  raw(): Promise<string>;
}

async function filesIn(path: string): Promise<string> {
  const entries = await readdir(path, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return (await Promise.all(files.map((file) => readFile(file, 'latin1')))).join('\n');
}

/** Writes a keys file: `line` has the options of alice, and further lines. */
async function writeKeys({ folder }: Pick<Place, 'folder'>, options: string, more = ''): Promise<string> {
  const path = join(folder.path, 'keys');
  const lines = [
    `operator:sha256:${digestOf(keyOf('operator'))}:scopes=ask+chat+admin`,
    `alice:sha256:${digestOf(keyOf('alice'))}:${options}`,
    more,
  ];
  await writeFile(path, `${lines.join('\n')}\n`, { mode: 0o600 });
  return path;
}

async function withPlace(kind: 'memory' | 'sqlite' | 'redis', test: (place: Place) => Promise<void>): Promise<void> {
  await using folder = await temporaryFolder();
  const common = { MODEL_API_STATE_FOLDER: folder.path, MODEL_API_LOG_LEVEL: 'debug' };
  const raw = () => filesIn(folder.path);
  if (kind === 'redis') {
    await using redis = await startRedis('--appendonly', 'yes', '--appendfsync', 'always', '--dir', folder.path);
    const env = { ...common, MODEL_API_STORE: redis.url };
    return await test({ folder, isShared: true, env, raw });
  }
  const store =
    kind === 'memory' ? { MODEL_API_FILES: 'memory' } : { MODEL_API_STORE: `sqlite:${folder.path}/store.db` };
  await test({ folder, isShared: false, env: { ...common, ...store }, raw });
}

async function verdict(sent: Promise<{ readonly status: number; readonly body: Record<string, unknown> }>) {
  const { status, body } = await sent;
  const { reason, error } = body as { reason?: string; error?: unknown };
  const nested = typeof error === 'object' ? (error as { code?: string; message?: string }) : {};
  return [status, reason ?? nested.code];
}

const alice = headersOf('alice');

/** Sends one request of each kind. Returns what is refused, by kind. */
async function sendAll(service: Service, isShared: boolean): Promise<void> {
  const chat = { message: `I am ${marker}`, system: `Be ${marker}.` };
  expect((await service.post('/ask', { prompt: `I am ${marker}` }, alice)).status).toBe(200);
  for (const path of ['/v1/chat/completions', '/v1/messages'])
    expect(
      (
        await service.post(
          path,
          { model: 'eliza', max_tokens: 9, messages: [{ role: 'user', content: marker }] },
          alice,
        )
      ).status,
    ).toBe(200);
  const response = { model: 'eliza', input: `I am ${marker}` };
  const unstored = await service.post('/v1/responses', response, alice);
  expect([unstored.status, unstored.body.store]).toEqual([200, false]);
  expect((await service.get(`/v1/responses/${unstored.body.id}`, alice)).status).toBe(404);
  const refusals = [
    service.post('/v1/responses', { ...response, store: true }, alice),
    service.post('/v1/responses', { ...response, background: true }, alice),
    service.post('/ask', { prompt: marker }, { ...alice, prefer: 'respond-async' }),
    service.post('/ask', { prompt: marker }, { ...alice, 'idempotency-key': 'one' }),
    ...(isShared ? [service.post('/chat', chat, alice)] : []),
  ];
  for (const sent of refusals) expect((await verdict(sent))[0]).toBe(403);
  expect(await verdict(service.post('/ask', { prompt: marker }, { ...alice, prefer: 'respond-async' }))).toEqual(
    refused,
  );
  const file = await upload(service, `${promptLine('a', marker)}\n`, { purpose: 'batch' }, alice);
  expect(file.status).toBe(403);
  if (!isShared) await chatThrough(service, chat);
}

async function chatThrough(service: Service, chat: object): Promise<void> {
  const first = await service.post('/chat', chat, alice);
  const { conversation_id: id } = first.body;
  expect(first.status).toBe(200);
  const next = { message: `Again ${marker}`, conversation_id: id };
  expect((await service.post('/chat', next, alice)).body.message_count).toBe(4);
  expect((await service.patch(`/chat/${id}`, { title: `Title ${marker}` }, alice)).status).toBe(200);
  const fork = await service.post(`/chat/${id}/fork`, {}, alice);
  expect(fork.status).toBe(201);
  const exported = (await service.get(`/chat/${id}/messages`, alice)).body;
  expect((await service.post('/chat/import', exported, alice)).status).toBe(201);
  expect((await service.delete(`/chat/${fork.body.conversation_id}`, alice)).status).toBe(200);
  expect((await service.get('/chat', alice)).text).toContain(marker);
}

describe('A client with store=off', () => {
  it.each([
    ['its key', 'memory', 'store=off', ''],
    ['its group', 'sqlite', 'group=lab', '@lab store=off'],
    ['all clients', 'redis', 'scopes=ask+chat', '@* store=off'],
  ] as const)(
    'leaves no content in the store, the folders and the log, by the line of %s, in %s',
    async (_, kind, options, line) =>
      withPlace(kind, async (place) => {
        const keys = { MODEL_API_KEYS_FILE: await writeKeys(place, options, line) };
        await using service = await startService({ env: { ...place.env, ...keys } });
        await sendAll(service, place.isShared);
        expect((await service.get('/retention', alice)).body.is_stored).toBe(false);
        await service.stop();
        expect(await place.raw()).not.toContain(marker);
        expect(JSON.stringify(service.logs)).not.toContain(marker);
        await using after = await startService({ env: { ...place.env, ...keys } });
        expect((await after.get('/chat', alice)).body.conversations).toEqual([]);
      }),
  );
});

describe('The option store=off', () => {
  it('ends what was stored before at its next turn, and a job that runs when the option is set', () =>
    withPlace('sqlite', async (place) => {
      const keys = { MODEL_API_KEYS_FILE: await writeKeys(place, 'scopes=ask+chat') };
      const env = { ...place.env, ...keys };
      await using service = await startService({ env });
      const { body } = await service.post('/chat', { message: `I am ${marker}` }, alice);
      const job = await askInBackground(service, 'Hello', alice);
      await untilJobEnded(service, job, alice);
      expect((await service.get('/retention', alice)).body.is_stored).toBe(true);
      await writeKeys(place, 'store=off');
      await service.process.kill('SIGHUP');
      await service.log('reload_complete');
      const next = await service.post('/chat', { message: 'And now?', conversation_id: body.conversation_id }, alice);
      expect([next.status, next.body.message_count]).toEqual([200, 4]);
      await service.stop();
      await using after = await startService({ env });
      expect((await after.get('/chat', alice)).body.conversations).toEqual([]);
      expect(await after.log('config_warning')).toMatchObject({
        warning: expect.stringContaining('store=off (alice)'),
      });
    }));
});
