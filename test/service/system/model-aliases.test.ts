import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf } from '../../../src/shared/config/api-keys.js';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import { envFor, runCommand } from '../../support/clients/command.js';
import { streamed } from '../../support/doors/sdk-door.js';
import { type Answer, type Service, startService } from '../../support/service/service.js';

const keys = { all: '', echo: ':models=echo', mini: ':models=gpt-4o-mini', none: ':models=anything' } as const;
type Holder = keyof typeof keys;
const hi = [{ role: 'user', content: 'Hi' }];
const aliases = 'gpt-4o-mini=echo,gpt-4o=default,echo=eliza,*=eliza';

let folder: TemporaryFolder;
let service: Service;

beforeAll(async () => {
  folder = await temporaryFolder();
  const path = join(folder.path, 'keys');
  const lines = Object.entries(keys).map(([name, rest]) => `${name}:sha256:${digestOf(`key-of-${name}`)}${rest}\n`);
  await writeFile(path, lines.join(''), { mode: 0o600 });
  // No process is evicted.
  const env = { MODEL_API_KEYS_FILE: path, MODEL_API_MODEL_ALIASES: aliases, MODEL_API_LIVE_SESSIONS: '32' };
  service = await startService({ env });
});
afterAll(async () => {
  await service.stop();
  await folder[Symbol.asyncDispose]();
});

function post(path: string, body: object, holder: Holder = 'all'): Promise<Answer> {
  return service.post(path, body, { authorization: `Bearer key-of-${holder}` });
}

/** Returns the model that answered: only `echo` repeats its prompt. */
function answered({ body }: Answer): unknown {
  return [body.model, body.response === 'Hi' ? 'echo' : body.error === undefined ? 'eliza' : body.error];
}

describe('A model alias', () => {
  it.each<[string, string]>([
    ['gpt-4o-mini', 'echo'],
    ['gpt-4o', 'eliza'],
    ['echo', 'echo'],
    ['default', 'eliza'],
    ['demo/echo', 'echo'],
    ['demo', 'eliza'],
    ['demo/gpt-4o-mini', 'validation_error'],
    ['anything/else', 'eliza'],
    ['constructor', 'eliza'],
  ])('is answered by its model, and the answer names the model: %s', async (model, target) => {
    const ask = await post('/ask', { prompt: 'Hi', model });
    const chat = await post('/chat', { message: 'Hi', model });
    const expected = target.endsWith('error') ? [undefined, target] : [target, target];
    expect([answered(ask), answered(chat)]).toEqual([expected, expected]);
  });

  it('works in each API, whose answers name the model too, plain and streamed', async () => {
    const model = 'gpt-4o-mini';
    expect((await post('/v1/chat/completions', { model, messages: hi })).body.model).toBe('echo');
    expect((await post('/v1/messages', { model, messages: hi, max_tokens: 9 })).body.model).toBe('echo');
    expect((await post('/v1/responses', { model, input: 'Hi' })).body.model).toBe('echo');
    const chunks = streamed((await post('/v1/chat/completions', { model, messages: hi, stream: true })).text);
    const named = chunks.flatMap((chunk) => (typeof chunk === 'string' ? [] : [(chunk as { model: string }).model]));
    expect(named.length).toBeGreaterThan(2);
    expect(new Set(named)).toEqual(new Set(['echo']));
    for (const path of ['/v1/messages', '/v1/responses']) {
      const { text } = await post(path, { model, messages: hi, input: 'Hi', stream: true });
      expect(new Set(text.match(/"model":"[^"]*"/g))).toEqual(new Set(['"model":"echo"']));
    }
  });

  it('works in background jobs', async () => {
    const accepted = await post('/v1/responses', { model: 'gpt-4o-mini', input: 'Hi', background: true });
    expect([accepted.status, accepted.body.model]).toEqual([202, 'echo']);
    const headers = { authorization: 'Bearer key-of-all' };
    const done = await until(async () => {
      const { body } = await service.get(`/v1/responses/${accepted.body.id}`, headers);
      expect(body.model).toBe('echo');
      return body.status === 'completed' ? body : undefined;
    }, 'the response');
    expect(done).toMatchObject({ output: [{ content: [{ text: 'Hi' }] }] });
  });

  it('continues a conversation of its model under any name', async () => {
    const messages = [{ role: 'user', content: 'My name is Ada' }];
    const sessions: (string | null)[] = [];
    for (const model of ['gpt-4o', 'default', 'whatever', 'eliza', 'gpt-4o-mini']) {
      const { headers, body } = await post('/v1/chat/completions', { model, messages });
      sessions.push(headers.get('x-session'));
      const [choice] = body.choices as { message: { role: string; content: string } }[];
      messages.push(choice?.message ?? { role: 'assistant', content: '' }, {
        role: 'user',
        content: 'What is my name?',
      });
    }
    expect(sessions).toEqual(['replay', 'live', 'replay', 'live', 'replay']);
  });

  it.each<[Holder, string, unknown]>([
    ['echo', 'gpt-4o-mini', 'echo'],
    ['echo', 'gpt-4o', 'echo'],
    ['echo', 'default', 'echo'],
    ['echo', 'anything', 'model: must be one of echo (the models of its API key)'],
    ['mini', 'echo', 'echo'],
    ['mini', 'gpt-4o-mini', 'echo'],
    ['mini', 'eliza', 'model: must be one of echo (the models of its API key)'],
    ['none', 'gpt-4o', expect.stringContaining('none of the models of this API key')],
    ['none', 'anything', expect.stringContaining('none of the models of this API key')],
  ])('is allowed for an API key if its model is: %s requests %s', async (holder, model, expected) => {
    const { status, body } = await post('/ask', { prompt: 'Hi', model }, holder);
    const door = await post('/v1/chat/completions', { model, messages: hi }, holder);
    if (expected === 'echo') expect([body.model, door.body.model]).toEqual(['echo', 'echo']);
    else {
      expect([status, body.message]).toEqual([400, expected]);
      expect([door.status, door.body.error]).toMatchObject([404, { code: 'model_not_found', message: expected }]);
    }
  });

  it('is listed with its model', async () => {
    const { body } = await service.get('/models');
    const entry = (id: string, target: string) => ({ id, name: id, default: false, alias_of: target });
    expect(body).toMatchObject({
      count: 4,
      models: [{ id: 'eliza', default: true }, { id: 'echo' }, entry('gpt-4o-mini', 'echo'), entry('gpt-4o', 'eliza')],
    });
    const { data } = (await service.get('/v1/models')).body as { data: { id: string; alias_of?: string }[] };
    expect(data.map(({ id, alias_of: target }) => [id, target])).toEqual([
      ['eliza', undefined],
      ['echo', undefined],
      ['gpt-4o-mini', 'echo'],
      ['gpt-4o', 'eliza'],
    ]);
    for (const [id, target] of [
      ['gpt-4o-mini', 'echo'],
      ['anything', 'eliza'],
      ['default', 'eliza'],
      ['demo/echo', 'echo'],
    ])
      expect((await service.get(`/v1/models/${id}`)).body).toMatchObject({ id, alias_of: target });
    const { stdout } = await runCommand(['models'], { env: envFor(service) });
    expect(stdout).toMatch(
      /^eliza {8}\* {2}tools, images {2}Eliza.*\necho .*\ngpt-4o-mini {5}tools, images {2}stands for echo\ngpt-4o {10}tools, images {2}stands for eliza\n$/,
    );
  });

  it('that is also the name of a model causes a warning at the start', async () => {
    const { warning } = await service.log('config_warning');
    expect(warning).toBe('MODEL_API_MODEL_ALIASES: echo is the name of a model, so it cannot be an alias');
  });
});

describe('With several CLIs, an alias', () => {
  const clis = `main=demo,local*1=command:sh -c 'cat >/dev/null; echo "$0"' {model}`;
  const named = {
    MODEL_API_MODEL_ALIASES: 'gpt-4o=local/llama,mini=main/echo,*=default',
  };

  it('can refer to a model of each CLI', async () => {
    await using several = await startService({ env: { MODEL_API_CLI: 'auto', MODEL_API_CLIS: clis, ...named } });
    const ask = async (model: string) => (await several.post('/ask', { prompt: 'Hi', model })).body;
    expect(await ask('gpt-4o')).toMatchObject({ model: 'local/llama', response: 'llama' });
    expect(await ask('mini')).toMatchObject({ model: 'main/echo', response: 'Hi' });
    expect(await ask('local/other')).toMatchObject({ model: 'local/other', response: 'other' });
    expect(await ask('anything')).toMatchObject({ model: 'main/eliza' });
    expect(await ask('default')).toMatchObject({ model: 'main/eliza' });
    expect(await ask('main/gpt')).toMatchObject({ error: 'validation_error' });
    const door = await several.post('/v1/chat/completions', { model: 'gpt-4o', messages: hi, stream: true });
    expect(new Set(door.text.match(/"model":"[^"]*"/g))).toEqual(new Set(['"model":"local/llama"']));
    const { models } = (await several.get('/models')).body as { models: { id: string; alias_of?: string }[] };
    expect(models.map(({ id, alias_of: target }) => [id, target])).toEqual([
      ['main/eliza', undefined],
      ['main/echo', undefined],
      ['gpt-4o', 'local/llama'],
      ['mini', 'main/echo'],
    ]);
  });
});
