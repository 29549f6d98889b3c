import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { exampleAgentIn } from '../../support/agents/adapter-files.js';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { metric } from '../../support/documents/exposition.js';
import { headersOf, type KeyHolder, type NamedKeys, writeNamedKeys } from '../../support/doors/named-keys.js';
import { untilJobs } from '../../support/jobs/jobs.js';
import { fixture, type Service, script, startService } from '../../support/service/service.js';

let folder: TemporaryFolder;
let keys: NamedKeys;
let account: string;

beforeAll(async () => {
  folder = await temporaryFolder();
  keys = await writeNamedKeys();
  account = join(folder.path, 'account');
});
beforeEach(() => writeFile(account, 'ok'));
afterAll(async () => {
  await keys[Symbol.asyncDispose]();
  await folder[Symbol.asyncDispose]();
});

/** Starts a service that both clients have already used. */
async function startShared(env: Readonly<Record<string, string>>): Promise<Service> {
  const service = await startService({ env: { ...keys.env, MODEL_API_LIVE_SESSIONS: '2', ...env } });
  for (const holder of ['bob', 'alice'] as const) expect((await ask(service, holder, 'hello')).status).toBe(200);
  return service;
}

function startAgent(env = {}): Promise<Service> {
  const command = fixture('complaining-agent.js', account);
  return startShared({ MODEL_API_CLI: 'acp', MODEL_API_CLI_COMMAND: command, ...env });
}

const ask = (service: Service, holder: KeyHolder, prompt: string, more = {}) =>
  service.post('/ask', { prompt, ...more }, headersOf(holder));

async function reasonOf(service: Service, holder: KeyHolder, prompt: string, more = {}): Promise<unknown> {
  const { body } = await ask(service, holder, prompt, more);
  return body.reason ?? body.response;
}

/** Expects that Bob's requests affect neither Alice nor the health. */
async function expectUntouched(service: Service): Promise<void> {
  for (const model of [undefined, 'big', 'small'])
    expect(await reasonOf(service, 'alice', 'hello', { model })).toBe(`${model ?? 'big'} answers`);
  await expectReady(service);
  expect(service.logs.filter(({ event }) => event === 'breaker_open')).toEqual([]);
}

/** Expects that no check has found a fault. The forced check comes after the checks triggered by jobs. */
async function expectReady(service: Service): Promise<void> {
  const before = new Set(service.logs);
  expect((await service.post('/health/recheck', {}, headersOf('operator'))).body.status).toBe('ok');
  await service.log('readiness_checked', (record) => record.trigger === 'forced' && !before.has(record));
  const unready = service.logs.filter(({ event, status }) => event === 'readiness_checked' && status === 'not_ready');
  expect(unready).toEqual([]);
}

describe('A single client with one attack after the other', () => {
  let service: Service;
  beforeAll(async () => {
    await writeFile(account, 'ok');
    service = await startAgent({ MODEL_API_STRICT_HEALTH: 'true' });
  });
  afterAll(async () => {
    await untilJobs(service, 0, 0);
    await service.stop();
  });

  it('cannot open the circuit of the account with model names', async () => {
    const names = ['api-key', 'API-KEY', 'api_key', 'apikey', '401', 'models/403', 'unauthorized', 'log-in', 'catalog'];
    for (const model of [...names, 'quota', 'rate.limit', '429', 'billing', 'RESOURCE_EXHAUSTED', 'overloaded', '503'])
      for (let n = 0; n < 2; n++)
        expect([model, await reasonOf(service, 'bob', 'hello', { model })]).toEqual([model, 'model_unknown']);
    await expectUntouched(service);
  });

  it.each(['repeat', 'shout', 'cut'])(
    'cannot open the circuit of the account with its prompt, even if errors %s it',
    async (complaint) => {
      for (const words of [
        'my api-key',
        'log in',
        'quota exceeded',
        'rate limit',
        '429',
        'unauthorized',
        'authentication',
      ])
        for (const model of [undefined, 'small'])
          for (let n = 0; n < 2; n++) {
            const reason = await reasonOf(service, 'bob', `${complaint}: ${words}`, { model });
            expect([words, reason]).toEqual([words, 'other']);
          }
      await expectUntouched(service);
    },
  );

  it('cannot open the circuit of the account with earlier messages or a system text', async () => {
    for (let n = 0; n < 3; n++) {
      await reasonOf(service, 'bob', 'repeat: the system text', { system: 'Log in with the api key. 401. Quota.' });
      const message = 'log in with the api key';
      const { body } = await service.post('/chat', { message }, headersOf('bob'));
      const next = { message: `repeat: ${message}`, conversation_id: body.conversation_id };
      expect((await service.post('/chat', next, headersOf('bob'))).body.reason).toBe('other');
    }
    await expectUntouched(service);
  });

  it('cannot open the circuit of the account with encoded text that the service cannot recognise', async () => {
    for (const words of ['API key not valid', 'Error: 401 Unauthorized', 'You exceeded your current quota'])
      for (let n = 0; n < 3; n++) {
        const prompt = `decode: ${Buffer.from(words).toString('base64')}`;
        expect(await reasonOf(service, 'bob', prompt)).toMatch(/^(auth|quota)$/);
        expect(await reasonOf(service, 'bob', prompt, { model: 'small' })).toMatch(/^(auth|quota)$/);
      }
    await expectUntouched(service);
  });

  it('cannot make the CLI not ready with failing jobs, nor end the live sessions of other clients', async () => {
    const { body } = await service.post('/chat', { message: 'hello' }, headersOf('alice'));
    for (let n = 0; n < 5; n++) {
      for (const prompt of ['fail: now', 'crash: now']) await reasonOf(service, 'bob', prompt);
      await reasonOf(service, 'bob', `decode: ${Buffer.from('401 Unauthorized').toString('base64')}`);
    }
    expect((await service.get('/health')).status).toBe(200);
    const next = { message: 'hello again', conversation_id: body.conversation_id };
    const hits = await metric(service, 'live_session_total{result="hit"}');
    expect((await service.post('/chat', next, headersOf('alice'))).body.response).toBe('big answers');
    expect(await metric(service, 'live_session_total{result="hit"}')).toBe(hits + 1);
    await expectUntouched(service);
  });

  // Last, because it opens the circuit of a model.
  it('cannot block other clients with 403, which only applies to the model of the job', async () => {
    for (let n = 0; n < 3; n++)
      for (const model of [undefined, 'small', 'locked']) {
        expect(await reasonOf(service, 'bob', 'forbid: this', { model })).toBe('auth');
      }
    await expectUntouched(service);
    for (const holder of ['bob', 'alice'] as const)
      expect(await reasonOf(service, holder, 'hello', { model: 'locked' })).toBe('auth');
    expect(await service.log('breaker_open')).toMatchObject({ reason: 'auth', model: 'locked' });
    const { status, body } = await ask(service, 'alice', 'hello', { model: 'locked' });
    expect([status, body.message]).toEqual([500, expect.stringMatching(/may not use this model; no job is started/)]);
    expect(await reasonOf(service, 'alice', 'hello')).toBe('big answers');
  });
});

describe('A single client', () => {
  it.each([
    ['of a command', script('exits-early.pl', '3')],
    ['of a model that a command does not know', 'sh -c \'cat >/dev/null; test "$0" = big && echo yes\' {model}'],
  ])('cannot make the CLI not ready with crashes %s', async (_, command) => {
    const env = { ...keys.env, MODEL_API_CLI: 'command', MODEL_API_CLI_COMMAND: command };
    await using service = await startService({ env: { ...env, MODEL_API_DEFAULT_MODEL: 'nope' } });
    await ask(service, 'alice', 'hello', { model: 'big' });
    const failing = async (holder: KeyHolder) => expect((await ask(service, holder, 'hello')).status).toBe(500);
    for (let n = 0; n < 5; n++) await failing('bob');
    await expectReady(service);
    await failing('alice');
    await service.log('readiness_checked', ({ status }) => status === 'not_ready');
  });

  it('cannot open the circuit of the account with an adapter file that reports no code', async () => {
    const startJay = await exampleAgentIn(folder.path);
    const path = join(folder.path, 'jay-adapter.cjs');
    await writeFile(path, (await readFile(path, 'utf8')).replace(", scope: 'account'", ''));
    await using service = await startJay('--mood=login', { env: { ...keys.env } });
    expect(await reasonOf(service, 'alice', 'hello', { model: 'jay-small' })).toBe('auth');
    await service.log('readiness_checked');
    for (let n = 0; n < 4; n++) {
      expect(await reasonOf(service, 'bob', 'hello', { model: 'owl' })).toBe('auth');
      expect((await ask(service, 'bob', 'hello')).body.message).toBe('jay reports: log in first');
    }
    expect(service.logs.filter(({ event }) => event === 'breaker_open')).toEqual([]);
    expect((await ask(service, 'alice', 'hello')).body.message).toBe('jay reports: log in first');
    expect(await service.log('breaker_open')).toMatchObject({ reason: 'auth', model: null });
  });
});

describe('The circuit of an account that is really refused', () => {
  it('opens at the second refusal that an adapter file reports with a code', async () => {
    const startJay = await exampleAgentIn(folder.path);
    await using service = await startJay('--mood=login', { env: { ...keys.env } });
    expect(await reasonOf(service, 'alice', 'hello')).toBe('auth');
    expect(await reasonOf(service, 'bob', 'hello', { model: 'jay-small' })).toBe('auth');
    expect((await ask(service, 'alice', 'hello')).body.message).toMatch(/no job is started before/);
  });

  it('opens at the second 401, even if only one client received it', async () => {
    await using service = await startAgent();
    await writeFile(account, 'code 401');
    for (let n = 0; n < 2; n++) expect(await reasonOf(service, 'bob', 'hello', { model: 'small' })).toBe('auth');
    const { body } = await ask(service, 'alice', 'hello', { model: 'big' });
    expect(body.message).toMatch(/^the credential of the model CLI is refused; no job is started before/);
    await service.log('readiness_checked', ({ status }) => status === 'not_ready');
    expect((await service.get('/health')).body.status).toBe('degraded');
    await writeFile(account, 'ok');
    await service.post('/health/recheck', {}, headersOf('operator'));
    expect(await reasonOf(service, 'alice', 'hello')).toBe('big answers');
    await service.log('breaker_closed');
  });

  it('opens by error text once jobs of two clients without a model name have failed with it', async () => {
    await using service = await startAgent();
    await writeFile(account, 'words API key not valid. Please pass a valid API key.');
    for (const model of ['big', 'small']) expect(await reasonOf(service, 'alice', 'hello', { model })).toBe('auth');
    for (let n = 0; n < 2; n++) expect(await reasonOf(service, 'bob', 'hello')).toBe('auth');
    expect(service.logs.filter(({ event }) => event === 'breaker_open')).toEqual([]);
    expect(await reasonOf(service, 'alice', 'hello')).toBe('auth');
    expect(await service.log('breaker_open')).toMatchObject({ reason: 'auth', model: null });
    expect((await ask(service, 'bob', 'hello')).body.message).toMatch(/no job is started before/);
  });

  it('opens by error text if there is only one client', async () => {
    const command = fixture('complaining-agent.js', account);
    await writeFile(account, 'words API key not valid. Please pass a valid API key.');
    await using service = await startService({ env: { MODEL_API_CLI: 'acp', MODEL_API_CLI_COMMAND: command } });
    for (let n = 0; n < 2; n++) expect((await service.post('/ask', { prompt: 'hello' })).body.reason).toBe('auth');
    expect(await service.log('breaker_open')).toMatchObject({ reason: 'auth', model: null });
  });
});
