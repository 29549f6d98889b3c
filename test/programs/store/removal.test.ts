import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf } from '../../../src/shared/config/api-keys.js';
import { replaceFile } from '../../../src/shared/replace-file.js';
import { type AnswerGate, createAnswerGate } from '../../support/agents/answer-gate.js';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import { askInBackground, untilEnded } from '../../support/clients/background.js';
import { createBatch, promptLine, untilEnded as untilBatchEnded, upload } from '../../support/clients/batches.js';
import { runCommand } from '../../support/clients/command.js';
import { metric } from '../../support/documents/exposition.js';
import { headersOf, keyOf } from '../../support/doors/named-keys.js';
import { type Service, startService, startWithProgram } from '../../support/service/service.js';
import { startRedis } from '../../support/stores/redis-server.js';

const operator = headersOf('operator');
const app = headersOf('app');
const ada = { ...app, 'x-openwebui-user-id': 'ada' };
const marker = 'marker-zq7x';

interface Place {
  readonly folder: TemporaryFolder;
  readonly env: Readonly<Record<string, string>>;
}

async function withPlace(kind: 'memory' | 'sqlite' | 'redis', test: (place: Place) => Promise<void>): Promise<void> {
  await using folder = await temporaryFolder();
  const keys = join(folder.path, 'keys');
  const lines = ['operator:%:scopes=ask+chat+admin', 'app:%:subclients', 'other:%:scopes=ask+chat'].map((line) =>
    line.replace('%', `sha256:${digestOf(keyOf(line.split(':')[0] ?? ''))}`),
  );
  await replaceFile(keys, `${lines.join('\n')}\n`);
  const audit = { MODEL_API_AUDIT_FILE: join(folder.path, 'audit.jsonl'), MODEL_API_STATE_FOLDER: folder.path };
  const common = { MODEL_API_KEYS_FILE: keys, MODEL_API_FILES: 'store', ...audit };
  if (kind === 'redis') {
    await using redis = await startRedis('--appendonly', 'yes', '--appendfsync', 'always');
    return await test({ folder, env: { ...common, MODEL_API_STORE: redis.url } });
  }
  const memory = { ...common, MODEL_API_FILES: 'memory' };
  const file = { ...common, MODEL_API_STORE: `sqlite:${folder.path}/store.db` };
  await test({ folder, env: kind === 'memory' ? memory : file });
}

/** Stores one of each kind for a client. */
async function fill(service: Service, headers: Record<string, string>): Promise<void> {
  const text = `I am ${marker}`;
  expect((await service.post('/chat', { message: text }, headers)).status).toBe(200);
  expect((await service.post('/v1/responses', { model: 'eliza', input: text }, headers)).status).toBe(200);
  expect((await service.post('/ask', { prompt: text }, { ...headers, 'idempotency-key': 'once' })).status).toBe(200);
  await untilEnded(service, await askInBackground(service, text, headers), headers);
  const file = await upload(service, `${promptLine('a', marker)}\n`, { purpose: 'batch' }, headers);
  const { body } = await createBatch(service, file.body.id, {}, headers);
  await untilBatchEnded(service, body.id, 60_000, headers);
}

async function counts(service: Service, headers: Record<string, string>): Promise<Record<string, number>> {
  const { text } = await service.get('/export', headers);
  const last = JSON.parse(text.trimEnd().split('\n').at(-1) ?? '') as { counts: Record<string, number> };
  const { usage: _, ...others } = last.counts; // rows by day and model
  return others;
}

const all = { conversation: 1, job: 1, recorded_answer: 1, response: 1, file: 2, batch: 1, access: 1 };

const accessOnly = { access: 1 };
const ofSubClient = { response: 1, file: 2, batch: 1, ...accessOnly };

describe.each(['memory', 'sqlite', 'redis'] as const)('With the store %s', (kind) => {
  it('a purge removes a client with its sub-clients, ends its running job, and leaves a receipt', () =>
    withPlace(kind, async ({ env }) => {
      await using service = await startService({ env });
      for (const headers of [app, ada, headersOf('other')]) await fill(service, headers);
      // POST /chat and background jobs belong to the key, which alone may have sub-clients
      expect(await counts(service, app)).toEqual({ ...all, conversation: 2, job: 2 });
      expect(await counts(service, ada)).toEqual(ofSubClient);
      expect(await counts(service, headersOf('other'))).toEqual(all);
      const { status, body } = await service.post('/store/purge', { client: 'key app' }, operator);
      expect([status, body.clients]).toEqual([200, ['key app', 'key app/ada']]);
      const files = kind === 'memory' ? 6 : 4; // that of memory includes batches
      const removed = { conversations: 2, jobs: 2, idempotency: 1, responses: 2, files };
      expect(body.removed).toMatchObject(removed);
      for (const headers of [app, ada]) expect(await counts(service, headers)).toEqual(accessOnly);
      expect(await counts(service, headersOf('other'))).toEqual(all);
      const { records } = (await service.get('/audit?limit=100', operator)).body as { records: object[] };
      const receipt = { act: 'client_purge_ended', by: 'key operator', target: 'key app', counts: removed };
      expect(records.find((each) => 'act' in each && each.act === 'client_purge_ended')).toMatchObject(receipt);
      expect(JSON.stringify(records)).not.toContain(marker);
      await fill(service, ada); // a new beginning
      expect(await counts(service, ada)).toEqual(ofSubClient);
    }));
});

describe('With two hosts, a purge', () => {
  async function withHosts(
    test: (hosts: { north: Service; south: Service; gate: AnswerGate }) => Promise<void>,
  ): Promise<void> {
    await using gate = await createAnswerGate();
    await withPlace('redis', async ({ env }) => {
      const { MODEL_API_AUDIT_FILE: _, MODEL_API_STATE_FOLDER: __, ...shared } = env;
      await using north = await startWithProgram(gate.command, { ...shared, MODEL_API_MAX_CONCURRENT: '3' });
      await using south = await startWithProgram(gate.command, { ...shared, MODEL_API_MAX_CONCURRENT: '3' });
      await test({ north, south, gate });
      await gate.open();
    });
  }

  const purge = (host: Service) => host.post('/store/purge', { client: 'key app' }, operator);

  it('ends the jobs and streams of the client on the other one, and nothing comes back', () =>
    withHosts(async ({ north, south, gate }) => {
      await gate.open();
      const known = await south.post('/chat', { message: marker }, app);
      const stream = { message: marker, conversation_id: known.body.conversation_id, stream: true };
      await gate.close();
      const open = [
        south.post('/chat', { message: marker }, app),
        south.post('/chat', stream, app),
        south.post('/chat', { message: 'Hello' }, headersOf('other')),
      ].map((answer) => answer.catch(() => null)); // the service closes the connection of a cancelled job
      await until(async () => (await metric(south, 'jobs_active')) === 3, 'the jobs to run');
      const background = await askInBackground(south, marker, app);
      expect((await purge(north)).status).toBe(200);
      const [begun, followed] = await Promise.all(open.slice(0, 2));
      expect(begun?.status).not.toBe(200);
      expect(followed?.text ?? 'error').toContain('error');
      expect((await south.get(`/jobs/${background}`, app)).status).toBe(404);
      await gate.open();
      expect((await open[2])?.status).toBe(200);
      await until(async () => (await metric(south, 'jobs_active')) === 0, 'the jobs to end');
      for (const host of [north, south]) {
        expect(await counts(host, app)).toEqual(accessOnly);
        expect(await counts(host, headersOf('other'))).toEqual({ conversation: 1, ...accessOnly });
      }
      expect((await south.post('/chat', { message: 'a new beginning' }, app)).status).toBe(200);
    }));

  it('is refused while a host does not confirm, and can be repeated', () =>
    withHosts(async ({ north, south, gate }) => {
      process.kill(south.pid, 'SIGSTOP');
      expect((await purge(north)).body).toMatchObject({ error: 'store_unavailable' });
      process.kill(south.pid, 'SIGCONT');
      await until(async () => (await purge(north)).status === 200, 'the purge to succeed');
      await gate.open();
      await until(
        async () => (await south.post('/ask', { prompt: 'Hi' }, headersOf('other'))).status === 200,
        'an answer',
      );
    }));
});

describe('prompt-relay export', () => {
  it('writes everything to a new folder that only its owner can read, and to no other', () =>
    withPlace('sqlite', async ({ folder, env }) => {
      await using service = await startService({ env });
      await fill(service, app);
      const to = join(folder.path, 'mine');
      const address = { MODEL_API_URL: service.url, MODEL_API_KEY: keyOf('app') };
      const { code, stdout } = await runCommand(['export', '--to', to], { env: address });
      expect([code, stdout]).toEqual([0, expect.stringMatching(/1 conversation.*\nSHA-256 [0-9a-f]{64}\n$/s)]);
      expect((await stat(to)).mode & 0o777).toBe(0o700);
      expect((await stat(join(to, 'data.jsonl'))).mode & 0o777).toBe(0o600);
      expect(await readFile(join(to, 'data.jsonl'), 'utf8')).toContain(marker);
      const names = await readdir(join(to, 'files'));
      const texts = await Promise.all(names.map((name) => readFile(join(to, 'files', name), 'utf8')));
      expect(texts).toContain(`${promptLine('a', marker)}\n`);
      expect((await runCommand(['export', '--to', to], { env: address })).code).toBe(74);
      const record = await until(async () => {
        const { records } = (await service.get('/audit', operator)).body as { records: { act: string }[] };
        return records.find(({ act }) => act === 'client_exported');
      }, 'the record');
      expect(record).toMatchObject({ by: 'key app', target: 'key app', sha256: /SHA-256 (\w+)/.exec(stdout)?.[1] });
    }));
});
