import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf } from '../../../src/shared/config/api-keys.js';
import { temporaryFolder } from '../../support/basics/folder.js';
import { describeWith } from '../../support/basics/needs.js';
import { runCommand } from '../../support/clients/command.js';
import { Screen } from '../../support/clients/screen.js';
import { startService } from '../../support/service/service.js';

const key = 'pr_a-key-for-the-tests-of-the-login';

/** Starts a service with one key. The home has no login. */
async function start() {
  const folder = await temporaryFolder();
  const keysFile = join(folder.path, 'keys');
  await writeFile(keysFile, `ada:sha256:${digestOf(key)}:scopes=ask+admin\n`);
  const service = await startService({ env: { MODEL_API_KEYS_FILE: keysFile } });
  const env = { HOME: folder.path };
  const close = async () => {
    await service[Symbol.asyncDispose]();
    await folder[Symbol.asyncDispose]();
  };
  return { url: `http://127.0.0.1:${service.port}`, env, [Symbol.asyncDispose]: close };
}

describe('A login', () => {
  it('is stored if the service accepts the key, is used by the other commands, and is removed', async () => {
    await using place = await start();
    const { url, env } = place;
    const loggedIn = await runCommand(['login', `${url}/`], { env, input: `${key}\n` });
    expect(loggedIn).toMatchObject({ code: 0, stdout: `Logged in to ${url} as key ada.\n` });
    const who = await runCommand(['whoami'], { env });
    expect(who).toMatchObject({ code: 0, stdout: `service  ${url}\nclient   key ada\nscopes   ask, admin\n` });
    expect(JSON.parse((await runCommand(['whoami', '--json'], { env })).stdout)).toEqual({
      ...{ url, client: 'ada', kind: 'key', scopes: ['ask', 'admin'] },
    });
    expect(await runCommand(['ask', 'Hello'], { env })).toMatchObject({ code: 0 });
    const other = await runCommand(['whoami'], {
      env: { ...env, MODEL_API_KEY: 'another-key-than-that-of-the-login' },
    });
    expect(other).toMatchObject({ code: 77, stderr: expect.stringContaining('the API key is not valid') });
    expect(await runCommand(['logout'], { env })).toMatchObject({ code: 0, stdout: 'The login is removed.\n' });
    expect(await runCommand(['logout'], { env })).toMatchObject({ code: 0, stdout: 'There is no login.\n' });
    const after = await runCommand(['whoami'], { env: { ...env, MODEL_API_URL: url } });
    expect([after.code, after.stderr]).toEqual([77, expect.stringContaining('prompt-relay login')]);
    for (const { stdout, stderr } of [loggedIn, who, other, after]) expect(stdout + stderr).not.toContain(key);
  });

  it('never gives its key to another service', async () => {
    await using place = await start();
    await using other = await start();
    await runCommand(['login', place.url], { env: place.env, input: key });
    expect(await runCommand(['whoami', '--url', other.url], { env: place.env })).toMatchObject({
      code: 77,
      stderr: expect.stringContaining('an API key is needed'),
    });
    expect(await runCommand(['whoami', '--url', place.url], { env: place.env })).toMatchObject({ code: 0 });
  });

  it.each([
    ['not-the-key-of-this-service', 77, 'the API key is not valid'],
    ['', 77, 'an API key is needed'],
    ['two words', 64, 'login: the key must consist'],
  ])('is not stored if the key is %j', async (input, code, message) => {
    await using place = await start();
    const refused = await runCommand(['login', place.url], { env: place.env, input });
    expect(refused).toMatchObject({ code, stdout: '', stderr: expect.stringContaining(message) });
    expect(await runCommand(['logout'], { env: place.env })).toMatchObject({ stdout: 'There is no login.\n' });
  });

  it('needs no key if the service requires none', async () => {
    await using service = await startService();
    await using folder = await temporaryFolder();
    const env = { HOME: folder.path };
    expect((await runCommand(['login', `127.0.0.1:${service.port}`], { env })).code).toBe(0);
    expect((await runCommand(['whoami'], { env })).stdout).toContain('scopes   none: the service needs no key\n');
  });
});

describeWith('/usr/bin/tmux')('In a terminal', () => {
  it('requests the key without showing it, even after Ctrl-C', async () => {
    await using place = await start();
    await using screen = await Screen.run(['login', place.url], { env: place.env });
    await screen.shows('API key for');
    await screen.press(key, 'Enter');
    const lines = (await screen.shows('ended with 0')).join('\n');
    expect(lines).toContain('as key ada.');
    expect(lines).not.toContain('pr_a');
    await using cut = await Screen.run(['login', place.url], { env: place.env });
    await cut.shows('API key for');
    await cut.press(key, 'C-c');
    expect((await cut.shows('ended with 130')).join('\n')).not.toContain('pr_a');
  });
});
