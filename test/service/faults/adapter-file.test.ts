import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { exampleAgentIn, type StartExampleAgent } from '../../support/agents/adapter-files.js';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { stream } from '../../support/clients/event-stream.js';
import { metric } from '../../support/documents/exposition.js';
import { recovers, untilJobs, untilTreeGone } from '../../support/jobs/jobs.js';
import { failingService, fixture, type Service, startService } from '../../support/service/service.js';

let folder: TemporaryFolder;
let startJay: StartExampleAgent;

beforeAll(async () => {
  folder = await temporaryFolder();
  startJay = await exampleAgentIn(folder.path);
});
afterAll(() => folder[Symbol.asyncDispose]());

describe('The example adapter', () => {
  it('answers, streams, and continues a conversation in its process', async () => {
    await using service = await startJay('', { env: { MODEL_API_LIVE_SESSIONS: '2', MODEL_API_STANDBY: '1' } });
    const asked = await service.post('/ask', { prompt: 'Hello you', model: 'jay-small', system: 'Sing.' });
    const usage = { input_tokens: 2, output_tokens: 6 };
    expect(asked.body).toMatchObject({ response: '(Sing.) I have heard: Hello you', model: 'jay-small', usage });
    const first = await service.post('/chat', { message: 'one' });
    const next = { message: 'two', conversation_id: first.body.conversation_id };
    await using answer = await stream(service, '/chat', { ...next, stream: true });
    const events = await answer.remainingEvents();
    const deltas = events.flatMap(({ event, data }) => (event === 'delta' ? [data.text] : []));
    expect(deltas.length).toBeGreaterThan(3);
    expect(deltas.join('')).toBe('I have heard: one / two');
    expect(await metric(service, 'live_session_total{result="hit"}')).toBe(1);
    expect((await service.get('/models')).body.models).toMatchObject([{ id: 'jay-large', default: true }, {}]);
    expect((await service.get('/version')).body.model_cli).toEqual({ adapter: 'jay', version: '0.3.1' });
  });

  describe('without live sessions', () => {
    let service: Service;
    beforeAll(async () => {
      service = await startJay();
    });
    afterAll(async () => {
      await recovers(service);
      await service.stop();
    });

    it('receives the conversation again by a replay', async () => {
      const { body } = await service.post('/chat', { message: 'one' });
      const again = await service.post('/chat', { message: 'two', conversation_id: body.conversation_id });
      expect(again.body.response).toBe('I have heard: one / two');
      expect(await metric(service, 'live_session_total{result="replay"}')).toBe(1);
    });

    it('is cancelled with its whole process tree when the caller disconnects', async () => {
      const caller = new AbortController();
      const waiting = service.post('/ask', { prompt: 'wait' }, {}, caller.signal).catch(() => 'gone');
      await untilJobs(service, 1, 0);
      caller.abort();
      expect(await waiting).toBe('gone');
      await untilTreeGone(service);
      await untilJobs(service, 0, 0);
    });

    it('fails with the matching reason', async () => {
      const crashed = await service.post('/ask', { prompt: 'crash' });
      expect([crashed.status, crashed.body.reason]).toEqual([500, 'crashed']);
      const { body } = await service.post('/ask', { prompt: 'Hello', model: 'owl' });
      const message = 'jay reports: there is no owl; this service has jay-large, jay-small';
      expect(body).toMatchObject({ reason: 'model_unknown', message });
    });

    it('is refused the capabilities that it requests, in the log and in a metric', async () => {
      expect((await service.post('/ask', { prompt: 'run ls' })).body.response).toBe('I may not.');
      expect(await service.log('cli_request_refused')).toMatchObject({ request: 'terminal' });
      expect(await metric(service, 'cli_requests_refused_total{request="terminal"}')).toBe(1);
    });
  });
});

describe('What an adapter gives its program', () => {
  /** Adapter that consults its program once, and shows the results of the consultation and of a turn. */
  const text = `exports.createAdapter = ({ command, env, kit }) => ({
    name: 'shown', command, credentialVariable: 'JAY_TOKEN', env: { HOME: '/nowhere', OWN: 'adapter', ALLOWED: 'adapter' }, models: null,
    HOMES
    async learn(consult) {
      const asked = await consult(['--asked', '{file}'], 'whole', undefined, 'a private text');
      const decoder = {
        hasBegun: true,
        splitter: new kit.LineSplitter(1e6),
        *read(chunk) {
          for (const line of this.splitter.split(chunk)) {
            yield { type: 'text-delta', text: JSON.stringify({ ...JSON.parse(line), asked, given: env }) };
            yield { type: 'turn-end', text: null, model: null, usage: kit.unknownUsage };
          }
        },
        exit: (exit) => [kit.crashed(exit)],
      };
      const writer = { write: (turn, number) => ({ text: JSON.stringify({ number, ...turn }) + '\\n', stdin: 'keep-open' }) };
      return {
        version: null, extras: { effort: (effort) => effort }, plan: () => ({ args: [], files: [] }),
        protocol: () => ({ writer, decoder }), check: async () => null, listModels: async () => null,
      };
    },
  });`;
  const homes = `home: {
    variables: { HOME: '.', JAY_DIR: '.jay/deep' },
    files: [{ path: '.jay/settings.json', text: '{}' }],
    links: [{ path: '.jay/login', to: env.HOME + '/login' }, { path: 'absent', to: '/nowhere/login' }],
  },`;

  it.each([
    ['a home of its own', homes],
    ['the home of the service', ''],
  ])('match the documentation, with %s', async (_, ofHome) => {
    const path = join(folder.path, 'shown.cjs');
    await writeFile(path, text.replace('HOMES', ofHome), { mode: 0o644 });
    await writeFile(join(folder.path, 'login'), 'a login');
    const env = { MODEL_API_CLI: path, MODEL_API_CLI_COMMAND: fixture('shows-its-turns.js'), HOME: folder.path };
    const further = {
      MODEL_API_CLI_ENV: 'ALLOWED',
      ALLOWED: 'operator',
      SECRET: 'x',
      MODEL_CODE_OAUTH_TOKEN: 'a-token',
    };
    await using service = await startService({ env: { ...env, ...further, MODEL_API_LIVE_SESSIONS: '1' } });
    const turn = async (body: object) => {
      const { body: answer } = await service.post('/chat', body);
      return { id: answer.conversation_id, shown: JSON.parse(answer.response as string) };
    };
    const { id, shown } = await turn({ message: 'one', system: 'Sing.', effort: 'low' });
    const next = await turn({ message: 'two', conversation_id: id });

    const ofTurn = { model: null, schema: null, images: [], history: [] }; // in one process, again with its system text
    expect(shown.heard).toEqual({ number: 1, ...ofTurn, text: 'one', system: 'Sing.', effort: 'low' });
    const heard = [
      { role: 'user', text: 'one' },
      { role: 'assistant', text: JSON.stringify(shown) },
    ];
    expect(next.shown.heard).toEqual({ number: 2, ...ofTurn, heard, text: 'two', system: 'Sing.', effort: null });

    expect(Object.keys(shown.given)).toEqual(expect.arrayContaining(['HOME', 'ALLOWED', 'PATH']));
    expect([shown.given.HOME, shown.given.JAY_TOKEN, shown.given.SECRET]).toEqual([folder.path, undefined, undefined]);
    expect(shown.asked.code).toBe(7);
    const asked = JSON.parse(shown.asked.stdout);
    expect([asked.heard, asked.own]).toEqual(['whole', 'a private text']);
    for (const found of [shown, asked]) {
      expect(found.env).toMatchObject({ JAY_TOKEN: 'a-token', OWN: 'adapter', ALLOWED: 'operator' });
      expect(found.env).not.toHaveProperty('SECRET');
      expect(found.env.HOME === folder.path).toBe(ofHome === '');
      if (ofHome === '') continue;
      expect(found.env.JAY_DIR).toBe(join(found.env.HOME, '.jay/deep'));
      expect(found.home).toEqual({ '.jay/settings.json': ['600', '{}'], '.jay/login': ['link', 'a login'] });
    }
    expect(asked.env.HOME === shown.env.HOME).toBe(ofHome === '');
  });
});

describe('An adapter file', () => {
  it.each<[string, string, number, string]>([
    ['can be written by others', 'exports.createAdapter = 1', 0o666, 'can be written by other users: chmod go-w it'],
    ['does not parse', 'exports.createAdapter = {', 0o644, 'cannot be loaded: '],
    ['exports nothing', '', 0o644, 'must export a function createAdapter'],
    ['makes no adapter', 'exports.createAdapter = () => ({})', 0o644, 'must return an adapter: name: '],
  ])('prevents the start, with the reason, if it %s', async (_, text, mode, fault) => {
    const path = join(folder.path, 'odd.cjs');
    await writeFile(path, text);
    await chmod(path, mode);
    await using service = await failingService({ MODEL_API_CLI: path });
    expect(service.code).toBe(78);
    expect(service.stderr.join('\n')).toContain(`MODEL_API_CLI: ${path}: `);
    expect(service.stderr.join('\n')).toContain(fault);
  });

  it('may be a module, and its errors fail the turn, with the stack in the log', async () => {
    const path = join(folder.path, 'owl.mjs');
    const parts = `version: null, extras: {}, plan: () => ({ args: [], files: [] }), check: async () => null, listModels: async () => null`;
    const protocol = `{ writer: { write: ({ text }) => ({ text, stdin: 'end' }) }, decoder: { hasBegun: true, read: (text) => text.hoot(), exit: () => [] } }`;
    const made = `{ name: 'owl', command: ['cat'], credentialVariable: null, env: {}, models: null, learn: async () => ({ ${parts}, protocol: () => (${protocol}) }) }`;
    await writeFile(path, `export const createAdapter = () => (${made});\n`, { mode: 0o644 });
    await using service = await startService({ env: { MODEL_API_CLI: path } });
    const { status, body } = await service.post('/ask', { prompt: 'Hello' });
    expect([status, body.error, body.message]).toEqual([500, 'cli_error', 'the adapter owl failed']);
    expect(await service.log('cli_failed')).toMatchObject({
      reason: 'other',
      stderr: expect.stringContaining('owl.mjs'),
    });
  });

  it('may fail to plan for some models, and the service continues, also while a job with such a model waits', async () => {
    const path = join(folder.path, 'picky.cjs');
    const plan = `({ model }) => { if (model === 'bad') throw new Error('there is no such model'); return { args: [], files: [] }; }`;
    const decoder = `{ hasBegun: true, read: (text) => [{ type: 'text-delta', text }], exit: () => [{ type: 'turn-end', text: null, model: null, usage: kit.unknownUsage }] }`;
    const protocol = `() => ({ writer: { write: ({ text }) => ({ text, stdin: 'end' }) }, decoder: ${decoder} })`;
    const version = `{ version: null, extras: {}, plan: ${plan}, protocol: ${protocol}, check: async () => null, listModels: async () => null }`;
    const made = `{ name: 'picky', command: ['sh', '-c', 'read -r line; sleep "$line"; echo done'], credentialVariable: null, env: {}, models: null, learn: async () => (${version}) }`;
    await writeFile(path, `exports.createAdapter = ({ kit }) => (${made});\n`, { mode: 0o644 });
    const env = { MODEL_API_CLI: path, MODEL_API_MAX_CONCURRENT: '1', MODEL_API_STANDBY: '1' };
    await using service = await startService({ env });
    const first = service.post('/ask', { prompt: '1\n' });
    await untilJobs(service, 1, 0);
    const second = service.post('/ask', { prompt: '0\n', model: 'bad' });
    await untilJobs(service, 1, 1);
    expect((await first).body.response).toBe('done\n');
    expect((await second).body).toMatchObject({ error: 'cli_error', message: 'the adapter picky failed' });
    expect((await service.post('/ask', { prompt: '0\n' })).status).toBe(200);
  });
});
