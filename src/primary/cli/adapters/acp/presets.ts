import type { PrivateHome } from '../../contract/adapter.js';
import { serverName } from '../common/mcp.js';

/** What the program sees of the service's environment. */
export type GivenVariables = Readonly<Record<string, string>>;

/** One agent: how it is started, and what makes it answer and do nothing else. */
export interface AcpPreset {
  /** The program, where MODEL_API_CLI_COMMAND names no other. */
  readonly command: readonly [program: string, ...args: string[]];
  /** Arguments that come after the command. `{model}` stands for the model: without it, the protocol names the model. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Folders that are made in the private HOME, by the variable that names each. */
  readonly folders: PrivateHome['variables'];
  /** Files that are written into the private HOME, by their paths. */
  readonly files: (given: GivenVariables) => Readonly<Record<string, string>>;
  /** The session mode to choose, where the strictest one that the agent offers would only change what it answers. */
  readonly mode?: string;
  /** Files below the operator's HOME that are linked into the private one: where the agent keeps its login. */
  readonly credentials: readonly string[];
  /** The form of the names of its models, where they have one. */
  readonly modelForm?: RegExp;
  /** Tests show that it calls the client's tools at an MCP server of ours, and no others. */
  readonly tools?: {
    /** Arguments that it adds to every tool, for itself. */
    readonly ownArguments: readonly string[];
  };
}

const plain: AcpPreset = {
  command: ['acp-agent'],
  args: [],
  env: { NO_COLOR: '1' },
  folders: { HOME: '.' },
  files: () => ({}),
  credentials: [],
};

/** An MCP server of ours is on loopback: no proxy that the operator allows may get in between, or see its secret. */
const noProxy = { NO_PROXY: '127.0.0.1' };

/** The system text that replaces the agent's own. */
const systemText = 'Answer the messages of the user.';

/** Gemini CLI needs a setting that says how it is logged in. With Google's login and none there, it would ask for it on stdin. */
function geminiLogin(given: GivenVariables): string {
  if (given.GOOGLE_GENAI_USE_GCA === 'true') return 'oauth-personal';
  return given.GOOGLE_GENAI_USE_VERTEXAI === 'true' ? 'vertex-ai' : 'gemini-api-key';
}

function geminiSettings(given: GivenVariables) {
  return {
    security: { auth: { selectedType: geminiLogin(given) }, folderTrust: { enabled: true } },
    // Those of MCP servers, so that the client's can be called; an empty list would allow all of them.
    tools: { core: ['mcp_*'], useRipgrep: false },
    mcp: { allowed: [serverName] },
    hooksConfig: { enabled: false },
    skills: { enabled: false },
    admin: { extensions: { enabled: false }, skills: { enabled: false } },
    experimental: { enableAgents: false, autoMemory: false },
    context: { fileName: 'none-is-read', includeDirectoryTree: false, discoveryMaxDirs: 0 },
    // A second try of its own would repeat the text of an answer that has broken off.
    general: { maxAttempts: 1, retryFetchErrors: false, enableAutoUpdate: false, plan: { enabled: false } },
    // Near the end of its context it would replace the conversation by a summary of its own.
    model: { compressionThreshold: 1, disableLoopDetection: true, skipNextSpeakerCheck: true },
    privacy: { usageStatisticsEnabled: false },
    telemetry: { enabled: false },
    ide: { enabled: false },
    advanced: { ignoreLocalEnv: true, autoConfigureMemory: false },
  };
}

/** In this agent an empty list of tools, and one that names none, leaves some of them. */
const qwenTools = [
  ...['agent', 'skill', 'task', 'tool_search', 'ask_user_question', 'exit_plan_mode', 'todo_write', 'save_memory'],
  ...['read_file', 'write_file', 'edit', 'glob', 'grep_search', 'list_directory', 'run_shell_command', 'web_fetch'],
  ...['cron_create', 'cron_list', 'cron_delete', 'send_message', 'task_stop', 'monitor', 'lsp'],
];

function qwenSettings(given: GivenVariables) {
  const { context, hooksConfig, skills, privacy, telemetry } = geminiSettings(given);
  return {
    security: {
      auth: { selectedType: given.OPENAI_API_KEY ? 'openai' : 'qwen-oauth' },
      folderTrust: { enabled: true },
    },
    tools: { core: ['none'], exclude: qwenTools, useRipgrep: false },
    permissions: { deny: ['*'] },
    general: { enableAutoUpdate: false, disableAutoUpdate: true, checkpointing: { enabled: false } },
    model: { skipLoopDetection: true, skipNextSpeakerCheck: true, skipStartupContext: true },
    memory: { enableManagedAutoMemory: false, enableManagedAutoDream: false },
    mcp: { allowed: [] },
    ...{ context, hooksConfig, skills, privacy, telemetry },
  };
}

/** None but the client's. */
const noTools = {
  permission: { '*': 'deny', [`${serverName}_*`]: 'allow' },
  tools: { '*': false, [`${serverName}_*`]: true },
};

/** Of opencode itself. Its free models need no login. */
const ownProvider = 'opencode';

const dayMs = 24 * 60 * 60 * 1000;

const opencodeConfig = {
  ...noTools,
  disabled_providers: [ownProvider],
  autoupdate: false,
  share: 'disabled',
  snapshot: false,
  lsp: false,
  formatter: false,
  experimental: { mcp_timeout: dayMs }, // else it gives up a call after half a minute
  instructions: [],
  default_agent: 'relay',
  agent: {
    relay: { mode: 'primary', prompt: systemText, ...noTools },
    title: { disable: true }, // else it asks the model for a title of each conversation
    build: { disable: true },
    plan: { disable: true },
  },
};

const on = '1';

/**
 * The agents that are known by name. A further one is an entry here and its name in `acpAgents` of the configuration;
 * without an entry, MODEL_API_CLI=acp runs it as its own configuration has it.
 */
export const presets = {
  acp: plain,
  gemini: {
    ...plain,
    command: ['gemini'],
    args: ['--acp'],
    env: {
      ...plain.env,
      ...noProxy,
      GEMINI_CLI_NO_RELAUNCH: 'true', // else a second process that only waits for the first
      GEMINI_CLI_TRUST_WORKSPACE: 'true', // else it has no MCP servers; its folder is empty, and its own
      GEMINI_MODEL: 'flash', // with `auto`, it would send each prompt to another model that chooses one
      GEMINI_SYSTEM_MD: '~/.gemini/system.md', // instead of 27 KB about being a coding agent
      GEMINI_TELEMETRY_ENABLED: 'false',
    },
    files: (given) => ({
      '.gemini/settings.json': JSON.stringify(geminiSettings(given)),
      '.gemini/system.md': `${systemText}\n`,
    }),
    credentials: ['.gemini/oauth_creds.json', '.gemini/google_accounts.json'],
    modelForm: /^(?:gemini|gemma)-|^(?:auto|pro|flash|flash-lite)$/,
    tools: { ownArguments: ['wait_for_previous'] },
  },
  opencode: {
    ...plain,
    command: ['opencode'],
    args: ['acp', '--pure'],
    env: {
      ...plain.env,
      ...noProxy,
      OPENCODE_CONFIG_CONTENT: JSON.stringify(opencodeConfig),
      OPENCODE_DISABLE_AUTOCOMPACT: on,
      OPENCODE_DISABLE_AUTOUPDATE: on,
      OPENCODE_DISABLE_CLAUDE_CODE: on,
      OPENCODE_DISABLE_DEFAULT_PLUGINS: on,
      OPENCODE_DISABLE_EXTERNAL_SKILLS: on,
      OPENCODE_DISABLE_LSP_DOWNLOAD: on,
      OPENCODE_DISABLE_MODELS_FETCH: on,
      OPENCODE_DISABLE_PROJECT_CONFIG: on,
      npm_config_offline: 'true', // it would install a package into each new HOME
    },
    credentials: ['.local/share/opencode/auth.json'],
    modelForm: /^(?!opencode\/.*\/)[^/]+\/./, // provider and model; `opencode` is a provider too
    tools: { ownArguments: [] },
  },
  qwen: {
    ...plain,
    command: ['qwen'],
    args: ['--acp'],
    env: { ...plain.env, QWEN_CODE_NO_RELAUNCH: 'true', QWEN_SYSTEM_MD: '~/.qwen/system.md' },
    mode: 'default', // it has no tools left, and in the mode `plan` its model would get the order to make a plan
    files: (given) => ({
      '.qwen/settings.json': JSON.stringify(qwenSettings(given)),
      '.qwen/system.md': `${systemText}\n`,
      // Without this file, it asks the model always to answer in English.
      '.qwen/output-language.md': '<!-- qwen-code:llm-output-language: that of the user -->\n',
    }),
    credentials: ['.qwen/oauth_creds.json'],
    modelForm: /^(?:qwen\/)?q(?:wen|wq|vq)/, // at OpenRouter they begin with the name of the CLI
  },
  goose: {
    ...plain,
    command: ['goose'],
    args: ['acp'],
    env: {
      ...plain.env,
      CONTEXT_FILE_NAMES: '[]',
      GOOSE_DISABLE_KEYRING: on,
      GOOSE_DISABLE_SESSION_NAMING: 'true',
      GOOSE_MODE: 'chat', // no tools
    },
    files: () => ({ '.config/goose/config.yaml': 'GOOSE_MODE: chat\nextensions: {}\n' }),
    credentials: ['.config/goose/secrets.yaml'],
  },
} as const satisfies Readonly<Record<string, AcpPreset>>;

/** The preset of an agent. Of opencode's own provider, which everybody may use, nothing is offered unless `providers` names it. */
export function presetOf(kind: keyof typeof presets, providers: ReadonlySet<string>): AcpPreset {
  if (kind !== 'opencode' || !providers.has(ownProvider)) return presets[kind];
  const { env } = presets.opencode;
  return {
    ...presets.opencode,
    env: { ...env, OPENCODE_CONFIG_CONTENT: JSON.stringify({ ...opencodeConfig, disabled_providers: [] }) },
  };
}
