import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type GeminiApi,
  geminiEchoes,
  geminiSays,
  geminiSaysAndRuns,
  lastSaidIn,
  startGeminiApi,
} from '../../support/agents/gemini-api-stub.js';
import { installGemini, startWithGemini } from '../../support/agents/gemini-service.js';
import { temporaryFolder } from '../../support/basics/folder.js';
import type { Service } from '../../support/service/service.js';

const canary = 'canary-in-a-file';

let api: GeminiApi;

beforeAll(() => installGemini(), 600_000);
beforeEach(async () => {
  api = await startGeminiApi();
  api.behave = geminiEchoes;
});
afterEach(() => api.close());

/** The processes of a client with a key are renewed, which costs less than the start of a process for each text. */
const renewed = { MODEL_API_KEY: 'key-of-the-client', MODEL_API_LIVE_SESSIONS: '1', MODEL_API_STANDBY: '1' };
const asClient = { 'x-api-key': renewed.MODEL_API_KEY };

async function asked(service: Service, prompt: string, headers = {}): Promise<string> {
  const { status, body } = await service.post('/ask', { prompt }, headers);
  expect([status, body.message]).toEqual([200, undefined]);
  return lastSaidIn(api.requests.at(-1) ?? never());
}

function never(): never {
  throw new Error('the API was not asked');
}

describe('Text that gemini could interpret', () => {
  const texts = ['-p', '--help', '# note', '  both ends \n', '\u0001\u001b[31m', 'a\r\nb\u2028c', '@', '{"a":1}'];
  const commands = ['/memory show', ' /memory show', '/', '$memory show', '$(id)', '!ls', '/tmp/image.png'];

  it('reaches the model unchanged, except for a line before a possible command', async () => {
    await using service = await startWithGemini(api, { env: renewed });
    for (const text of texts) expect(await asked(service, text, asClient)).toBe(text);
    for (const text of commands) expect(await asked(service, text, asClient)).toBe(`Message:\n${text}`);
    expect(api.requests).toHaveLength(texts.length + commands.length);
  });
});

describe('Files on the host', () => {
  it('are not read, even if a prompt names them', async () => {
    await using folder = await temporaryFolder();
    const secret = join(folder.path, 'secret.txt');
    const image = join(folder.path, 'image.png');
    for (const name of [secret, image, ...['GEMINI.md', 'AGENTS.md', '.env'].map((name) => join(folder.path, name))])
      await writeFile(name, canary);
    await using service = await startWithGemini(api, { env: { ...renewed, TMPDIR: folder.path } });
    await mkdir(join(service.home, '.gemini', 'commands'), { recursive: true });
    for (const name of ['GEMINI.md', '.gemini/GEMINI.md', '.gemini/.env', '.gemini/commands/x.toml', '.env'])
      await writeFile(join(service.home, name), canary);
    const prompts = [
      `@${secret}`,
      `Read this: @"${secret}" and @${image}`,
      `look:\n@file://${secret}`,
      `see ${image}`,
      '@GEMINI.md @../GEMINI.md @~/GEMINI.md',
      `@${folder.path}/`,
    ];
    for (const prompt of prompts) expect(await asked(service, prompt, asClient)).toBe(prompt);
    await service.post('/chat', { message: prompts[0], system: prompts[1] }, asClient);
    expect(api.requests.length).toBe(prompts.length + 1);
    expect(JSON.stringify(api.requests)).not.toContain(canary);
  });
});

describe('The additional input that gemini sends to the model', () => {
  it('is small: no tool, one line of system text, and only a random path of the host', async () => {
    await using service = await startWithGemini(api);
    await asked(service, 'Hello');
    const [{ body } = never()] = api.requests;
    expect((body.tools ?? []).flatMap(({ functionDeclarations = [] }) => functionDeclarations)).toEqual([]);
    expect(body.systemInstruction?.parts).toEqual([
      { text: expect.stringMatching(/^Answer the messages of the user\.\s*$/) },
    ]);
    expect(JSON.stringify(body).length).toBeLessThan(1200);
  });

  it('lets the model run nothing, even if it calls a tool', async () => {
    await using folder = await temporaryFolder();
    const trace = join(folder.path, 'trace');
    await using service = await startWithGemini(api);
    api.behave = (_, index) =>
      index === 0 ? geminiSaysAndRuns('Let me look.', `touch ${trace}`) : geminiSays(' I can not.');
    const { body } = await service.post('/ask', { prompt: 'Look' });
    expect(body.response).toBe('Let me look. I can not.');
    expect(JSON.stringify(api.requests.at(-1)?.body.contents)).toMatch(/not found in registry/);
    await expect(writeFile(trace, '', { flag: 'wx' })).resolves.toBeUndefined(); // the file did not exist
  });
});
