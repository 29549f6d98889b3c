import { lstat, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
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

describe('setup', () => {
  it('creates settings that only their owner can read, and changes nothing the second time', async () => {
    const path = join(folder.path, '.claude', 'settings.json');
    const { code, stdout, stderr } = await setup('claude-code', '--yes');
    expect([code, stdout, stderr]).toEqual([0, `The settings are in ${path}.\n`, 'Start "claude".\n']);
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

  it('keeps a copy, the mode and a symbolic link', async () => {
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
    expect((await stat(real)).mode & 0o777).toBe(0o640);
    expect(await readFile(`${real}.before-relay-1`, 'utf8')).toBe('dark-mode: true\n');
  });

  it('prints settings, and creates no file, with --print', async () => {
    const { code, stdout, stderr } = await setup('codex', '--print');
    expect([code, stdout]).toEqual([0, expect.stringContaining(`base_url = "${service.url}/v1"`)]);
    expect(stderr).toBe(
      `Add these settings to ${folder.path}/.codex/config.toml.\nStart "codex" with your API key in the variable RELAY_KEY.\n`,
    );
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
