import { type ClaudeOptions, claudeAdapter } from '../../../../../../src/primary/cli/adapters/claude/adapter.js';
import { toolsOpenedBy } from '../../../../../../src/primary/cli/adapters/claude/launch.js';
import {
  type Consult,
  type LaunchOptions,
  type ProgramVersion,
  plainLaunch,
} from '../../../../../../src/primary/cli/contract/adapter.js';
import { RelayError } from '../../../../../../src/shared/errors.js';

const flags = [
  ...['--print', '--input-format <format>', '--output-format <format>', '--verbose', '--tools <tools...>'],
  ...['--strict-mcp-config', '--setting-sources <sources>', '--settings <file-or-json>', '--disable-slash-commands'],
  ...['--include-partial-messages', '--no-session-persistence'],
];

const login: ClaudeOptions = { extraArgs: [], givenVariables: {}, hasToken: true };

/** Learns the version of a program. `trial`: output of its trial run. */
function programVersion(help: readonly string[] = flags, options = login, trial = ''): Promise<ProgramVersion> {
  const answers: Record<string, string> = { '--version': '2.1.197 (Claude Code)\n', '--help': help.join('\n  ') };
  return claudeAdapter(['claude'], options).learn(async ([flag = '']) => ({ code: 0, stdout: answers[flag] ?? trial }));
}

/** Output of 2.1.330 in a trial run, shortened. */
const signs = {
  settings: answer('3', { effective: {}, applied: { model: 'claude-of-the-trial', effort: 'low', advisor: null } }),
  context: answer('4', { categories: [{ id: 'system_prompt', name: 'System prompt', tokens: 3, kind: 'used' }] }),
  tools: { type: 'system', subtype: 'init', tools: ['StructuredOutput'], model: 'claude-of-the-trial' },
};
const understood = Object.values(signs);
/** Output of 2.1.197, which does not count tokens if it cannot reach the API. */
const trace = {
  type: 'user',
  message: { role: 'user', content: '<local-command-stdout>Set model to claude-of-the-trial</local-command-stdout>' },
};
const uncounted = answer('4', { categories: [{ name: 'Free space', tokens: 197000 }] });
const older = [trace, signs.settings, uncounted, signs.tools];

function answer(id: string, response: object) {
  return { type: 'control_response', response: { subtype: 'success', request_id: id, response } };
}

function written(...lines: readonly object[]): string {
  return lines.map((line) => `${JSON.stringify(line)}\n`).join('');
}

const init = { type: 'system', subtype: 'init', cwd: '/nowhere', tools: [] };

const asked: LaunchOptions = { model: 'opus', system: 'be secret', schema: '{"type":"object"}', effort: 'high' };

describe('The claude adapter', () => {
  it('learns the version', async () => {
    expect((await programVersion()).version).toBe('2.1.197');
  });

  it('passes a flag only to a program that supports it', async () => {
    const older = (await programVersion()).plan(plainLaunch(null), '/private/system');
    const newer = (await programVersion([...flags, '--restricted'])).plan(plainLaunch(null), '/private/system');
    expect(older.args).not.toContain('--restricted');
    expect(newer.args).toContain('--restricted');
  });

  it('rejects a program whose tools cannot be disabled', async () => {
    const inspected = programVersion(flags.filter((flag) => !flag.startsWith('--tools')));
    await expect(inspected).rejects.toThrow('the model CLI is too old: it does not support --tools');
    await expect(inspected).rejects.toBeInstanceOf(RelayError);
  });

  it('rejects a version that offers the model a tool although its tools are off', async () => {
    const trial = (tools: readonly string[]) => programVersion(flags, login, written({ ...init, tools }));
    await expect(trial(['trial', 'mcp__relay__trial', 'StructuredOutput', 'Read'])).rejects.toThrow(
      'version 2.1.197 of claude cannot be used safely: it offers the model its own tools: Read',
    );
    expect((await trial(['trial', 'mcp__relay__trial', 'StructuredOutput'])).version).toBe('2.1.197');
  });

  it('rejects a program that does not answer', async () => {
    const adapter = claudeAdapter(['claude'], login);
    const inspected = adapter.learn(async () => ({ code: 1, stdout: '' }));
    await expect(inspected).rejects.toThrow('the model CLI does not answer --version');
  });

  it('writes the system text to a private file, never into the arguments', async () => {
    const plan = (await programVersion()).plan({ ...plainLaunch(null), system: 'be secret' }, '/private/system');
    expect(plan.files).toEqual([{ path: '/private/system', text: 'be secret' }]);
    expect(plan.args.slice(-2)).toEqual(['--system-prompt-file', '/private/system']);
    expect(JSON.stringify(plan.args)).not.toContain('secret');
  });

  it('writes an empty system file if there is no system text', async () => {
    expect((await programVersion()).plan(plainLaunch(null), '/s').files).toEqual([{ path: '/s', text: '' }]);
  });

  it.each([
    ['x-anthropic-billing-header: free', '\nx-anthropic-billing-header: free'],
    ['not x-anthropic-', 'not x-anthropic-'],
  ])('never passes a system text that the CLI would take for its native one: %s', async (system, text) => {
    expect((await programVersion()).plan({ ...plainLaunch(null), system }, '/s').files).toEqual([{ path: '/s', text }]);
  });

  it('names the model in one argument, and puts the arguments of the operator last', async () => {
    const { plan } = await programVersion(flags, { ...login, extraArgs: ['--tools', 'WebSearch'] });
    const { args } = plan(plainLaunch('--model'), '/s');
    expect(args.slice(-3)).toEqual(['--model=--model', '--tools', 'WebSearch']);
  });

  it('blocks the ways by which a prompt could reach a file or a command', async () => {
    const { args } = (await programVersion()).plan(plainLaunch(null), '/s');
    const { env } = claudeAdapter(['claude'], login);
    expect(args[args.indexOf('--tools') + 1]).toBe('');
    expect(args[args.indexOf('--setting-sources') + 1]).toBe('');
    const settings = JSON.parse(args[args.indexOf('--settings') + 1] ?? '');
    expect(settings).toEqual({ permissions: { deny: ['Read(//**)'] }, includeCoAuthoredBy: false });
    expect(env).toMatchObject({ CLAUDE_CODE_DISABLE_ATTACHMENTS: '1', DISABLE_COMPACT: '1' });
  });
});

const known = ['document', 'effort', 'image', 'rulesOf', 'schema', 'thoughts', 'wishes'];

describe('A claude that takes all settings over stdin', () => {
  it('is started in the same way for every launch, so that a standby process serves any job', async () => {
    const { plan } = await programVersion(flags, login, written(...understood));
    const plain = plan(plainLaunch(null), '/s');
    expect(plain).toEqual({ args: expect.arrayContaining(['--system-prompt', '']), files: [] });
    expect(plan(asked, '/s')).toEqual(plain);
  });

  it('supports images, schemas and efforts', async () => {
    const { extras } = await programVersion(flags, login, written(...understood));
    expect(Object.keys(extras).toSorted()).toEqual(known);
  });

  it('can be renewed if it says why it does not rewind to an unknown message, and has no arguments of the operator', async () => {
    const answer = (response: object) => ({ type: 'control_response', response: { subtype: 'success', response } });
    const old = answer({ rewound: false, error: 'no preceding assistant' });
    const able = answer({ rewound: false, reason: 'target_not_found' });
    const partsOf = async (line: object, options = login) =>
      (await programVersion(flags, options, written(...understood, line))).keptParts;
    expect(await partsOf(old)).toBeUndefined();
    expect(await partsOf(able)).toEqual(['system', 'schema', 'offer']);
    expect(await partsOf(able, { ...login, extraArgs: ['--tools', 'Read'] })).toBeUndefined();
  });

  it('is tested without access to the API and without credentials', async () => {
    const trials: Parameters<Consult>[] = [];
    const { given } = { given: { ANTHROPIC_API_KEY: 'sk-secret' } };
    await claudeAdapter(['claude'], { ...login, givenVariables: given }).learn(async (args, input) => {
      if (input !== undefined) trials.push([args, input]);
      return { code: 0, stdout: args[0] === '--help' ? flags.join(' ') : '' };
    });
    const [args = [], input = ''] = trials[0] ?? [];
    const settings = JSON.parse(args[args.indexOf('--settings') + 1] ?? '');
    expect(settings.permissions).toEqual({ deny: ['Read(//**)'] });
    expect(settings.env).toMatchObject({ ANTHROPIC_BASE_URL: 'http://127.0.0.1:1', ANTHROPIC_API_KEY: '' });
    expect(settings.env).toMatchObject({ CLAUDE_CODE_OAUTH_TOKEN: 'none' });
    expect(
      input
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line).request?.subtype ?? 'user'),
    ).toEqual([
      ...['initialize', 'apply_flag_settings', 'get_settings', 'get_context_usage', 'rewind_conversation', 'user'],
    ]);
  });
});

describe('A claude that takes some settings only at its start', () => {
  it('gets the system text in a file and the model in an argument if changes by stdin would leave traces', async () => {
    const { plan, extras } = await programVersion(flags, login, written(...older));
    const { args, files } = plan(asked, '/s');
    expect(args.slice(-3)).toEqual(['--system-prompt-file', '/s', '--model=opus']);
    expect(files).toEqual([{ path: '/s', text: 'be secret' }]);
    expect(Object.keys(extras).toSorted()).toEqual(known);
  });

  it('gets the effort in an argument if it supports the flag', async () => {
    const { plan, extras } = await programVersion([...flags, '--effort <level>']);
    expect(plan(asked, '/s').args.slice(-2)).toEqual(['--model=opus', '--effort=high']);
    expect(plan(plainLaunch('opus'), '/s').args.at(-1)).toBe('--model=opus');
    expect(extras.effort?.('high')).toBe('high');
  });

  it('supports neither schema nor effort if the test shows no sign of them', async () => {
    expect(Object.keys((await programVersion()).extras)).toEqual([
      'image',
      'document',
      'thoughts',
      'rulesOf',
      'wishes',
    ]);
  });

  it.each([
    ['errors', { type: 'control_response', response: { subtype: 'error', request_id: '3', error: 'Unsupported' } }],
    ['other settings', answer('3', { applied: { model: 'claude-opus-4-8', effort: 'high' } })],
    ['other tools', { ...signs.tools, tools: [] }],
    ['nothing of the kind', { type: 'tomorrow' }],
  ])('may answer the test with %s', async (_, line) => {
    const { plan } = await programVersion(flags, login, `no JSON\n${written(line)}`);
    expect(plan(asked, '/s').args.slice(-3)).toEqual(['--system-prompt-file', '/s', '--model=opus']);
  });

  it('may not answer the test at all', async () => {
    const adapter = claudeAdapter(['claude'], login);
    const { plan, isProvisional } = await adapter.learn(async ([flag = ''], input) => {
      if (input !== undefined) throw new RelayError('spawn_error', 'no answer');
      return { code: 0, stdout: flag === '--help' ? flags.join(' ') : '' };
    });
    expect(plan(asked, '/s').files).toHaveLength(1);
    expect(isProvisional).toBe(true);
  });
});

describe('A launch with the web search', () => {
  const searchFlags = [...flags, '--bare', '--permission-prompt-tool'];
  const launch = { ...plainLaunch(null), hasSearch: true } as const;

  it('has this tool alone, and asks the relay before each call', async () => {
    const key = { ANTHROPIC_API_KEY: 'sk-ant-test' };
    const { plan, extras } = await programVersion(searchFlags, { ...login, hasToken: false, givenVariables: key });
    const { args } = plan(launch, '/s');
    expect(args.filter((_, index) => args[index - 1] === '--tools')).toEqual(['WebSearch']);
    expect(args.join(' ')).toContain('--permission-prompt-tool stdio');
    expect(args).not.toContain('--bare');
    expect(plan(plainLaunch(null), '/s').args.join(' ')).not.toMatch(/WebSearch|permission-prompt/);
    expect(extras.search).toBe(true);
  });

  it('is not possible with arguments of the operator, or without the question', async () => {
    const { extras } = await programVersion(searchFlags, { ...login, extraArgs: ['--mcp-config', '/m'] });
    expect(extras.search).toBeUndefined();
    expect((await programVersion(flags, login)).extras.search).toBeUndefined();
  });
});

describe('The flag --bare', () => {
  const bareFlags = [...flags, '--bare'];
  const key = { ANTHROPIC_API_KEY: 'sk-ant-test' };

  async function isBare(options: Partial<ClaudeOptions>, help = bareFlags): Promise<boolean> {
    const { plan } = await programVersion(help, { ...login, hasToken: false, ...options });
    return plan(plainLaunch(null), '/s').args.includes('--bare');
  }

  it('is used only with an API key', async () => {
    expect(await isBare({ givenVariables: key })).toBe(true);
    expect(await isBare({ givenVariables: {} })).toBe(false);
    expect(await isBare({ givenVariables: { ANTHROPIC_API_KEY: '' } })).toBe(false);
    expect(await isBare({ givenVariables: key, hasToken: true })).toBe(false);
    expect(await isBare({ givenVariables: { ...key, CLAUDE_CODE_OAUTH_TOKEN: 'token' } })).toBe(false);
  });

  it('is not used for a version that does not support it', async () => {
    expect(await isBare({ givenVariables: key }, flags)).toBe(false);
  });
});

describe('The claude adapter asks the program', () => {
  it.each([
    ['{"loggedIn":true}', null],
    ['{"loggedIn":false}', expect.stringContaining('is not logged in')],
    ['error: unknown command', 'the model CLI does not report whether it is logged in'],
    ['', 'the model CLI does not report whether it is logged in'],
  ])('whether it is logged in: %s', async (stdout, error) => {
    const asked: (readonly string[])[] = [];
    const { check } = await programVersion();
    const verdict = await check(async (args) => {
      asked.push(args);
      return { code: 0, stdout };
    });
    expect([verdict, asked]).toEqual([error, [['auth', 'status']]]);
  });

  it('which models it has, with the same flags as in a turn', async () => {
    const models = [
      { value: 'default', displayName: 'Default', description: 'the usual one' },
      { value: 'opus', displayName: 'Opus' },
    ];
    const response = { type: 'control_response', response: { subtype: 'success', response: { models } } };
    const { listModels, plan } = await programVersion();
    const { args: usual } = plan(plainLaunch(null), '/system');
    const listed = await listModels(async (args, input) => {
      expect(usual).toEqual(expect.arrayContaining([...args]));
      expect(JSON.parse(input ?? '')).toMatchObject({ type: 'control_request', request: { subtype: 'initialize' } });
      return { code: 0, stdout: written(init, response) };
    });
    expect(listed).toEqual([
      { id: 'default', name: 'Default', default: true, description: 'the usual one' },
      { id: 'opus', name: 'Opus', default: false },
    ]);
  });

  it('which models support an effort, if the version reports any', async () => {
    const models = [
      { value: 'opus', displayName: 'Opus', supportsEffort: true },
      { value: 'haiku', displayName: 'Haiku' },
    ];
    const response = { type: 'control_response', response: { subtype: 'success', response: { models } } };
    const { listModels } = await programVersion();
    const listed = await listModels(async () => ({ code: 0, stdout: written(response) }));
    expect(listed?.map(({ id, capabilities }) => [id, capabilities?.effort])).toEqual([
      ['opus', true],
      ['haiku', false],
    ]);
  });

  it('for its models, and reports none if the program does not know the question', async () => {
    const { listModels } = await programVersion();
    expect(await listModels(async () => ({ code: 1, stdout: written(init) }))).toBeNull();
  });
});

it.each([
  [
    ['--tools', 'Read,Bash'],
    ['Read', 'Bash'],
  ],
  [['--tools=Read'], ['Read']],
  [
    ['--allowedTools', 'Bash(git log *)', 'WebFetch', '--model', 'opus'],
    ['Bash', 'WebFetch'],
  ],
  [
    ['--allowed-tools', 'Read Edit', '--tools', ''],
    ['Read', 'Edit'],
  ],
  [['--model', 'Read'], []],
])('The tools that arguments of the operator enable for %j are %j', (args, names) => {
  expect([...toolsOpenedBy(args)]).toEqual(names);
});
