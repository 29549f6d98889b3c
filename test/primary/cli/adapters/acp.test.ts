import type { Consult, PrivateHome } from '../../../../src/primary/cli/adapter.js';
import { plainLaunch } from '../../../../src/primary/cli/adapter.js';
import { acpAdapter } from '../../../../src/primary/cli/adapters/acp.js';
import { type AcpPreset, presets } from '../../../../src/primary/cli/adapters/acp-presets.js';
import { acpAgents } from '../../../../src/shared/config/variables.js';
import { bare, hello, learned, lineOf, result } from '../../../support/acp-lines.js';

const options = { extraArgs: [], given: { HOME: '/home/relay' }, homeFiles: [] };

/** An agent that answers the requests it is sent, in this order. */
function answering(...lines: readonly string[]): { consult: Consult; asked: string[] } {
  const asked: string[] = [];
  const consult: Consult = async (_args, input = '', isEnough = () => true) => {
    asked.push(...input.split('\n').filter((line) => line !== ''));
    let stdout = '';
    for (const line of lines) {
      if (isEnough(stdout)) break;
      stdout += line;
    }
    return { code: null, stdout };
  };
  return { consult, asked };
}

const loginError = { code: -32000, message: 'Gemini API key is missing or not configured.' };

describe('the adapter of agents', () => {
  it('learns the version of the agent, which need not tell it', async () => {
    expect((await learned()).version).toBe('1.2.3');
    const adapter = acpAdapter('acp', bare, null, options);
    const { consult, asked } = answering('a banner\n', result(0, { protocolVersion: 1 }));
    expect((await adapter.learn(consult)).version).toBeNull();
    expect(asked).toHaveLength(1);
  });

  it('can be shown images where the agent says so', async () => {
    expect((await learned()).extras).toEqual({});
    const adapter = acpAdapter('acp', bare, null, options);
    const seeing = { ...hello, agentCapabilities: { promptCapabilities: { image: true } } };
    const { extras } = await adapter.learn(answering(result(0, seeing)).consult);
    expect(extras.image?.({ mediaType: 'image/png', data: 'AA', at: 0 })).toMatchObject({ type: 'image', data: 'AA' });
  });

  it.each([[''], ['usage: agent [options]\n'], [lineOf({ id: 0, error: { code: -32601, message: 'no' } })]])(
    'can not use a program that does not speak the protocol: %j',
    async (stdout) => {
      const adapter = acpAdapter('acp', bare, null, options);
      await expect(adapter.learn(async () => ({ code: 1, stdout }))).rejects.toMatchObject({ code: 'cli_error' });
    },
  );

  it('does not wait for somebody to log in', async () => {
    const adapter = acpAdapter('acp', bare, null, options);
    const asking = answering('Please visit the following URL to authorize the application:\n', 'never read');
    await expect(adapter.learn(asking.consult)).rejects.toMatchObject({ code: 'cli_error', reason: 'auth' });
  });

  it('can run jobs where the agent opens a session', async () => {
    const { check } = await learned();
    const opens = answering(result(0, hello), result(1, { sessionId: 's' }));
    expect(await check(opens.consult)).toBeNull();
    expect(opens.asked.map((line) => JSON.parse(line).method)).toEqual(['initialize', 'session/new']);
    expect(JSON.parse(opens.asked[1] ?? '').params).toEqual({ cwd: '/proc/self/cwd', mcpServers: [] });
  });

  it.each([
    [loginError, 'the model CLI is not logged in: Gemini API key is missing or not configured.'],
    [{ code: -32603, message: 'Internal error', data: { details: 'no disk' } }, 'the model CLI reports: no disk'],
  ])('can not where that fails', async (error, message) => {
    const { check } = await learned();
    expect(await check(answering(result(0, hello), lineOf({ id: 1, error })).consult)).toBe(message);
    expect(await check(answering(result(0, hello)).consult)).toBe('the model CLI opens no session');
  });

  it('takes each answer once, whatever else the agent says', async () => {
    const { check } = await learned();
    const twice = result(0, hello) + result(0, hello) + result(9, {});
    expect(await check(answering(twice, result(1, { sessionId: 's' })).consult)).toBeNull();
    const login = { ...hello, authMethods: [{ id: 'x', description: 'Log in to continue' }] };
    expect(await check(answering(result(0, login), result(1, { sessionId: 's' })).consult)).toBeNull();
  });

  it('can not run jobs where what the agent opens is no session', async () => {
    const { check } = await learned();
    expect(await check(answering(result(0, hello), result(1, {})).consult)).toBe('the model CLI opens no session');
  });

  it.each<[string, string, string, string]>([
    ['speaks another version', result(0, { protocolVersion: 2 }), 'other', 'speaks version 2 of the Agent Client'],
    ['wants a login first', lineOf({ id: 0, error: loginError }), 'auth', 'reports: Gemini API key is missing'],
    ['can not read what it is asked', lineOf({ id: null, error: { code: -32700 } }), 'other', 'does not answer init'],
  ])('can not use an agent that %s, and says so', async (_, line, reason, message) => {
    const learning = acpAdapter('acp', bare, null, options).learn(answering(line, 'never read').consult);
    await expect(learning).rejects.toMatchObject({ code: 'cli_error', reason });
    await expect(learning).rejects.toThrow(message);
  });

  it('lists the models that the agent lists', async () => {
    const { listModels } = await learned();
    const list = (session: object) =>
      listModels(answering(result(0, hello), result(1, { sessionId: 's', ...session })).consult);
    const entries = [
      { id: 'a', name: 'A', default: false },
      { id: 'b', name: 'B', default: true, description: 'better' },
    ];
    const [a, b] = [{ name: 'A' }, { name: 'B', description: 'better' }];
    const availableModels = [
      { modelId: 'a', ...a },
      { modelId: 'b', ...b },
    ];
    expect(await list({ models: { availableModels, currentModelId: 'b' } })).toEqual(entries);
    expect(await list({ models: { availableModels: [], currentModelId: 'c' } })).toEqual([
      { id: 'c', name: 'c', default: true },
    ]);
    const option = { type: 'select', id: 'o', category: 'model', currentValue: 'b' };
    const flat = [
      { value: 'a', ...a },
      { value: 'b', ...b },
    ];
    expect(await list({ configOptions: [{ ...option, options: flat }] })).toEqual(entries);
    expect(await list({ configOptions: [{ ...option, options: [{ group: 'g', name: 'G', options: flat }] }] })).toEqual(
      entries,
    );
    expect(await list({})).toBeNull();
  });

  it('starts the agent in the same way for every launch, unless an argument holds the model', async () => {
    const { plan } = await learned(bare, ['--verbose']);
    const launches = [plainLaunch(null), { ...plainLaunch('m'), system: 's', schema: '{}' }];
    for (const launch of launches) expect(plan(launch, '/x')).toEqual({ args: ['--acp', '--verbose'], files: [] });
    const other = await learned(bare, ['--model', '{model}', '--to={model}', 'x']);
    expect(other.plan(plainLaunch('m'), '/x').args).toEqual(['--acp', '--model', 'm', '--to=m', 'x']);
    expect(other.plan(plainLaunch(null), '/x').args).toEqual(['--acp', 'x']);
  });
});

describe('The private HOME of an agent', () => {
  const preset: AcpPreset = {
    ...bare,
    folders: { HOME: '.', X_HOME: '.x' },
    files: ({ KEY }) => ({ '.x/settings': KEY ?? 'none' }),
    credentials: ['.x/auth.json'],
  };

  function homeOf(given: Readonly<Record<string, string>>, homeFiles: readonly string[] = []): PrivateHome | undefined {
    return acpAdapter('acp', preset, null, { extraArgs: [], given, homeFiles }).home;
  }

  it('holds what its preset has written, and the login of the operator', () => {
    expect(homeOf({ HOME: '/home/relay', KEY: 'k' }, ['.netrc'])).toEqual({
      variables: { HOME: '.', X_HOME: '.x' },
      files: [{ path: '.x/settings', text: 'k' }],
      links: [
        { path: '.x/auth.json', to: '/home/relay/.x/auth.json' },
        { path: '.netrc', to: '/home/relay/.netrc' },
      ],
    });
    expect(homeOf({})?.links).toEqual([]);
  });
});

describe('The table of presets', () => {
  it('has an entry for every name that may be configured', () => {
    expect(Object.keys(presets)).toEqual([...acpAgents]);
  });

  it.each(Object.entries<AcpPreset>(presets))('writes and links below its HOME only: %s', (_, preset) => {
    const paths = [...Object.keys(preset.files({})), ...preset.credentials, ...Object.values(preset.folders)];
    expect(paths.filter((path) => path.startsWith('/') || path.includes('..'))).toEqual([]);
    expect(Object.values(preset.folders)).toContain('.');
  });

  it.each([
    ['gemini-api-key', {}],
    ['vertex-ai', { GOOGLE_GENAI_USE_VERTEXAI: 'true' }],
    ['oauth-personal', { GOOGLE_GENAI_USE_GCA: 'true' }],
  ])('tells gemini how it is logged in: %s', (selectedType, given) => {
    const settings = JSON.parse(presets.gemini.files(given)['.gemini/settings.json']);
    expect(settings.security.auth).toEqual({ selectedType });
  });
});
