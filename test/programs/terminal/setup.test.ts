import { once } from 'node:events';
import { chmod, chown, lstat, mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { basename, join } from 'node:path';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { envFor, runCommand } from '../../support/clients/command.js';
import { Screen } from '../../support/clients/screen.js';
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
  it('creates settings that only their owner can read, and changes nothing the second time', async () => {
    const path = join(folder.path, '.claude', 'settings.json');
    const { code, stdout, stderr } = await setup('claude-code', '--yes');
    expect([code, stdout]).toEqual([0, `The settings are in ${path}.\n`]);
    expect(stderr.split('\n')).toEqual([
      'The model is eliza; --model names another one.',
      'If you are logged in, claude warns of an "auth conflict": it uses the key of the service.',
      'Start "claude".',
      '',
    ]);
    const { env } = JSON.parse(await readFile(path, 'utf8'));
    expect(env).toMatchObject({
      ANTHROPIC_BASE_URL: service.url,
      ANTHROPIC_API_KEY: 'key-of-the-service-0123',
      ANTHROPIC_MODEL: 'eliza',
    });
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    const again = await setup('claude-code', '--yes');
    expect([again.code, again.stdout]).toEqual([0, `${path} already has these settings.\n`]);
    expect(await readdir(join(folder.path, '.claude'))).toEqual(['settings.json']);
  });

  it('keeps a copy and a symbolic link, and lets nobody else read the key or the copy', async () => {
    const [path, real] = [join(folder.path, '.aider.conf.yml'), join(folder.path, 'real.yml')];
    await writeFile(real, 'dark-mode: true\n', { mode: 0o640 });
    await symlink(real, path);
    const { code, stderr } = await setup('aider', '--yes', '--model', 'eliza');
    expect([code, stderr]).toEqual([
      0,
      expect.stringContaining(`A copy of the old file is in ${real}.before-relay-1.`),
    ]);
    expect((await lstat(path)).isSymbolicLink()).toBe(true);
    expect(await readFile(real, 'utf8')).toMatch(/^dark-mode: true\nopenai-api-base: http.*\nmodel: openai\/eliza\n$/s);
    expect(stderr).toContain('Now only you can read the file');
    const copy = `${real}.before-relay-1`;
    for (const file of [real, copy]) expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await readFile(copy, 'utf8')).toBe('dark-mode: true\n');
    await chmod(real, 0o644);
    expect((await setup('aider', '--yes', '--model', 'eliza')).code).toBe(0);
    expect((await stat(real)).mode & 0o777).toBe(0o600);
    expect((await readdir(folder.path)).sort()).toEqual(['.aider.conf.yml', 'real.yml', 'real.yml.before-relay-1']);
  });

  it('keeps the mode of settings without a key, and refuses the file of another user', async () => {
    const path = join(folder.path, '.codex', 'config.toml');
    await mkdir(join(folder.path, '.codex'));
    await writeFile(path, 'approval_policy = "never"\n', { mode: 0o644 });
    expect((await setup('codex', '--yes')).code).toBe(0);
    expect((await stat(path)).mode & 0o777).toBe(0o644);
    if (process.getuid?.() !== 0) return;
    const before = await readFile(path, 'utf8');
    await chown(path, 1234, 1234);
    for (const words of [['--model', 'echo'], ['--undo']])
      expect(await setup('codex', '--yes', ...words)).toMatchObject({
        ...{ code: 77, stdout: '' },
        stderr: expect.stringContaining('belongs to another user: run the command as that user'),
      });
    expect(await readFile(path, 'utf8')).toBe(before);
  });

  it.each(['claude-code', 'codex', 'opencode', 'continue', 'aider'])(
    'removes its entries with --undo, and nothing else: %s',
    async (name) => {
      const undo = () => setup(name, '--undo', '--yes');
      expect(await undo()).toMatchObject({ code: 78, stderr: expect.stringContaining(`does not name ${service.url}`) });
      expect((await setup(name, '--yes')).code).toBe(0);
      expect((await setup('--list')).stdout).toMatch(new RegExp(`^${name} +uses ${service.url} `, 'm'));
      const { code, stdout } = await undo();
      const path = stdout.split(' ')[0] ?? '';
      expect([code, stdout]).toEqual([0, `${path} contained nothing else and was removed.\n`]);
      const old = { json: '{"model": "mine",\n "env": {"A": "b"}}\n', toml: 'model = "mine"\n\n[tui]\na = 1\n' };
      const text = path.endsWith('.json') ? old.json : path.endsWith('.toml') ? old.toml : 'a: b\nmodel: mine\n';
      await writeFile(path, text);
      for (const model of ['eliza', 'echo']) await setup(name, '--yes', '--model', model);
      expect(await readFile(path, 'utf8')).toContain(service.url);
      expect(await undo()).toMatchObject({ code: 0, stdout: `${path} no longer names ${service.url}.\n` });
      expect(await readFile(path, 'utf8')).toBe(text);
    },
  );

  it('restores nothing of a file that existed before the present one', async () => {
    const path = join(folder.path, '.aider.conf.yml');
    await writeFile(path, 'openai-api-key: sk-old\n');
    for (const words of [[], ['--undo']]) expect((await setup('aider', '--yes', ...words)).code).toBe(0);
    expect(await readFile(path, 'utf8')).toBe('openai-api-key: sk-old\n');
    await rm(path);
    for (const words of [[], ['--undo']]) expect((await setup('aider', '--yes', ...words)).code).toBe(0);
    await expect(readFile(path)).rejects.toMatchObject({ code: 'ENOENT' });
  });

  it('prints what would remain, and changes nothing, with --undo --print', async () => {
    const path = join(folder.path, '.aider.conf.yml');
    await writeFile(path, 'dark-mode: true\n');
    await setup('aider', '--yes');
    const before = [await readFile(path, 'utf8'), await readdir(folder.path)];
    for (const words of [[], ['--yes']]) {
      const { code, stdout, stderr } = await setup('aider', '--undo', '--print', ...words);
      expect([code, stdout, stderr]).toEqual([0, 'dark-mode: true\n', `This would remain in ${path}.\n`]);
    }
    expect([await readFile(path, 'utf8'), await readdir(folder.path)]).toEqual(before);
  });

  it('leaves no copy with the key after --undo, and closes copies that others can read', async () => {
    const path = join(folder.path, '.aider.conf.yml');
    const [first, second, third] = [1, 2, 3].map((number) => `${path}.before-relay-${number}`) as [
      string,
      string,
      string,
    ];
    await writeFile(path, 'dark-mode: true\n');
    for (const model of ['eliza', 'echo']) await setup('aider', '--yes', '--model', model);
    expect(await readFile(second, 'utf8')).toContain('key-of-the-service-0123');
    await chmod(second, 0o644);
    expect((await setup('aider', '--yes', '--model', 'echo')).code).toBe(0);
    expect((await stat(second)).mode & 0o777).toBe(0o600);
    await rm(first);
    await setup('aider', '--yes', '--model', 'eliza'); // the new copy is the last, although a number is free
    expect((await readdir(folder.path)).sort()).toEqual([path, second, third].map((each) => basename(each)));
    const { code, stderr } = await setup('aider', '--undo', '--yes');
    expect([code, stderr]).toEqual([
      0,
      [second, third].map((copy) => `${copy} also named it and was removed.\n`).join(''),
    ]);
    expect([await readFile(path, 'utf8'), await readdir(folder.path)]).toEqual(['dark-mode: true\n', [basename(path)]]);
  });

  it('lists the programs, and says for some what to do by hand', async () => {
    const { code, stdout } = await setup('--list');
    expect([code, stdout.split('\n').map((line) => line.split(' ')[0])]).toEqual([
      0,
      ['claude-code', 'codex', 'opencode', 'continue', 'aider', 'qwen', 'cline', 'pi', 'gemini-cli', ''],
    ]);
    const key = 'key-of-the-service-0123';
    const api = `${service.url}/v1`;
    for (const [name, text] of [
      ['qwen', `OPENAI_BASE_URL=${api} OPENAI_API_KEY=${key} OPENAI_MODEL=eliza qwen\n`],
      ['cline', `--baseurl ${api} --apikey ${key} --modelid eliza\n`],
      ['pi', `"baseUrl":"${api}","api":"openai-completions","apiKey":"${key}","models":[{"id":"eliza"}]`],
      ['gemini-cli', `relay ${service.url}/mcp --header 'Authorization: Bearer ${key}'\n`],
    ] as const)
      expect(await setup(name)).toMatchObject({ code: 0, stdout: expect.stringContaining(text) });
    expect((await setup('pi', '--undo')).code).toBe(64);
    expect(await readdir(folder.path)).toEqual([]);
  });

  it('uses the key of the login', async () => {
    const env = { ...envFor(service), HOME: folder.path };
    const login = await runCommand(['login', service.url], { env, input: 'key-of-the-service-0123\n' });
    expect(login.code).toBe(0);
    expect((await runCommand(['setup', 'aider', '--yes'], { env })).code).toBe(0);
    expect(await readFile(join(folder.path, '.aider.conf.yml'), 'utf8')).toContain('key-of-the-service-0123');
  });

  it('names a real model, although the default of the service is called "default"', async () => {
    const list = [
      { id: 'default', name: 'Default', default: true },
      { id: 'mine', name: 'mine', default: false, alias_of: 'sonnet' },
      { id: 'sonnet', name: 'Sonnet', default: false },
    ];
    for (const [models, code, text] of [
      [list, 0, 'The model is sonnet; --model names another one.'],
      [list.slice(0, 1), 64, 'the service does not list its models now: name one with --model'],
    ] as const) {
      await using stub = await stubService(models);
      const env = { MODEL_API_PORT: String(stub.port), HOME: folder.path };
      const result = await runCommand(['setup', 'codex', '--print'], { env });
      expect(result).toMatchObject({ code, stderr: expect.stringContaining(text) });
      const named = await runCommand(['setup', 'codex', '--print', '--model', 'sonnet'], { env });
      expect(named).toMatchObject({ code: 0, stdout: expect.stringContaining('model = "sonnet"') });
    }
  });

  it('prints settings, and creates no file, with --print', async () => {
    const { code, stdout, stderr } = await setup('codex', '--print');
    expect([code, stdout]).toEqual([0, expect.stringContaining(`base_url = "${service.url}/v1"`)]);
    expect(stderr.split('\n')).toEqual([
      `Add these settings to ${folder.path}/.codex/config.toml.`,
      'The model is eliza; --model names another one.',
      'codex warns that it has no metadata of the model: it then assumes usual sizes.',
      'Start "codex" with your API key in the variable RELAY_KEY.',
      '',
    ]);
    expect(await readdir(folder.path)).toEqual([]);
  });

  it('asks at a terminal, and changes nothing without a yes', async () => {
    const env = variables();
    await using screen = await Screen.run(['setup', 'opencode'], { env, columns: 200 });
    await screen.shows('Create');
    await screen.press('n', 'Enter');
    await screen.shows('ended with 130');
    expect(await readdir(folder.path)).toEqual([]);
    await using second = await Screen.run(['setup', 'opencode'], { env, columns: 200 });
    await second.shows('Create');
    await second.press('y', 'Enter');
    await second.shows('ended with 0');
    expect(await readdir(join(folder.path, '.config', 'opencode'))).toEqual(['opencode.json']);
  });

  it.each([
    [[], 64, 'name one of claude-code, codex, opencode, continue, aider'],
    [['emacs'], 64, 'name one of claude-code'],
    [['codex'], 64, 'without a terminal, use --yes or --print'],
    [['codex', '--model', 'missing', '--yes'], 64, 'the service has no model missing'],
    [['codex', '--url', 'unix:/run/relay.sock', '--yes'], 64, 'the programs cannot use a Unix socket'],
    [['codex', '--key', 'wrong', '--yes'], 77, 'unauthorized'],
    [['codex', '--url', 'http://127.0.0.1:1', '--yes'], 69, 'no service answers'],
  ])('is refused: %j', async (words, code, message) => {
    const refused = await setup(...words);
    expect([refused.code, refused.stdout, refused.stderr]).toEqual([code, '', expect.stringContaining(message)]);
    expect(await readdir(folder.path)).toEqual([]);
  });

  it('leaves a file as it is that it cannot read, write or understand', async () => {
    const path = join(folder.path, '.claude', 'settings.json');
    await mkdir(join(folder.path, '.claude'));
    await writeFile(path, '{ // mine\n}');
    const { code, stderr } = await setup('claude-code', '--yes');
    expect([code, stderr]).toEqual([
      78,
      expect.stringContaining('was not changed, because it is not JSON, or has comments'),
    ]);
    expect(await readFile(path, 'utf8')).toBe('{ // mine\n}');
    await mkdir(join(folder.path, '.aider.conf.yml'));
    expect(await setup('aider', '--yes')).toMatchObject({
      code: 74,
      stderr: expect.stringContaining('.aider.conf.yml'),
    });
    expect(await readdir(join(folder.path, '.claude'))).toEqual(['settings.json']);
  });
});
