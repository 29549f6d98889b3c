import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { installClaude } from '../../support/agents/claude-service.js';
import { startWithLogin } from '../../support/agents/login-trial.js';
import { echoes, type MessagesApi, startMessagesApi } from '../../support/agents/messages-api-stub.js';
import { TokenEndpoint } from '../../support/agents/token-endpoint.js';
import { describeWith } from '../../support/basics/needs.js';
import { commandProgram, runCommand } from '../../support/clients/command.js';
import { Screen } from '../../support/clients/screen.js';
import { keyHeaders, keysFileOf } from '../../support/service/accounts-lab.js';
import type { Service } from '../../support/service/service.js';

const hourMs = 3_600_000;
const token = 'sk-ant-oat01-of-a-file';

let api: MessagesApi;
let endpoint: TokenEndpoint;

beforeAll(async () => void (await installClaude()), 600_000);
beforeEach(async () => {
  api = await startMessagesApi();
  api.behave = echoes;
  endpoint = await TokenEndpoint.start({ livesMs: () => hourMs, delayMs: () => 0, logins: ['ada', 'bob'] });
});
afterEach(async () => {
  await api.close();
  await endpoint[Symbol.asyncDispose]();
});

function inFolder(name: string): string {
  return join(endpoint.home, name);
}

/** Starts a service with these accounts, for Ada and Bob, and an administrator. */
async function start(lines: string): Promise<Service> {
  await writeFile(inFolder('accounts'), lines);
  await writeFile(inFolder('keys'), keysFileOf({ ada: '', bob: '', eve: '', root: 'scopes=ask+admin' }), {
    mode: 0o600,
  });
  return startWithLogin(api, endpoint, {
    MODEL_API_ACCOUNTS_FILE: inFolder('accounts'),
    MODEL_API_KEYS_FILE: inFolder('keys'),
    MODEL_API_CLI_ENV: 'ANTHROPIC_BASE_URL,ANTHROPIC_API_KEY,HTTPS_PROXY,NO_PROXY,NODE_EXTRA_CA_CERTS,SSL_CERT_FILE',
    ANTHROPIC_API_KEY: 'sk-ant-of-the-service',
  });
}

/** Returns the credential with which the API got the question of a person. */
async function credentialOf(service: Service, person: string): Promise<unknown> {
  const { status, body } = await service.post('/ask', { prompt: 'who?' }, keyHeaders(person));
  const { authorization, 'x-api-key': apiKey } = api.requests.at(-1)?.headers ?? {};
  return [status, body.response, authorization ?? apiKey];
}

describe('The accounts of claude', () => {
  it('have the login in a HOME or the token of a file, and never the key of the service', async () => {
    await writeFile(inFolder('token'), `${token}\n`);
    const [ada, bob] = endpoint.logins.map(({ name, home }) => `${name} claude home=${home} owners=key:${name}\n`);
    await using service = await start(`${ada}spare claude token-file=${inFolder('token')} owners=key:bob\n`);
    const credentials = async () => {
      const all = [];
      for (const person of ['ada', 'bob', 'eve']) all.push(await credentialOf(service, person));
      return all;
    };
    const answer = [200, 'who?'];
    expect(await credentials()).toEqual([
      [...answer, 'Bearer sk-ant-oat01-ada0'],
      [...answer, `Bearer ${token}`],
      [...answer, 'sk-ant-of-the-service'],
    ]);
    await writeFile(inFolder('accounts'), `${ada}${bob}spare claude token-file=${inFolder('token')}\n`);
    await service.log('accounts_loaded');
    expect(await credentials()).toEqual([
      [...answer, 'Bearer sk-ant-oat01-ada0'],
      [...answer, 'Bearer sk-ant-oat01-bob0'],
      [...answer, `Bearer ${token}`],
    ]);
    const { body } = await service.get('/accounts', keyHeaders('root'));
    expect((body.accounts as { status: string }[]).map(({ status }) => status)).not.toContain('not_ready');
  });
});

describeWith('/usr/bin/tmux')('The command accounts login', () => {
  it('logs claude in at this terminal, and Ctrl-C cancels it', async () => {
    const [ada] = endpoint.logins;
    if (ada === undefined) throw new Error('there is no login');
    await rm(ada.credentials);
    await using service = await start(`ada claude home=${ada.home} owners=key:ada\n`);
    const check = () =>
      runCommand(['accounts', 'check', '--url', service.url, '--key', keyHeaders('root')['x-api-key'] ?? '']);
    expect(await check()).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('ada: the model CLI is not logged in'),
    });
    const program = `'${await installClaude()}' auth login`;
    const { HTTPS_PROXY = '', NO_PROXY = '', NODE_EXTRA_CA_CERTS = '', SSL_CERT_FILE = '' } = endpoint.env;
    const env = { HTTPS_PROXY, NO_PROXY, NODE_EXTRA_CA_CERTS, SSL_CERT_FILE, ACCOUNT_LOGIN: program };
    const logIn = () => {
      const words = `'${process.execPath}' '${commandProgram}' accounts login ada --file '${inFolder('accounts')}'`;
      return Screen.shell(`${words} --program "$ACCOUNT_LOGIN"`, { env, columns: 120, rows: 40 });
    };
    {
      await using screen = await logIn();
      await screen.shows('Paste code here');
      await screen.press('C-c');
      await screen.shows('the login was cancelled');
      await screen.shows('ended with 130');
    }
    await using screen = await logIn();
    const lines = await screen.shows('Paste code here');
    const state = /authorize\?z-(\S+)/.exec(lines.join('\n'))?.[1];
    await screen.press(`${ada.code}#${state}`, 'Enter');
    await screen.shows('ended with 0');
    expect((await screen.lines()).join(' ')).toContain(`The login of ada is in ${ada.home}.`);
    expect(await check()).toMatchObject({ code: 0 });
    expect(await credentialOf(service, 'ada')).toEqual([200, 'who?', 'Bearer sk-ant-oat01-ada0']);
  });
});
