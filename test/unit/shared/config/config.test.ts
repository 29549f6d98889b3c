import { createHash } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { features } from '../../../../src/features.js';
import { type Config, ConfigFault, type Environment, loadConfig } from '../../../../src/shared/config/config.js';
import { OptionTable } from '../../../../src/shared/config/key-options.js';
import { removedVariables, type VariableName, variables } from '../../../../src/shared/config/variables.js';

const memoryPlace = {
  ...{ kind: 'memory', text: 'memory', shown: null, password: null },
  ...{ dataPlace: 'memory', isShared: false },
};

const goodKey = 'a-key-that-is-long-enough';
const missing = Object.assign(new Error('ENOENT: no such file'), { code: 'ENOENT' });

function load(env: Environment, files: Readonly<Record<string, string>> = {}): Promise<Config> {
  const read = async (path: string) => {
    const content = files[path];
    if (content === undefined) throw missing;
    return content;
  };
  return loadConfig(env, read, undefined, features);
}

async function faultsOf(env: Environment, files: Readonly<Record<string, string>> = {}): Promise<readonly string[]> {
  const thrown = await load(env, files).catch((error: unknown) => error);
  if (!(thrown instanceof ConfigFault)) throw new Error(`no fault was found in ${JSON.stringify(env)}`);
  expect(thrown.message).toBe(thrown.faults.join('\n'));
  return thrown.faults;
}

interface Expectation {
  /**
   * Key of the configuration; null for a value that only a feature reads. `good` has the value for each accepted text.
   */
  readonly key: keyof Config | null;
  readonly good: Readonly<Record<string, unknown>>;
  readonly bad: readonly string[];
  /** Other variables that the accepted texts need. */
  readonly besides?: Environment;
}

const noNumbers = ['', ' ', 'abc', '-1', '+1', '1e3', '0x10', '1,5', ' 1', '1 ', '١', 'Infinity', '1'.repeat(40)];
const noWholeNumbers = [...noNumbers, '1.5'];
const noSeconds = [...noNumbers, '.5', '1.', '0.0001', '1.2.3'];

function unchanged(texts: readonly string[]): Expectation['good'] {
  return Object.fromEntries(texts.map((text) => [text, text]));
}

/** Expects the smallest and the largest number to be accepted. `unit`: value of 1. */
function wholeNumber(key: keyof Config | null, min: number, max: number, unit = 1): Expectation {
  const outside = [`${max + 1}`, ...(min > 0 ? [`${min - 1}`] : [])];
  return { key, good: { [min]: min * unit, [max]: max * unit }, bad: [...noWholeNumbers, ...outside] };
}

function seconds(key: keyof Config, min: number, max: number): Expectation {
  const outside = [`${max + 1}`, ...(min > 0 ? [`${min - 0.001}`] : [])];
  return { key, good: { [min]: min * 1000, '1.25': 1250, [max]: max * 1000 }, bad: [...noSeconds, ...outside] };
}

/** Variables of features with the same rules as those of the core. */
const ofFeatures = [
  ...(['MODEL_API_STORE', 'MODEL_API_STATE_FOLDER', 'MODEL_API_LOCAL_USERS', 'MODEL_API_ALLOWED_USERS'] as const),
  ...(['MODEL_API_ALLOWED_ORIGINS', 'MODEL_API_MAX_JOBS', 'MODEL_API_JOB_TTL_SECONDS'] as const),
  ...(['MODEL_API_READ_BACK', 'MODEL_API_CONSOLE', 'MODEL_API_TOOLS', 'MODEL_API_SAMPLING'] as const),
  ...(['MODEL_API_AGENT_PORT', 'MODEL_API_CGROUP', 'MODEL_API_CLI_MEMORY_MB'] as const),
];
type OfFeatures = (typeof ofFeatures)[number];

const expectations: Readonly<Record<VariableName | OfFeatures, Expectation>> = {
  MODEL_API_HOST: {
    key: 'host',
    besides: { MODEL_API_KEY: goodKey },
    good: {
      '127.0.0.1': '127.0.0.1',
      '0.0.0.0': '0.0.0.0',
      '::': '::',
      '[::1]': '::1',
      LocalHost: 'localhost',
      '127.1': '127.0.0.1',
      '0': '0.0.0.0',
      '0:0:0:0:0:0:0:0': '::',
      '[2001:DB8:0:0::1]': '2001:db8::1',
      'fe80::1%eth0': 'fe80::1%eth0',
      'relay-1.example.org': 'relay-1.example.org',
    },
    bad: [
      ...['', ' ', 'a b', '127.0.0.1:5051', '[::1]:80', '[localhost]', ':::::', 'http://localhost', '-a', 'a/b', '*'],
      ...['127.0.0.999', '1.2.3.4.5'],
    ],
  },
  MODEL_API_PORT: wholeNumber('port', 0, 65_535),
  MODEL_API_SOCKET: {
    key: 'socketPath',
    good: unchanged(['/run/relay.sock', 'a'.repeat(107)]),
    bad: ['', 'a'.repeat(108), 'ä'.repeat(54)],
  },
  MODEL_API_AGENT_PORT: wholeNumber(null, 0, 65_535),
  MODEL_API_WORKERS: wholeNumber('workers', 1, 64),
  MODEL_API_KEY: {
    key: 'apiKeys',
    good: { '#s3cret!': [expect.objectContaining({ name: 'default', scopes: ['ask', 'chat', 'admin', 'metrics'] })] },
    bad: ['', ' ', 'two words', 'one-line\n', 'mein-schlüssel', 'a-long-nul\0'],
  },
  MODEL_API_KEY_FILE: {
    key: 'apiKeys',
    good: { '/keys': [expect.objectContaining({ name: 'ada' }), expect.objectContaining({ name: 'default' })] },
    bad: ['', '/nowhere', '/empty', '/twice', '/shared', '/three-words', '/not-ascii'],
  },
  MODEL_API_KEYS_FILE: {
    key: 'namedKeys',
    good: { '/named': [expect.objectContaining({ name: 'ada', maxQueued: 3 })], '/not-ascii': [] },
    bad: ['', '/nowhere'],
  },
  MODEL_API_STATE_FOLDER: {
    key: 'stateFolder',
    good: { '/var/lib/relay': '/var/lib/relay' },
    bad: ['', 'relative/folder'],
  },
  MODEL_API_METRICS_AUTH: {
    key: 'metricsAuth',
    besides: { MODEL_API_KEY: goodKey },
    good: { true: true },
    bad: ['', 'yes'],
  },
  MODEL_API_LOCAL_USERS: {
    key: 'localUsers',
    good: { off: 'off', require: 'require' },
    bad: ['', 'on', 'true'],
  },
  MODEL_API_ALLOWED_USERS: {
    key: 'allowedUsers',
    besides: { MODEL_API_LOCAL_USERS: 'identify' },
    good: { 'ada, 1000,svc-relay$': ['ada', '1000', 'svc-relay$'] },
    bad: ['two words', '-ada', 'ada:1000'],
  },
  MODEL_API_ALLOWED_HOSTS: {
    key: 'allowedHosts',
    good: {
      'Relay.example.org': ['relay.example.org'],
      'a, [::1] ,my_host,': ['a', '::1', 'my_host'],
      '0:0:0:0:0:0:0:1': ['::1'],
    },
    bad: ['', ' , ', '*', 'relay:5051', '127.0.0.1:80', 'http://relay', 'a b'],
  },
  MODEL_API_ALLOWED_ORIGINS: {
    key: null,
    good: {
      '': [],
      'https://a.example, http://b:8080': ['https://a.example', 'http://b:8080'],
      'app://obsidian.md,tauri://localhost': ['app://obsidian.md', 'tauri://localhost'],
      'chrome-extension://abcdefgh': ['chrome-extension://abcdefgh'],
      'vscode-webview://1a2b3c, file://, app://., x-app://b:80': [
        'vscode-webview://1a2b3c',
        'file://',
        'app://.',
        'x-app://b:80',
      ],
      'null,https://[::1]:8080': ['null', 'https://[::1]:8080'],
    },
    bad: [
      ...['*', 'NULL', 'a.example', 'a.example:80', 'localhost:3000', 'https://a.example/', 'https://a.example/x'],
      ...['HTTPS://a.example', 'https://A.example', 'https://a:443', 'https://a:99999', 'https://', 'app://', '://a'],
      ...['https://*.example.org', 'https://a@b', 'https://a?x', 'https://a#x', 'https://a b', 'https://a\tb'],
      'app://Obsidian.md',
      'app:obsidian.md',
      'javascript:alert(1)',
      'data:text/html',
      'http://127.1',
      'https:\\\\a',
    ],
  },
  MODEL_API_TRUST_PROXY: {
    key: 'trustedProxies',
    good: { '': [], '10.0.0.0/8, ::1,192.0.2.1': ['10.0.0.0/8', '::1', '192.0.2.1'] },
    bad: ['true', 'loopback', '10.0.0.0/33', '10.0.0.0/0', '::/0', '::/129', '10.0.0.0/8/8', '10.0.0/8', '10.0.0.0/'],
  },
  MODEL_API_BODY_LIMIT: {
    key: 'bodyLimitBytes',
    good: { '4096': 4096, '10b': 10, '512kb': 524_288, '2MB': 2_097_152 },
    bad: ['', 'abc', '0', '-1kb', '1.5mb', '1 mb', '1gb', '65mb', '1e3'],
  },
  MODEL_API_TIMEOUT: seconds('executionMs', 0.001, 86_400),
  MODEL_API_MAX_CONCURRENT: wholeNumber('maxConcurrent', 1, 1024),
  MODEL_API_MAX_QUEUE: wholeNumber('maxQueue', 0, 1_000_000),
  MODEL_API_QUEUE_TIMEOUT_MS: wholeNumber('queueTimeoutMs', 1, 86_400_000),
  MODEL_API_CLIENT_MAX_CONCURRENT: wholeNumber('clientMaxConcurrent', 0, 1024),
  MODEL_API_DRAIN_TIMEOUT_SECONDS: seconds('drainMs', 0, 86_400),
  MODEL_API_KILL_GRACE_MS: wholeNumber('killGraceMs', 0, 60_000),
  MODEL_API_STALL_TIMEOUT: seconds('stallMs', 0, 86_400),
  MODEL_API_TOOLS: { key: 'tools', good: { off: 'off' }, bad: ['', 'true', 'ON'] },
  MODEL_API_SAMPLING: { key: 'sampling', good: { off: 'off' }, bad: ['', 'true', 'ON'] },
  MODEL_API_REUSE: { key: 'reuse', good: { off: 'off' }, bad: ['', 'true', 'ON'] },
  MODEL_API_EXPOSE_STDERR: {
    key: 'exposeStderr',
    good: { true: true, '0': false },
    bad: ['', 'yes', 'TRUE'],
  },
  MODEL_API_STANDBY: wholeNumber('standby', 0, 16),
  MODEL_API_LIVE_SESSIONS: wholeNumber('liveSessions', 0, 1024),
  MODEL_API_SESSION_IDLE_SECONDS: seconds('sessionIdleMs', 1, 86_400),
  MODEL_API_RATE_LIMIT_WINDOW_SECONDS: seconds('rateWindowMs', 1, 86_400),
  MODEL_API_RATE_LIMIT_MAX_REQUESTS: wholeNumber('rateMaxRequests', 0, 1_000_000_000),
  MODEL_API_STRICT_HEALTH: {
    key: 'strictHealth',
    good: { true: true, '1': true, false: false, '0': false },
    bad: ['', 'yes', 'TRUE', '2', ' true'],
  },
  MODEL_API_READINESS_INTERVAL_SECONDS: seconds('readinessIntervalMs', 0, 86_400),
  MODEL_API_HEALTH_HISTORY_LIMIT: wholeNumber('historyLimit', 1, 100_000),
  MODEL_API_CONVERSATION_TTL_SECONDS: seconds('conversationTtlMs', 0.001, 365 * 86_400),
  MODEL_API_MAX_CONVERSATIONS: wholeNumber('maxConversations', 1, 10_000_000),
  MODEL_API_MAX_JOBS: wholeNumber('maxJobs', 0, 1_000_000),
  MODEL_API_JOB_TTL_SECONDS: seconds('jobTtlMs', 1, 365 * 86_400),
  MODEL_API_CONVERSATION_MEMORY_MB: wholeNumber('conversationBytes', 1, 1_000_000, 1_048_576),
  MODEL_API_STORE: {
    key: 'store',
    good: {
      memory: memoryPlace,
      'sqlite:/var/lib/prompt-relay/store.db': {
        ...{ kind: 'sqlite', text: 'sqlite:/var/lib/prompt-relay/store.db', shown: '/var/lib/prompt-relay/store.db' },
        ...{ password: null, dataPlace: 'file', isShared: false },
      },
      'redis://relay:secret@h': {
        ...{ kind: 'redis', text: 'redis://relay:secret@h', shown: 'redis://h:6379/0?prefix=prompt-relay' },
        ...{ password: 'secret', dataPlace: 'redis', isShared: true },
      },
    },
    bad: ['', 'Memory', 'disk', 'sqlite', 'sqlite:store.db', 'redis://', 'redis://h:0', 'http://h', ' redis://h'],
  },
  MODEL_API_READ_BACK: {
    key: 'readBack',
    good: { false: false, '1': true },
    bad: ['', 'off'],
  },
  MODEL_API_CLIS: {
    key: 'clis',
    good: {
      'claude,jay=/etc/jay.cjs:node jay.cjs,/etc/owl.mjs*12': [
        { name: 'claude', kind: 'claude', maxRunning: null, command: null },
        { name: 'jay', kind: '/etc/jay.cjs', maxRunning: null, command: ['node', 'jay.cjs'] },
        { name: 'owl', kind: '/etc/owl.mjs', maxRunning: 12, command: null },
      ],
      claude: [{ name: 'claude', kind: 'claude', maxRunning: null, command: null }],
      'claude:/opt/claude, local*1=command:ollama run {model}': [
        { name: 'claude', kind: 'claude', maxRunning: null, command: ['/opt/claude'] },
        { name: 'local', kind: 'command', maxRunning: 1, command: ['ollama', 'run', '{model}'] },
      ],
      'a=command:sh -c "x, y"': [{ name: 'a', kind: 'command', maxRunning: null, command: ['sh', '-c', 'x, y'] }],
    },
    bad: [
      ...['gpt', 'claude,claude', 'A=claude', 'a/b=claude', 'claude:', `a=command:"open`, 'auto', '=claude', ','],
      ...['claude*', 'claude*0', 'claude*-1', 'claude*1025', 'claude*1.5', 'a*x=claude', 'a=claude*1', '*1'],
      'claude*1,claude*2',
    ],
  },
  MODEL_API_CLI: {
    key: 'cli',
    besides: { MODEL_API_CLI_COMMAND: 'cat' },
    good: unchanged(['auto', 'claude', 'codex', 'command', 'demo', '/etc/jay.cjs', '/a b/x.mjs']),
    bad: ['', 'Claude', 'gpt', 'demo ', 'jay.js', './jay.js', '/etc/jay', '/etc/jay.ts'],
  },
  MODEL_API_CLI_COMMAND: {
    key: 'cliCommand',
    good: {
      'ollama run llama3': ['ollama', 'run', 'llama3'],
      '\'/opt/my llm/run\' --flag "a b"': ['/opt/my llm/run', '--flag', 'a b'],
    },
    bad: ['', '  ', "''", `"open`, `cat '`, 'cat \\'],
  },
  MODEL_API_CLI_ARGS: {
    key: 'cliArgs',
    good: { '': [], "--add-dir '/my files'": ['--add-dir', '/my files'] },
    bad: [`"open`],
  },
  MODEL_API_CLI_ENV: {
    key: 'cliEnv',
    good: { '': [], 'HTTPS_PROXY, _x1': ['HTTPS_PROXY', '_x1'] },
    bad: ['1X', 'A=B', 'A B', 'A-B'],
  },
  MODEL_API_DEFAULT_MODEL: {
    key: 'defaultModel',
    good: { 'claude-sonnet-4-5[1m]': 'claude-sonnet-4-5[1m]', 'hf.co/org/model:q4_K@x': 'hf.co/org/model:q4_K@x' },
    bad: ['', '--help', '-x', 'a b', 'a,b', 'a\n', `$HOME`, 'a'.repeat(129)],
  },
  MODEL_API_ALLOWED_MODELS: {
    key: 'allowedModels',
    good: { '': [], 'a, b:7b': ['a', 'b:7b'] },
    bad: ['a,--help', 'a b'],
  },
  MODEL_API_MODEL_ALIASES: {
    key: 'modelAliases',
    good: {
      '': [],
      ' , ': [],
      'gpt-4o-mini=haiku, *=default,openai/gpt-4o = claude/opus[1m]': [
        { name: 'gpt-4o-mini', target: 'haiku' },
        { name: '*', target: 'default' },
        { name: 'openai/gpt-4o', target: 'claude/opus[1m]' },
      ],
      'constructor=a,a=constructor': [
        { name: 'constructor', target: 'a' },
        { name: 'a', target: 'constructor' },
      ],
    },
    bad: [
      ...['gpt-4o', 'gpt-4o=', '=haiku', 'gpt-4o=*', 'gpt-*=haiku', 'a=b=c', '-a=b', 'a=-b', 'a b=c', 'a=b c', '**=b'],
      ...['default=haiku', 'a=b,a=c', '*=a,*=b', '__proto__=a'],
    ],
  },
  MODEL_API_MAX_OUTPUT_BYTES: wholeNumber('maxOutputBytes', 1, 33_554_432),
  MODEL_API_CGROUP: {
    key: 'cgroup',
    good: unchanged(['auto', 'off', '/', '/sys/fs/cgroup/user.slice/my relay']),
    bad: ['', ' ', 'on', 'AUTO', 'auto ', 'relay.slice', './relay'],
  },
  MODEL_API_CLI_MEMORY_MB: wholeNumber(null, 1, 1_000_000, 1_048_576),
  MODEL_API_CONSOLE: {
    key: null,
    good: unchanged(['on', 'off']),
    bad: ['', 'true', 'ON'],
  },
  MODEL_API_LOG_LEVEL: {
    key: 'logLevel',
    good: unchanged(['debug', 'info', 'warn', 'error', 'silent']),
    bad: ['', 'trace', 'INFO'],
  },
  MODEL_API_LOG_FORMAT: {
    key: 'logFormat',
    good: unchanged(['auto', 'json', 'text']),
    bad: ['', 'pretty', 'JSON'],
  },
  MODEL_CODE_OAUTH_TOKEN: { key: 'oauthToken', good: { t0ken: 't0ken' }, bad: [''] },
  MODEL_CODE_OAUTH_TOKEN_FILE: { key: 'oauthToken', good: { '/token': 't0ken' }, bad: ['', '/missing', '/empty'] },
};

const files = {
  '/keys': '# people\nada  s3cret-of-ada-that-is-long\r\n\n  another-key-that-is-long \n',
  '/empty': '\n# nothing\n',
  '/token': 't0ken\n',
  '/twice': 'a first-key\na second-key\n',
  '/shared': 'a first-key\nb second-key\nc first-key\n',
  '/three-words': 'a b c\n',
  '/not-ascii': 'ada mein-schlüssel\n',
  '/named': `ada:sha256:${'ab'.repeat(32)}:queue=3\n`,
};

describe.each(Object.entries(expectations))('%s', (name, { key, good, bad, besides }) => {
  it.each(Object.entries(good))('accepts %j', async (text, value) => {
    const config = await load({ ...besides, [name]: text }, files);
    expect(key === null ? config.featureValues[name] : config[key]).toEqual(value);
  });

  it.each(bad)('rejects %j', async (text) => {
    const faults = await faultsOf({ ...besides, [name]: text }, files);
    expect(faults).toHaveLength(1);
    expect(faults[0]).toMatch(new RegExp(`^${name}: .+`));
  });
});

describe('The configuration', () => {
  it('has the documented defaults', async () => {
    const { warnings, production, featureValues: _, featurePorts, featureModels, ...values } = await load({});
    expect([featurePorts.map(({ number }) => number), featureModels]).toEqual([[null], []]);
    expect(values).toEqual({
      historyLimit: 100,
      host: '127.0.0.1',
      port: 5051,
      socketPath: null,
      ownPorts: [],
      workers: Math.min(availableParallelism(), 4),
      apiKeys: [],
      namedKeys: [],
      groupLines: [],
      stateFolder: null,
      namedStateFolder: null,
      firstStartFile: null,
      modelSizesFile: null,
      personLines: [],
      keyOptions: expect.any(OptionTable),
      keysFile: null,
      keysFileFaults: [],
      needsKey: false,
      metricsAuth: false,
      localUsers: 'identify',
      allowedUsers: [],
      allowedHosts: ['localhost', '127.0.0.1', '::1'],
      trustedProxies: [],
      bodyLimitBytes: 16_777_216,
      executionMs: 120_000,
      maxConcurrent: 4,
      maxQueue: 100,
      queueTimeoutMs: 120_000,
      drainMs: 30_000,
      killGraceMs: 2000,
      tools: 'on',
      sampling: 'on',
      exposeStderr: false,
      stallMs: 0,
      standby: 1,
      liveSessions: 4,
      sessionIdleMs: 300_000,
      rateWindowMs: 60_000,
      rateMaxRequests: 0,
      strictHealth: false,
      store: memoryPlace,
      readBack: true,
      readinessIntervalMs: 60_000,
      reuse: 'on',
      jobTtlMs: 86_400_000,
      maxJobs: 1000,
      conversationTtlMs: 86_400_000,
      maxConversations: 1000,
      conversationBytes: 268_435_456,
      cli: 'auto',
      cliCommand: null,
      cliArgs: [],
      clientMaxConcurrent: 0,
      clis: [],
      cliEnv: [],
      defaultModel: null,
      allowedModels: [],
      modelAliases: [],
      maxOutputBytes: 8_388_608,
      cgroup: 'auto',
      featureSecrets: [],
      featureKeyDigests: [],
      logLevel: 'info',
      logFormat: 'auto',
      oauthToken: null,
    });
    expect([warnings, production]).toEqual([[], false]);
  });

  it.each([
    ['memory', '', 1],
    ['sqlite:/var/store.db', '', 30],
    ['redis://localhost', '', 30],
    ['sqlite:/var/store.db', '172800', 2],
  ])('stores conversations in %s for days, with the variable %j: %d', async (store, seconds, days) => {
    const env = { MODEL_API_STORE: store, ...(seconds && { MODEL_API_CONVERSATION_TTL_SECONDS: seconds }) };
    expect((await load({ ...env, MODEL_API_KEY: goodKey })).conversationTtlMs).toBe(days * 86_400_000);
  });

  it('is frozen, including its lists', async () => {
    const config = await load({ MODEL_API_KEY: goodKey, MODEL_API_CLI_COMMAND: 'cat', MODEL_API_ALLOWED_MODELS: 'a' });
    expect(Object.isFrozen(config)).toBe(true);
    expect(Object.entries(config).filter(([, value]) => !Object.isFrozen(value))).toEqual([]);
  });

  it('reports every fault at once, in the order of the documentation', async () => {
    const env = Object.fromEntries(Object.entries(expectations).map(([name, { bad }]) => [name, bad[0]]));
    const names = (await faultsOf(env)).map((fault) => fault.split(':', 1)[0]);
    expect(names).toEqual([...Object.keys(variables), ...ofFeatures]);
  });

  it('lists the allowed values if there are only a few', async () => {
    expect(await faultsOf({ MODEL_API_CLI: 'Claude', MODEL_API_LOG_LEVEL: 'INFO' })).toEqual([
      expect.stringMatching(
        /^MODEL_API_CLI: must be auto, claude, codex, command, demo, .+ or \w+, or the absolute path of an adapter \(\.js, \.cjs, \.mjs\)\. Did you mean claude\?$/,
      ),
      'MODEL_API_LOG_LEVEL: must be debug, info, warn, error or silent',
    ]);
  });

  it('reports contradictions with the other faults', async () => {
    const faults = await faultsOf({ MODEL_API_PORT: 'x', MODEL_API_CLI: 'command' });
    expect(faults.map((fault) => fault.split(':', 1)[0])).toEqual(['MODEL_API_PORT', 'MODEL_API_CLI_COMMAND']);
  });

  it('never shows a key or a token', async () => {
    const secret = 'geheim wörd';
    const faults = await faultsOf(
      { MODEL_API_KEY_FILE: '/k', MODEL_API_KEY: secret, MODEL_CODE_OAUTH_TOKEN: '', MODEL_API_PORT: 'x' },
      { '/k': `${secret} ${secret}` },
    );
    expect(faults.join()).not.toMatch(/geheim|wörd/);
    expect(JSON.stringify(await load({ MODEL_API_KEY: 'geheim-und-lang' }))).not.toContain('geheim');
    expect((await faultsOf({ MODEL_API_KEY_FILE: '/k' }, { '/k': `${secret} ${secret}` })).join()).not.toMatch(
      /geheim/,
    );
  });

  it('recognises a production host', async () => {
    expect((await load({ NODE_ENV: 'production' })).production).toBe(true);
  });
});

it('A store that no feature has is a fault, because nothing would be stored', async () => {
  const loaded = (place: string) => loadConfig({ MODEL_API_STORE: place }, async () => '');
  await expect(loaded('sqlite:/var/store.db')).rejects.toMatchObject({ faults: ['MODEL_API_STORE: must be memory'] });
  expect((await loaded('memory')).store.kind).toBe('memory');
});

describe('A contradiction between variables', () => {
  const commandOf = (command: string) => ({ MODEL_API_CLI: 'command', MODEL_API_CLI_COMMAND: command });

  it.each([
    [
      'an open host without a key',
      { MODEL_API_HOST: '0.0.0.0' },
      'MODEL_API_HOST: 0.0.0.0 can be reached from other machines',
    ],
    ['an open host of IPv6 without a key', { MODEL_API_HOST: '::' }, 'MODEL_API_HOST'],
    ['a host of the network without a key', { MODEL_API_HOST: '192.0.2.1' }, 'MODEL_API_HOST'],
    ['a name that may be anywhere without a key', { MODEL_API_HOST: 'relay.example.org' }, 'MODEL_API_HOST'],
    ['a command adapter without a command', { MODEL_API_CLI: 'command' }, 'MODEL_API_CLI_COMMAND'],
    ['{model} without a model', commandOf('llm -m {model}'), 'MODEL_API_DEFAULT_MODEL'],
    [
      '{model} in an extra argument, without a model',
      { ...commandOf('llm'), MODEL_API_CLI_ARGS: '-m {model}' },
      'MODEL_API_DEFAULT_MODEL',
    ],
    [
      'another model than its own for a command that takes none',
      { ...commandOf('/opt/llm -q'), MODEL_API_ALLOWED_MODELS: 'gpt' },
      'MODEL_API_ALLOWED_MODELS',
    ],
    [
      'several models for a command that takes none',
      { ...commandOf('llm'), MODEL_API_DEFAULT_MODEL: 'a', MODEL_API_ALLOWED_MODELS: 'a,b,c' },
      'MODEL_API_ALLOWED_MODELS: must not name b, c',
    ],
    [
      'a default that is not allowed',
      { MODEL_API_DEFAULT_MODEL: 'a', MODEL_API_ALLOWED_MODELS: 'b,c' },
      'MODEL_API_DEFAULT_MODEL',
    ],
  ])('is a fault: %s', async (_, env, name) => {
    const faults = await faultsOf(env);
    expect(faults).toHaveLength(1);
    expect(faults[0]).toMatch(new RegExp(`^${name}: .+`));
  });

  it.each([
    ['an open host with a key', { MODEL_API_HOST: '0.0.0.0', MODEL_API_KEY: goodKey }],
    ['loopback without a key', { MODEL_API_HOST: '127.8.8.8' }],
    ['IPv6 loopback without a key', { MODEL_API_HOST: '[::1]' }],
    ['a default among the allowed', { MODEL_API_DEFAULT_MODEL: 'b', MODEL_API_ALLOWED_MODELS: 'a,b' }],
    ['any default where all are allowed', { MODEL_API_DEFAULT_MODEL: 'b' }],
    ['{model} with a model', { ...commandOf('llm -m {model}'), MODEL_API_DEFAULT_MODEL: 'b' }],
    ['{model} with models to choose from', { ...commandOf('llm -m {model}'), MODEL_API_ALLOWED_MODELS: 'a,b' }],
    [
      'several models for a command that takes one',
      { ...commandOf('llm -m {model}'), MODEL_API_DEFAULT_MODEL: 'b', MODEL_API_ALLOWED_MODELS: 'a,b' },
    ],
    ['the name of the program', { ...commandOf('/opt/llm -q'), MODEL_API_ALLOWED_MODELS: 'llm' }],
    [
      'the name that its operator has given it',
      { ...commandOf('llm'), MODEL_API_DEFAULT_MODEL: 'gpt', MODEL_API_ALLOWED_MODELS: 'gpt' },
    ],
    ['any model for a CLI that takes one by itself', { MODEL_API_CLI: 'claude', MODEL_API_ALLOWED_MODELS: 'a,b' }],
  ])('is not: %s', async (_, env) => {
    await expect(load(env)).resolves.toBeDefined();
  });

  it('is not reported for a variable with a fault', async () => {
    expect(await faultsOf({ MODEL_API_HOST: '0.0.0.0', MODEL_API_KEY: '' })).toHaveLength(1);
    expect(await faultsOf({ MODEL_API_CLI: 'command', MODEL_API_CLI_COMMAND: '"' })).toHaveLength(1);
    expect(await faultsOf({ MODEL_API_DEFAULT_MODEL: 'a', MODEL_API_ALLOWED_MODELS: '-' })).toHaveLength(1);
  });
});

describe('The API keys', () => {
  const unit = { CREDENTIALS_DIRECTORY: '/run/credentials/relay' };
  const credential = '/run/credentials/relay/api_key';

  async function names(env: Environment, content: Readonly<Record<string, string>>): Promise<string[]> {
    return (await load(env, content)).apiKeys.map(({ name }) => name);
  }

  it('are read from MODEL_API_KEY before the file, and from the file before the credential', async () => {
    const content = { '/keys': 'filed its-own-key', [credential]: 'entrusted its-own-key' };
    const file = { ...unit, MODEL_API_KEY_FILE: '/keys' };
    expect(await names({ ...file, MODEL_API_KEY: goodKey }, content)).toEqual(['default']);
    expect(await names(file, content)).toEqual(['filed']);
    expect(await names(unit, content)).toEqual(['entrusted']);
  });

  it('are not read from a file if MODEL_API_KEY is set, which causes a warning', async () => {
    const { apiKeys, warnings } = await load({ MODEL_API_KEY: goodKey, MODEL_API_KEY_FILE: '/keys' }, files);
    expect(apiKeys.map(({ name }) => name)).toEqual(['default']);
    expect(warnings).toEqual(['MODEL_API_KEY_FILE is not read, because MODEL_API_KEY is set']);
  });

  it('are a fault that names their file and the cause if it cannot be read', async () => {
    expect(await faultsOf({ MODEL_API_KEY_FILE: '/nowhere' })).toEqual([
      expect.stringContaining('MODEL_API_KEY_FILE: /nowhere: there is no such file or folder'),
    ]);
  });

  it('must be distinct, and the fault shows only their names', async () => {
    const shared = { MODEL_API_KEY_FILE: '/shared' };
    expect(await faultsOf(shared, files)).toEqual([
      'MODEL_API_KEY_FILE: a and c have the same key: each name needs a different key',
    ]);
  });

  it('have no name that looks like a sub-client of another key', async () => {
    const content = { '/slash': 'app its-own-key\napp/ada another-key\n' };
    expect(await faultsOf({ MODEL_API_KEY_FILE: '/slash' }, content)).toEqual([
      'MODEL_API_KEY_FILE: the name on line 2 must not contain /, which separates a key from its users',
    ]);
  });

  const short = 'a key of fewer than 24 characters may be guessed: "prompt-relay keys new" generates a secure one';

  it.each([
    ['in production', { NODE_ENV: 'production' }],
    ['where other machines can reach the service', { MODEL_API_HOST: '0.0.0.0' }],
  ])('must have eight characters %s', async (_, env) => {
    const sentence = 'a key must have at least 8 characters';
    const shortFile = { '/short': 'ada 7-chars\n' };
    for (const [name, value] of [
      ['MODEL_API_KEY', '7-chars'],
      ['MODEL_API_KEY_FILE', '/short'],
    ] as const) {
      await expect(load({ ...env, [name]: value }, shortFile)).rejects.toMatchObject({
        faults: [`${name}: ${sentence}`],
      });
      expect((await load({ [name]: value }, shortFile)).warnings).toEqual([`${name}: ${short}`]);
    }
  });

  it('cause a warning if they are short', async () => {
    const inFile = { MODEL_API_KEY_FILE: '/keys' };
    expect((await load({ MODEL_API_KEY: '23-characters-and-so-on' })).warnings).toEqual([`MODEL_API_KEY: ${short}`]);
    expect((await load({ MODEL_API_KEY: '24-characters-and-so-on-' })).warnings).toEqual([]);
    expect((await load(inFile, { '/keys': `a ${goodKey}\nb short-key` })).warnings).toEqual([
      `MODEL_API_KEY_FILE: ${short}`,
    ]);
  });

  it.each([
    [0o644, true],
    [0o604, true],
    [0o640, false],
    [0o600, false],
  ])('cause a warning in a file of mode %o: %p', async (mode, isWarned) => {
    const env = { MODEL_API_KEY_FILE: '/clear', MODEL_API_KEYS_FILE: '/named' };
    const readers = { '/clear': goodKey, '/named': files['/named'] } as Readonly<Record<string, string>>;
    const { warnings } = await loadConfig(
      env,
      async (path) => readers[path] ?? '',
      async () => mode,
    );
    const named = (name: string, path: string) => `${name}: every user of this machine can read ${path}: chmod o-r it`;
    const both = [named('MODEL_API_KEY_FILE', '/clear'), named('MODEL_API_KEYS_FILE', '/named')];
    expect(warnings).toEqual(isWarned ? both : []);
  });

  it('cause a warning in an environment file that all users can read, if it contains a key', async () => {
    const env = { MODEL_API_KEY: goodKey };
    const warningsFor = async (text: string, mode: number) =>
      (
        await loadConfig(
          env,
          async () => text,
          async () => mode,
        )
      ).warnings;
    const warning = 'MODEL_API_KEY: every user of this machine can read /etc/prompt-relay/environment: chmod o-r it';
    expect(await warningsFor(`A=1\nMODEL_API_KEY=${goodKey}\n`, 0o644)).toEqual([warning]);
    expect(await warningsFor(`A=1\nMODEL_API_KEY=${goodKey}\n`, 0o640)).toEqual([]);
    expect(await warningsFor('#MODEL_API_KEY=\n', 0o644)).toEqual([]);
  });

  it('may be missing in a keys file, which then refuses all clients', async () => {
    const { needsKey, warnings } = await load({ MODEL_API_KEYS_FILE: '/empty' }, files);
    expect(needsKey).toBe(true);
    expect(warnings).toEqual(['MODEL_API_KEYS_FILE: contains no key, so every request that needs one is refused']);
  });

  it('have one name and one digest each, across all sources', async () => {
    const digest = createHash('sha256').update(goodKey).digest('hex');
    const { keysFileFaults } = await load(
      { MODEL_API_KEY: goodKey, MODEL_API_KEYS_FILE: '/k' },
      { '/k': `default:sha256:${'ab'.repeat(32)}\nada:sha256:${digest}\n` },
    );
    expect(keysFileFaults).toEqual([
      'line 1: another key already has the name default',
      'line 2: ada has the same key as default: each name needs a different key',
    ]);
  });

  it('may be missing from the credentials of a unit', async () => {
    expect(await names(unit, {})).toEqual([]);
  });

  it('must be readable if they are configured', async () => {
    const denied = Object.assign(new Error('EACCES: permission denied'), { code: 'EACCES' });
    const loaded = loadConfig(unit, () => Promise.reject(denied));
    await expect(loaded).rejects.toMatchObject({
      faults: ['$CREDENTIALS_DIRECTORY/api_key: /run/credentials/relay/api_key: permission denied'],
    });
    expect(await faultsOf(unit, { [credential]: '\n' })).toEqual(['$CREDENTIALS_DIRECTORY/api_key: contains no key']);
    const named = { ...unit, MODEL_API_KEYS_FILE: '/named' };
    const line = `ada:sha256:${'ab'.repeat(32)}\n`;
    const { apiKeys, namedKeys, needsKey } = await load(named, { [credential]: '\n', '/named': line });
    expect([apiKeys.length, namedKeys.length, needsKey]).toEqual([0, 1, true]);
  });

  it('are equal from every source', async () => {
    const [direct, filed] = await Promise.all([
      load({ MODEL_API_KEY: 's3cret-key' }),
      load({ MODEL_API_KEY_FILE: '/keys' }, { '/keys': '\ufeffs3cret-key\n' }),
    ]);
    expect(filed.apiKeys).toEqual(direct.apiKeys);
  });
});

describe('The allowed hosts', () => {
  it('are the loopback names and the bind address', async () => {
    const { allowedHosts } = await load({ MODEL_API_HOST: 'Relay.example.org', MODEL_API_KEY: goodKey });
    expect(allowedHosts).toEqual(['localhost', '127.0.0.1', '::1', 'relay.example.org']);
  });

  it.each(['0.0.0.0', '::', '[::]', '0', '0:0:0:0:0:0:0:0'])(
    'are not restricted on the wildcard address %s',
    async (host) => {
      expect((await load({ MODEL_API_HOST: host, MODEL_API_KEY: goodKey })).allowedHosts).toBeNull();
    },
  );

  it('are only the configured ones if some are configured', async () => {
    const env = { MODEL_API_HOST: '0.0.0.0', MODEL_API_KEY: goodKey, MODEL_API_ALLOWED_HOSTS: 'relay' };
    expect((await load(env)).allowedHosts).toEqual(['relay']);
  });
});

describe('An unknown variable', () => {
  it('causes a warning with the nearest known one', async () => {
    const { warnings } = await load({
      MODEL_API_PROT: '1',
      MODEL_API_TIMEOUT_SECONDS: '1',
      PROT: '1',
      MODEL_API_URL: 'x',
    });
    expect(warnings).toEqual([
      'MODEL_API_PROT is not a variable of prompt-relay: did you mean MODEL_API_PORT?',
      expect.stringMatching(
        /^MODEL_API_TIMEOUT_SECONDS is not a variable of prompt-relay: did you mean MODEL_API_\w+\?$/,
      ),
    ]);
  });

  it('causes a warning that says what applies instead if it was removed', async () => {
    const { warnings } = await load({ MODEL_API_CLIENT_MAX_QUEUE: '5', MODEL_API_MAX_RESPONSES: '5' });
    expect(warnings).toEqual([
      'MODEL_API_CLIENT_MAX_QUEUE was removed and has no effect: a client has its share; the option queue of a key sets another limit',
      expect.stringContaining('MODEL_API_MAX_RESPONSES was removed and has no effect'),
    ]);
  });

  it.each([...removedVariables])('causes a warning if it was removed: %s', async (name, advice) => {
    const { warnings } = await load({ [`MODEL_API_${name}`]: '1' });
    expect(warnings).toEqual([`MODEL_API_${name} was removed and has no effect: ${advice}`]);
  });

  it('causes a warning without a suggestion if no name is near', async () => {
    const { warnings } = await load({ MODEL_API_XYZZY_PLUGH_QUUX_FROBNICATE: '1' });
    expect(warnings).toEqual(['MODEL_API_XYZZY_PLUGH_QUUX_FROBNICATE is not a variable of prompt-relay']);
  });
});
