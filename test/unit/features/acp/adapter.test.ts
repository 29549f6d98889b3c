import { type AcpOptions, acpAdapter } from '../../../../src/features/acp/adapter.js';
import { type AcpPreset, presets } from '../../../../src/features/acp/presets.js';
import { acpAgents } from '../../../../src/features/acp/shared.js';
import { type Consult, type PrivateHome, plainLaunch } from '../../../../src/primary/cli/contract/adapter.js';
import { bare, hello, learned, lineOf, result } from '../../../support/agents/acp-lines.js';

const options = { extraArgs: [], givenVariables: { HOME: '/home/relay' }, homeFiles: [], mayHaveTools: true };

/** Creates an agent that answers its requests with these lines, in order. */
function answering(...lines: readonly string[]): { consult: Consult; asked: string[] } {
  const asked: string[] = [];
  const hear = (text: string) => void asked.push(...text.split('\n').filter((line) => line !== ''));
  const consult: Consult = async (_args, input = '', isEnough = () => true) => {
    hear(input);
    let stdout = '';
    for (const line of lines) {
      stdout += line;
      const verdict = isEnough(stdout);
      if (verdict === true) break;
      if (verdict !== false) hear(verdict);
    }
    return { code: null, stdout };
  };
  return { consult, asked };
}

const openAi = {
  id: 'openai',
  name: 'OpenAI',
  type: 'env_var',
  vars: [{ name: 'OPENAI_API_KEY' }, { name: 'OPENAI_ORG', optional: true }],
};
const loginError = { code: -32000, message: 'Gemini API key is missing or not configured.' };

describe('The ACP adapter', () => {
  it('learns the version of the agent, which the agent may leave out', async () => {
    expect((await learned()).version).toBe('1.2.3');
    const adapter = acpAdapter('acp', bare, null, options);
    const { consult, asked } = answering('a banner\n', result(0, { protocolVersion: 1 }));
    expect((await adapter.learn(consult)).version).toBeNull();
    expect(asked).toHaveLength(1);
  });

  describe('before the first job of an agent with known tools', () => {
    const trial = { args: ['--trial'], env: () => ({ API: 'callback' }) };
    const session = [result(0, hello), result(1, { sessionId: 's' })];
    /** Learns an agent whose trial ends like this, and returns its starts: `trial` or `plain`. */
    const learn = async (end: () => object, more: Partial<AcpOptions> = {}) => {
      const starts: string[] = [];
      const prompts: string[] = [];
      const consult: Consult = async (args, input, isEnough, file, trialEnv) => {
        starts.push(trialEnv === undefined ? 'plain' : 'trial');
        const { consult, asked } = answering(...session);
        const answer = await consult(args, input, isEnough, file);
        prompts.push(...asked.filter((line) => line.includes('session/prompt')));
        return trialEnv === undefined ? answer : { ...answer, ...end() };
      };
      const adapter = acpAdapter('qwen', { ...bare, env: { MODE: 'safe' }, trial }, null, { ...options, ...more });
      const { version, isProvisional } = await adapter.learn(consult);
      return { version, isProvisional, starts, prompts: prompts.length };
    };
    const requesting = (...tools: readonly object[]) => ({ request: JSON.stringify({ tools }) });

    it('tries a prompt in one start, and rejects a version that offers the model a tool', async () => {
      const learnt = { version: '1.2.3', isProvisional: false, starts: ['trial'], prompts: 1 };
      expect(await learn(() => requesting())).toEqual(learnt);
      await expect(learn(() => requesting({ name: 'read' }))).rejects.toThrow(
        'version 1.2.3 of qwen cannot be used safely: it offers the model its own tools: read',
      );
    });

    it('tries again later if the trial has no end in time, and not if the agent refuses it', async () => {
      const late = () => {
        throw new Error('late');
      };
      expect(await learn(late)).toMatchObject({ version: '1.2.3', isProvisional: true, starts: ['trial'] });
      expect(await learn(() => ({}))).toMatchObject({ isProvisional: false, starts: ['trial'] });
    });

    it.each<[string, Partial<AcpOptions>]>([
      ['arguments', { extraArgs: ['--yolo'] }],
      ['files', { homeFiles: ['settings.json'] }],
      ['variables', { givenVariables: { MODE: 'open' } }],
    ])('tries nothing if %s of the operator may have enabled tools', async (_, more) => {
      expect(await learn(() => requesting({ name: 'read' }), more)).toMatchObject({ starts: ['plain'] });
    });
  });

  it('supports images if the agent reports the capability', async () => {
    expect((await learned()).extras).toEqual({ thoughts: true });
    const adapter = acpAdapter('acp', bare, null, options);
    const seeing = { ...hello, agentCapabilities: { promptCapabilities: { image: true } } };
    const { extras } = await adapter.learn(answering(result(0, seeing)).consult);
    expect(extras.image?.({ mediaType: 'image/png', data: 'AA', at: 0 })).toMatchObject({ type: 'image', data: 'AA' });
  });

  it('opens a callback if the agent calls tools and requests may offer some, and none otherwise', async () => {
    const calling = { ...hello, agentCapabilities: { mcpCapabilities: { http: true } } };
    const able = { ...bare, tools: { ownArguments: [] } };
    const known = async (mayHaveTools: boolean, preset: AcpPreset = able) => {
      const adapter = acpAdapter('acp', preset, null, { ...options, mayHaveTools });
      const { extras, protocol } = await adapter.learn(answering(result(0, calling)).consult);
      return [extras.tools, protocol().decoder.requested === undefined];
    };
    expect(await known(true)).toEqual(['single', false]);
    expect(await known(false)).toEqual([undefined, true]);
    expect(await known(true, bare)).toEqual([undefined, true]);
  });

  it.each([[''], ['usage: agent [options]\n'], [lineOf({ id: 0, error: { code: -32601, message: 'no' } })]])(
    'rejects a program that does not speak the protocol: %j',
    async (stdout) => {
      const adapter = acpAdapter('acp', bare, null, options);
      await expect(adapter.learn(async () => ({ code: 1, stdout }))).rejects.toMatchObject({ code: 'cli_error' });
    },
  );

  it('does not wait for a person to log in', async () => {
    const adapter = acpAdapter('acp', bare, null, options);
    const asking = answering('Please visit the following URL to authorize the application:\n', 'never read');
    await expect(adapter.learn(asking.consult)).rejects.toMatchObject({ code: 'cli_error', reason: 'auth' });
  });

  it('can run jobs if the agent opens a session', async () => {
    const { check } = await learned();
    const opens = answering(result(0, hello), result(1, { sessionId: 's' }));
    expect(await check(opens.consult)).toBeNull();
    expect(opens.asked.map((line) => JSON.parse(line).method)).toEqual(['initialize', 'session/new']);
    expect(JSON.parse(opens.asked[1] ?? '').params).toEqual({ cwd: '/proc/self/cwd', mcpServers: [] });
  });

  it('cannot run jobs if the agent is not logged in, and lists the ways to log in', async () => {
    const { check } = await learned();
    const missing = 'the model CLI is not logged in: Gemini API key is missing or not configured.';
    const refusal = lineOf({ id: 1, error: loginError });
    expect(await check(answering(result(0, hello), refusal).consult)).toBe(missing);
    const ways = { ...hello, authMethods: [{ id: 'x', name: 'Log in\u001b[31m' }, openAi] };
    expect(await check(answering(result(0, ways), refusal).consult)).toBe(
      `${missing}; ways to log in: Log in[31m; OpenAI (MODEL_API_CLI_ENV=OPENAI_API_KEY,OPENAI_ORG)`,
    );
  });

  it.each([
    ['refuses it', lineOf({ id: 1, error: { code: -32603, message: 'Internal error', data: { details: 'no disk' } } })],
    ['refuses without an id', lineOf({ id: null, error: { code: -32700, message: 'no disk' } })],
    ['refuses as its last words', lineOf({ id: 1, error: 'no disk' }).trim()],
  ])('cannot run jobs if the agent opens no session: it %s', async (_, line) => {
    const { check } = await learned();
    const agent = answering(result(0, hello), line);
    await expect(check(agent.consult)).rejects.toMatchObject({ message: 'the model CLI reports: no disk' });
  });

  it('cannot run jobs if the agent exits earlier', async () => {
    const { check } = await learned();
    const ending = check(answering(result(0, hello)).consult);
    await expect(ending).rejects.toMatchObject({ message: 'the model CLI does not open a session', reason: 'other' });
  });

  it('cannot run jobs if the agent offers no model', async () => {
    const { check, listModels } = await learned();
    const option = { type: 'select', id: 'o', category: 'model', currentValue: 'unknown/unknown', options: [] };
    const session = result(1, { sessionId: 's', configOptions: [option] });
    const agent = () => answering(result(0, hello), session).consult;
    expect(await check(agent())).toBe('the model CLI is not logged in: it offers no model');
    expect(await listModels(agent())).toBeNull();
  });

  it('logs in with the first method whose variables are set, and then retries', async () => {
    const adapter = acpAdapter('acp', bare, null, { ...options, givenVariables: { OPENAI_API_KEY: 'k' } });
    const named = {
      ...hello,
      authMethods: [{ id: 'browser', name: 'Browser' }, { ...openAi, id: 'no', vars: [{ name: 'NO' }] }, openAi],
    };
    const { check } = await adapter.learn(answering(result(0, named)).consult);
    const refusal = { error: loginError };
    const agent = answering(
      result(0, named),
      lineOf({ id: 1, ...refusal }),
      result(2, {}),
      result(3, { sessionId: 's' }),
    );
    expect(await check(agent.consult)).toBeNull();
    const asked = agent.asked.map((line) => JSON.parse(line));
    expect(asked.map(({ method }) => method)).toEqual(['initialize', 'session/new', 'authenticate', 'session/new']);
    expect(asked[2].params).toEqual({ methodId: 'openai' });
    const again = answering(
      result(0, named),
      lineOf({ id: 1, ...refusal }),
      result(2, {}),
      lineOf({ id: 3, ...refusal }),
    );
    expect(await check(again.consult)).toMatch(/^the model CLI is not logged in: .*; ways to log in: Browser; /);
  });

  it('handles each reply once, whatever else the agent sends', async () => {
    const { check } = await learned();
    const twice = result(0, hello) + result(0, hello) + result(9, {});
    expect(await check(answering(twice, result(1, { sessionId: 's' })).consult)).toBeNull();
    const login = { ...hello, authMethods: [{ id: 'x', description: 'Log in to continue' }] };
    expect(await check(answering(result(0, login), result(1, { sessionId: 's' })).consult)).toBeNull();
  });

  it('cannot run jobs if the reply of the agent is not a session', async () => {
    const { check } = await learned();
    const opening = check(answering(result(0, hello), result(1, {})).consult);
    await expect(opening).rejects.toMatchObject({ message: 'the model CLI did not open a session' });
  });

  it.each<[string, string, string, string]>([
    ['speaks another version', result(0, { protocolVersion: 2 }), 'other', 'speaks version 2 of the Agent Client'],
    ['wants a login first', lineOf({ id: 0, error: loginError }), 'auth', 'reports: Gemini API key is missing'],
    ['can not read what it is asked', lineOf({ id: null, error: { code: -32700 } }), 'other', 'the model CLI reports'],
  ])('rejects an agent that %s, with a message', async (_, line, reason, message) => {
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
    return acpAdapter('acp', preset, null, { ...options, givenVariables: given, homeFiles }).home;
  }

  it('contains the files of its preset, and the login of the operator', () => {
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

  it.each(Object.entries<AcpPreset>(presets))('writes and links only below its HOME: %s', (_, preset) => {
    const paths = [...Object.keys(preset.files({})), ...preset.credentials, ...Object.values(preset.folders)];
    expect(paths.filter((path) => path.startsWith('/') || path.includes('..'))).toEqual([]);
    expect(Object.values(preset.folders)).toContain('.');
  });

  it.each([
    ['gemini-api-key', {}],
    ['vertex-ai', { GOOGLE_GENAI_USE_VERTEXAI: 'true' }],
    ['oauth-personal', { GOOGLE_GENAI_USE_GCA: 'true' }],
  ])('configures the login of gemini: %s', (selectedType, given) => {
    const settings = JSON.parse(presets.gemini.files(given)['.gemini/settings.json']);
    expect(settings.security.auth).toEqual({ selectedType });
  });
});
