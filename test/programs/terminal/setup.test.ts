import { once } from 'node:events';
import { chmod, chown, lstat, mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { basename, join } from 'node:path';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { envFor, runCommand } from '../../support/clients/command.js';
import { type Service, startService } from '../../support/service/service.js';

let service: Service;
let folder: TemporaryFolder;
beforeAll(async () => {
  service = await startService({ env: { MODEL_API_KEY: 'key-of-the-service-0123' } });
});
afterAll(() => service.stop());
beforeEach(async () => {
  folder = await temporaryFolder();
});
afterEach(() => folder[Symbol.asyncDispose]());

const variables = () => ({ ...envFor(service), HOME: folder.path, MODEL_API_KEY: 'key-of-the-service-0123' });
const setup = (...words: readonly string[]) => runCommand(['setup', ...words], { env: variables() });

const theme = '{"theme": "dark"}\n';
const settingsFolder = () => join(folder.path, '.claude');

/** Starts a stand-in for a service with these models, which needs no key. */
async function stubService(models: readonly object[]): Promise<AsyncDisposable & { readonly port: number }> {
  const caller = { client: '127.0.0.1', kind: 'address', scopes: null };
  const server = createServer((req, res) => {
    res.writeHead(200, { 'Content-Type': 'application/json', Connection: 'close' });
    res.end(JSON.stringify(req.url === '/models' ? { count: models.length, models } : { caller, usage: [] }));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const close = () => new Promise<void>((resolve) => void server.close(() => resolve()));
  return { port: (server.address() as AddressInfo).port, [Symbol.asyncDispose]: close };
}

describe('setup', () => {
  it('prints settings, and creates no file', async () => {
    const path = join(folder.path, '.claude', 'settings.json');
    const { code, stdout, stderr } = await setup('claude-code');
    expect([code, JSON.parse(stdout).env.ANTHROPIC_BASE_URL]).toEqual([0, service.url]);
    expect(stderr.split('\n')).toEqual([
      `Add these settings to ${path}, or let --write do it.`,
      'The model is eliza; --model names another one.',
      'If you are logged in, claude warns of an "auth conflict": it uses the key of the service.',
      'Start "claude".',
      '',
    ]);
    expect(await readdir(folder.path)).toEqual([]);
  });

  it('creates settings that only their owner can read, and changes nothing the second time', async () => {
    const path = join(folder.path, '.claude', 'settings.json');
    const { code, stdout, stderr } = await setup('claude-code', '--write');
    expect([code, stdout]).toEqual([0, `The settings are in ${path}.\n`]);
    expect(stderr.split('\n')[0]).toBe('The model is eliza; --model names another one.');
    const { env } = JSON.parse(await readFile(path, 'utf8'));
    expect(env).toMatchObject({
      ANTHROPIC_BASE_URL: service.url,
      ANTHROPIC_API_KEY: 'key-of-the-service-0123',
      ANTHROPIC_MODEL: 'eliza',
    });
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    const again = await setup('claude-code', '--write');
    expect([again.code, again.stdout]).toEqual([0, `${path} already has these settings.\n`]);
    expect(await readdir(join(folder.path, '.claude'))).toEqual(['settings.json']);
  });

  it('keeps a copy and a symbolic link, and lets nobody else read the key or the copy', async () => {
    const [path, real] = [join(settingsFolder(), 'settings.json'), join(folder.path, 'real.json')];
    await mkdir(settingsFolder());
    await writeFile(real, theme, { mode: 0o640 });
    await symlink(real, path);
    const { code, stderr } = await setup('claude-code', '--write', '--model', 'eliza');
    expect([code, stderr]).toEqual([
      0,
      expect.stringContaining(`A copy of the old file is in ${real}.before-relay-1.`),
    ]);
    expect((await lstat(path)).isSymbolicLink()).toBe(true);
    expect(JSON.parse(await readFile(real, 'utf8'))).toMatchObject({
      theme: 'dark',
      env: { ANTHROPIC_MODEL: 'eliza' },
    });
    expect(stderr).toContain('Now only you can read the file');
    const copy = `${real}.before-relay-1`;
    for (const file of [real, copy]) expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await readFile(copy, 'utf8')).toBe(theme);
    await chmod(real, 0o644);
    expect((await setup('claude-code', '--write', '--model', 'eliza')).code).toBe(0);
    expect((await stat(real)).mode & 0o777).toBe(0o600);
    expect((await readdir(folder.path)).sort()).toEqual(['.claude', 'real.json', 'real.json.before-relay-1']);
  });

  it('keeps the mode of settings without a key, and refuses the file of another user', async () => {
    await using stub = await stubService([{ id: 'sonnet', name: 'Sonnet', default: true }]);
    const env = { MODEL_API_PORT: String(stub.port), HOME: folder.path };
    const write = (...words: readonly string[]) => runCommand(['setup', 'claude-code', '--write', ...words], { env });
    const path = join(settingsFolder(), 'settings.json');
    await mkdir(settingsFolder());
    await writeFile(path, theme, { mode: 0o644 });
    expect((await write()).code).toBe(0);
    expect((await stat(path)).mode & 0o777).toBe(0o644);
    if (process.getuid?.() !== 0) return;
    const before = await readFile(path, 'utf8');
    await chown(path, 1234, 1234);
    for (const words of [[], ['--undo']])
      expect(await write(...words)).toMatchObject({
        ...{ code: 77, stdout: '' },
        stderr: expect.stringContaining('belongs to another user: run the command as that user'),
      });
    expect(await readFile(path, 'utf8')).toBe(before);
  });

  it.each(['claude-code', 'opencode', 'pi'])('removes its entries with --undo, and nothing else: %s', async (name) => {
    const undo = () => setup(name, '--undo', '--write');
    expect(await undo()).toMatchObject({ code: 78, stderr: expect.stringContaining(`does not name ${service.url}`) });
    expect((await setup(name, '--write')).code).toBe(0);
    expect((await setup('--list')).stdout).toMatch(new RegExp(`^${name} +uses ${service.url} `, 'm'));
    const { code, stdout } = await undo();
    const path = stdout.split(' ')[0] ?? '';
    expect([code, stdout]).toEqual([0, `${path} contained nothing else and was removed.\n`]);
    const text = '{"model": "mine",\n "env": {"A": "b"}}\n';
    await writeFile(path, text);
    for (const model of ['eliza', 'echo']) await setup(name, '--write', '--model', model);
    expect(await readFile(path, 'utf8')).toContain(service.url);
    expect(await undo()).toMatchObject({ code: 0, stdout: `${path} no longer names ${service.url}.\n` });
    expect(await readFile(path, 'utf8')).toBe(text);
  });

  it('restores nothing of a file that existed before the present one', async () => {
    const path = join(settingsFolder(), 'settings.json');
    const old = '{"env": {"ANTHROPIC_API_KEY": "sk-old"}}\n';
    await mkdir(settingsFolder());
    await writeFile(path, old);
    for (const words of [[], ['--undo']]) expect((await setup('claude-code', '--write', ...words)).code).toBe(0);
    expect(await readFile(path, 'utf8')).toBe(old);
    await rm(path);
    for (const words of [[], ['--undo']]) expect((await setup('claude-code', '--write', ...words)).code).toBe(0);
    await expect(readFile(path)).rejects.toMatchObject({ code: 'ENOENT' });
  });

  it('prints what would remain, and changes nothing, with --undo alone', async () => {
    const path = join(settingsFolder(), 'settings.json');
    await mkdir(settingsFolder());
    await writeFile(path, theme);
    await setup('claude-code', '--write');
    const before = [await readFile(path, 'utf8'), await readdir(settingsFolder())];
    const { code, stdout, stderr } = await setup('claude-code', '--undo');
    expect([code, stdout, stderr]).toEqual([0, theme, 'This remains if you add --write.\n']);
    expect([await readFile(path, 'utf8'), await readdir(settingsFolder())]).toEqual(before);
  });

  it('leaves no copy with the key after --undo, and closes copies that others can read', async () => {
    const path = join(settingsFolder(), 'settings.json');
    const [first, second, third] = [1, 2, 3].map((number) => `${path}.before-relay-${number}`) as [
      string,
      string,
      string,
    ];
    await mkdir(settingsFolder());
    await writeFile(path, theme);
    for (const model of ['eliza', 'echo']) await setup('claude-code', '--write', '--model', model);
    expect(await readFile(second, 'utf8')).toContain('key-of-the-service-0123');
    await chmod(second, 0o644);
    expect((await setup('claude-code', '--write', '--model', 'echo')).code).toBe(0);
    expect((await stat(second)).mode & 0o777).toBe(0o600);
    await rm(first);
    await setup('claude-code', '--write', '--model', 'eliza'); // the new copy is the last, although a number is free
    const files = () => readdir(settingsFolder()).then((names) => names.sort());
    expect(await files()).toEqual([path, second, third].map((each) => basename(each)));
    const { code, stderr } = await setup('claude-code', '--undo', '--write');
    expect([code, stderr]).toEqual([
      0,
      [second, third].map((copy) => `${copy} also named it and was removed.\n`).join(''),
    ]);
    expect(JSON.parse(await readFile(path, 'utf8'))).toEqual({ theme: 'dark' });
    expect(await files()).toEqual([basename(path)]);
  });

  it('lists the programs, and says for some what to do by hand', async () => {
    const { code, stdout } = await setup('--list');
    expect([code, stdout.split('\n').map((line) => line.split(' ')[0])]).toEqual([
      0,
      ['claude-code', 'opencode', 'pi', 'codex', 'continue', 'aider', 'qwen', 'cline', 'gemini-cli', ''],
    ]);
    const key = 'key-of-the-service-0123';
    const api = `${service.url}/v1`;
    for (const [name, text] of [
      ['codex', `base_url = "${api}"\n`],
      ['continue', `    apiBase: ${api}\n    apiKey: ${key}\n`],
      ['aider', `openai-api-base: ${api}\nopenai-api-key: ${key}\nmodel: openai/eliza\n`],
      ['qwen', `OPENAI_BASE_URL=${api} OPENAI_API_KEY=${key} OPENAI_MODEL=eliza qwen\n`],
      ['cline', `--baseurl ${api} --apikey ${key} --modelid eliza\n`],
      ['gemini-cli', `relay ${service.url}/mcp --header 'Authorization: Bearer ${key}'\n`],
    ] as const)
      expect(await setup(name)).toMatchObject({ code: 0, stdout: expect.stringContaining(text) });
    for (const flag of ['--undo', '--write'])
      expect(await setup('codex', flag)).toMatchObject({
        code: 64,
        stderr: expect.stringContaining('name one of claude-code, opencode, pi'),
      });
    expect(await readdir(folder.path)).toEqual([]);
  });

  it('uses the key of the login', async () => {
    const env = { ...envFor(service), HOME: folder.path };
    const login = await runCommand(['login', service.url], { env, input: 'key-of-the-service-0123\n' });
    expect(login.code).toBe(0);
    expect((await runCommand(['setup', 'aider'], { env })).stdout).toContain('key-of-the-service-0123');
  });

  it('names a real model, although the default of the service is called "default"', async () => {
    const list = [
      { id: 'default', name: 'Default', default: true },
      { id: 'mine', name: 'mine', default: false, alias_of: 'sonnet' },
      { id: 'sonnet', name: 'Sonnet', default: false },
    ];
    for (const [models, code, text] of [
      [list, 0, 'model = "sonnet"'],
      [list.slice(0, 1), 64, 'the service does not list its models now: name one with --model'],
    ] as const) {
      await using stub = await stubService(models);
      const env = { MODEL_API_PORT: String(stub.port), HOME: folder.path };
      const result = await runCommand(['setup', 'codex'], { env });
      expect([result.code, result.stdout + result.stderr]).toEqual([code, expect.stringContaining(text)]);
      const named = await runCommand(['setup', 'codex', '--model', 'sonnet'], { env });
      expect(named).toMatchObject({ code: 0, stdout: expect.stringContaining('model = "sonnet"') });
    }
  });

  it.each([
    [[], 64, 'name one of claude-code, opencode, pi, codex, continue, aider'],
    [['emacs'], 64, 'name one of claude-code'],
    [['opencode', '--model', 'missing', '--write'], 64, 'the service has no model missing'],
    [['opencode', '--url', 'unix:/run/relay.sock', '--write'], 64, 'the programs cannot use a Unix socket'],
    [['opencode', '--key', 'wrong', '--write'], 77, 'unauthorized'],
    [['opencode', '--url', 'http://127.0.0.1:1', '--write'], 69, 'no service answers'],
  ])('is refused: %j', async (words, code, message) => {
    const refused = await setup(...words);
    expect([refused.code, refused.stdout, refused.stderr]).toEqual([code, '', expect.stringContaining(message)]);
    expect(await readdir(folder.path)).toEqual([]);
  });

  it('leaves a file as it is that it cannot read, write or understand', async () => {
    const path = join(folder.path, '.claude', 'settings.json');
    await mkdir(join(folder.path, '.claude'));
    await writeFile(path, '{ // mine\n}');
    const { code, stderr } = await setup('claude-code', '--write');
    expect([code, stderr]).toEqual([
      78,
      expect.stringContaining('was not changed, because it is not JSON, or has comments'),
    ]);
    expect(await readFile(path, 'utf8')).toBe('{ // mine\n}');
    await mkdir(join(folder.path, '.pi', 'agent', 'models.json'), { recursive: true });
    expect(await setup('pi', '--write')).toMatchObject({ code: 74, stderr: expect.stringContaining('models.json') });
    expect(await readdir(join(folder.path, '.claude'))).toEqual(['settings.json']);
  });
});
