import { codexAdapter } from '../../../../src/features/codex/adapter.js';
import { type Consult, type Consultation, plainLaunch } from '../../../../src/primary/cli/contract/adapter.js';

const features = [
  'apps                    stable             true',
  'shell_tool              stable             true',
  'memories                stable             false',
  'item_ids                removed            true',
  'code_mode               under development  false',
];
const models = {
  models: [
    {
      slug: 'gpt-x',
      supported_reasoning_levels: [{ effort: 'low', description: 'Fast' }, { effort: 'xhigh' }, { effort: 'ultra' }],
      display_name: 'GPT X',
      description: 'A model',
      shell_type: 'unified_exec',
      tool_mode: 'code_mode_only',
    },
    { slug: 'gpt-y', display_name: 'GPT Y', default_reasoning_level: 'low', context_window: 272_000, a_tool: {} },
  ],
};
const settings = {
  web_search: 'disabled',
  project_doc_max_bytes: 0,
  include_environment_context: false,
  mcp_servers: {},
};
const listed = [
  { model: 'gpt-x', displayName: 'GPT X', description: 'A model', isDefault: true },
  { model: 'gpt-t', displayName: 'GPT T', inputModalities: ['text'], supportedReasoningEfforts: [] },
];

interface FakeCodex {
  readonly features?: (args: readonly string[]) => readonly string[];
  readonly models?: string;
  readonly prompt?: (canary: string) => unknown;
  readonly settings?: Readonly<Record<string, unknown>>;
  readonly account?: unknown;
  readonly needsLogin?: boolean;
}

const alone = (text: string) => [{ type: 'message', role: 'user', content: [{ type: 'input_text', text }] }];

/** Fake codex program for consultations. It disables features as its arguments require. */
class ConsultedCodex {
  readonly asked: (readonly string[])[] = [];
  readonly files = new Set<string | undefined>();
  readonly #is: FakeCodex;

  constructor(is: FakeCodex = {}) {
    this.#is = is;
  }

  readonly consult: Consult = async (args, input = '', _, file) => {
    this.asked.push(args);
    this.files.add(file);
    return { code: 0, stdout: '', ...this.#answer(args, input) };
  };

  #answer(args: readonly string[], input: string): Partial<Consultation> {
    const [command, what] = args;
    if (command === '--version') return { stdout: 'codex-cli 0.169.0\n' };
    if (command === 'features') return { stdout: (this.#is.features ?? remaining)(args).join('\n') };
    if (what === 'models') return { stdout: this.#is.models ?? JSON.stringify(models) };
    if (what === 'prompt-input') return { stdout: JSON.stringify((this.#is.prompt ?? alone)(args.at(-1) ?? '')) };
    return {
      code: null,
      stdout: input
        .split('\n')
        .map((line) => this.#reply(line))
        .join('\n'),
    };
  }

  #reply(line: string): string {
    const { id, method } = line === '' ? { id: '', method: '' } : (JSON.parse(line) as { id: string; method: string });
    const { account = null, needsLogin = true } = this.#is;
    const results: Readonly<Record<string, unknown>> = {
      'config/read': { config: { ...settings, ...this.#is.settings } },
      'account/read': { account, requiresOpenaiAuth: needsLogin },
      'model/list': { data: listed },
    };
    return JSON.stringify({ id, result: results[method] ?? {} });
  }
}

function remaining(args: readonly string[]): readonly string[] {
  return features.filter((line) => !args.includes(line.split(' ')[0] ?? ''));
}

function learn(codex: ConsultedCodex, extraArgs: readonly string[] = []) {
  return codexAdapter(['codex'], { extraArgs, givenVariables: {} }).learn(codex.consult);
}

describe('The codex adapter', () => {
  it('starts codex with every active feature disabled, models without tools, and the arguments of the operator last', async () => {
    const codex = new ConsultedCodex();
    const programVersion = await learn(codex, ['-c', 'model_provider="own"']);
    const { args, files } = programVersion.plan(plainLaunch('gpt-x'), '/private/1.system');
    expect(programVersion.version).toBe('0.169.0');
    expect(args.slice(0, 5)).toEqual(['app-server', '--disable', 'apps', '--disable', 'shell_tool']);
    expect(args).toContain('model_catalog_json="/private/1.system"');
    expect(args.slice(-2)).toEqual(['-c', 'model_provider="own"']);
    expect(files.map(({ path }) => path)).toEqual(['/private/1.system']);
    const [first, second] = (JSON.parse(files[0]?.text ?? '') as typeof models).models;
    expect(first).toMatchObject({
      slug: 'gpt-x',
      display_name: 'GPT X',
      shell_type: 'disabled',
      base_instructions: '',
      supported_reasoning_levels: models.models[0]?.supported_reasoning_levels,
    });
    expect(Object.keys(first ?? {})).not.toContain('tool_mode');
    expect(second).toMatchObject({ default_reasoning_level: 'low', context_window: null });
    expect(Object.keys(second ?? {})).not.toContain('a_tool');
  });

  it('knows the efforts that the program lists for a model', async () => {
    const { extras } = await learn(new ConsultedCodex());
    const effortsOf = (model: string | null) => extras.rulesOf?.(model).efforts;
    expect(['gpt-x', 'gpt-y', null].map(effortsOf)).toEqual([['low', 'xhigh'], undefined, undefined]);
  });

  it('starts codex in the same way for every launch, so that a standby process serves any job', async () => {
    const programVersion = await learn(new ConsultedCodex());
    const launch = { model: 'gpt-x', system: 'Be brief.', schema: '{}', effort: 'high' } as const;
    expect(programVersion.plan(launch, '/1')).toEqual(programVersion.plan(plainLaunch(null), '/1'));
  });

  it('initializes codex immediately, and requests a thread at the first turn', async () => {
    const protocol = (await learn(new ConsultedCodex())).protocol();
    const hello = protocol
      .opening?.('/private/folder')
      .split('\n')
      .map((line) => /"method":"([^"]+)"/.exec(line)?.[1]);
    expect(hello).toEqual(['initialize', 'initialized', undefined]);
    const { text, stdin } = protocol.writer.write({ ...plainLaunch(null), text: 'Hi', history: [] }, 1);
    expect([JSON.parse(text).method, stdin]).toEqual(['thread/start', 'keep-open']);
  });

  it.each<[string, FakeCodex, RegExp]>([
    ['keeps a feature on', { features: () => features }, /does not switch off apps, shell_tool/],
    ['lists no models', { models: 'no JSON' }, /does not list its models/],
    [
      'tells the model of tools',
      { prompt: (canary) => [{ type: 'additional_tools', tools: [{}] }, ...alone(canary)] },
      /more than the prompt/,
    ],
    [
      'has a system text of its own',
      { prompt: (canary) => [...alone('You are a coding agent'), ...alone(canary)] },
      /more than the prompt/,
    ],
    ['searches the web', { settings: { web_search: 'live' } }, /ignores web_search/],
    ['starts MCP servers', { settings: { mcp_servers: { bait: {} } } }, /MCP servers: bait/],
  ])('rejects a version that %s', async (_, is, why) => {
    await expect(learn(new ConsultedCodex(is))).rejects.toThrow(why);
  });

  it('rejects a version that lacks a required command', async () => {
    const consult: Consult = async (args) => ({ code: args[0] === 'debug' ? 2 : 0, stdout: '0.50.0' });
    const adapter = codexAdapter(['codex'], { extraArgs: [], givenVariables: {} });
    await expect(adapter.learn(consult)).rejects.toThrow(/not be used safely: it does not answer debug models/);
    const mute: Consult = async () => ({ code: 1, stdout: '' });
    await expect(adapter.learn(mute)).rejects.toThrow('does not answer --version');
  });

  it.each<[string | RegExp | null, FakeCodex]>([
    [null, { account: { type: 'chatgpt' } }],
    [null, { needsLogin: false }],
    [expect.stringMatching(/not logged in/), {}],
  ])('reports the state of the login: %s', async (fault, is) => {
    const codex = new ConsultedCodex(is);
    expect(await (await learn(codex)).check(codex.consult)).toEqual(fault);
  });

  it('lists the models if codex is logged in, and none of another API', async () => {
    const codex = new ConsultedCodex({ account: {} });
    const all = { images: true, effort: true };
    expect(await (await learn(codex)).listModels(codex.consult)).toEqual([
      { id: 'gpt-x', name: 'GPT X', description: 'A model', default: true, capabilities: all },
      { id: 'gpt-t', name: 'GPT T', default: false, capabilities: { images: false, effort: false } },
    ]);
    const other = new ConsultedCodex({ needsLogin: false });
    expect(await (await learn(other)).listModels(other.consult)).toBeNull();
  });
});

describe('The home of codex', () => {
  const homeOf = (given: Readonly<Record<string, string>>) =>
    codexAdapter(['codex'], { extraArgs: [], givenVariables: given }).home;

  it('contains only the login of the service', () => {
    const links = (to: string) => ({ files: [], links: [{ path: '.codex/auth.json', to }] });
    expect(homeOf({ HOME: '/home/model' })).toMatchObject(links('/home/model/.codex/auth.json'));
    expect(homeOf({ HOME: '/home/model', CODEX_HOME: '/srv/codex' })).toMatchObject(links('/srv/codex/auth.json'));
  });

  it('contains an API key instead if one is allowed', () => {
    for (const name of ['OPENAI_API_KEY', 'CODEX_API_KEY']) {
      expect(homeOf({ HOME: '/home/model', [name]: 'sk-1' })).toMatchObject({
        files: [{ path: '.codex/auth.json', text: '{"OPENAI_API_KEY":"sk-1"}' }],
        links: [],
      });
    }
  });
});
