import { serverName } from '../../primary/cli/adapters/common/mcp.js';
import type { PrivateHome, TrialEnv } from '../../primary/cli/contract/adapter.js';
import type { AcpAgent } from './shared.js';

/** Environment variables that the program inherits from the service. */
export type GivenVariables = Readonly<Record<string, string>>;

/** How to start one agent, and settings that limit it to answering. */
export interface AcpPreset {
  /** Program to start unless MODEL_API_CLI_COMMAND is set. */
  readonly command: readonly [program: string, ...args: string[]];
  /** Arguments after the command. `{model}` stands for the model. If no argument has `{model}`, the protocol sets the model. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Folders to create in the private HOME, by the variable that names each. */
  readonly folders: PrivateHome['variables'];
  /** Files to write into the private HOME, by path. */
  readonly files: (variables: GivenVariables) => Readonly<Record<string, string>>;
  /** Session mode to choose, if the strictest one would change the answers rather than protect the host. */
  readonly mode?: string;
  /** Files with the agent's login below the operator's HOME, to link into the private HOME. */
  readonly credentials: readonly string[];
  /** Variables with which the agent uses these files; absent if it needs none. */
  readonly homeLogin?: Readonly<Record<string, string>>;
  /** Folder with an administrator's settings for all users of the agent. */
  readonly hostFolder?: string;
  /** Pattern of the agent's model names, if they have a form. */
  readonly modelForm?: RegExp;
  /** Set if tests show that the agent calls the client's tools at the relay's MCP server, and no others. */
  readonly tools?: {
    /** Arguments that the agent adds to every tool for its internal use. */
    readonly ownArguments: readonly string[];
  };
  /** How a trial leads the agent's first request to the relay; absent if no setting can do this. */
  readonly trial?: AcpTrial;
}

export interface AcpTrial {
  /** Arguments after all others. */
  readonly args: readonly string[];
  readonly env: TrialEnv;
  /** Whether these settings replace the operator's login; true if absent. */
  readonly isPossible?: (variables: GivenVariables) => boolean;
}

const plain: AcpPreset = {
  command: ['acp-agent'],
  args: [],
  env: { NO_COLOR: '1' },
  folders: { HOME: '.' },
  files: () => ({}),
  credentials: [],
};

/**
 * Keeps proxies that the operator allows away from the relay's MCP server on loopback: they must not see its secret.
 */
const noProxy = { NO_PROXY: '127.0.0.1' };

/** Returns the address and the API key with which an agent reaches the callback of a trial. */
function trialAccess({ url, headers }: Parameters<TrialEnv>[0]) {
  return { url: `${url}v1`, key: (headers.Authorization ?? '').replace('Bearer ', '') };
}

/** System text that replaces the agent's default. */
const systemText = 'Answer the messages of the user.';

/**
 * Returns the login type that Gemini CLI requires. With Google's login but no stored tokens, the CLI would request the
 * login on stdin.
 */
function geminiLogin(variables: GivenVariables): string {
  if (variables.GOOGLE_GENAI_USE_GCA === 'true') return 'oauth-personal';
  return variables.GOOGLE_GENAI_USE_VERTEXAI === 'true' ? 'vertex-ai' : 'gemini-api-key';
}

function geminiSettings(variables: GivenVariables) {
  return {
    security: { auth: { selectedType: geminiLogin(variables) }, folderTrust: { enabled: true } },
    // Tools of MCP servers only, which include the client's. An empty list would allow all tools.
    tools: { core: ['mcp_*'], useRipgrep: false },
    mcp: { allowed: [serverName] },
    hooksConfig: { enabled: false },
    skills: { enabled: false },
    admin: { extensions: { enabled: false }, skills: { enabled: false } },
    experimental: { enableAgents: false, autoMemory: false },
    context: { fileName: 'none-is-read', includeDirectoryTree: false, discoveryMaxDirs: 0 },
    // A retry by the CLI would repeat the text of an answer that broke off.
    general: { maxAttempts: 1, retryFetchErrors: false, enableAutoUpdate: false, plan: { enabled: false } },
    // Near the end of its context, the CLI would replace the conversation by a summary.
    model: { compressionThreshold: 1, disableLoopDetection: true, skipNextSpeakerCheck: true },
    privacy: { usageStatisticsEnabled: false },
    telemetry: { enabled: false },
    ide: { enabled: false },
    advanced: { ignoreLocalEnv: true, autoConfigureMemory: false },
  };
}

/** Tools to exclude by name: with an empty or unknown list of allowed tools, this agent keeps some. */
const qwenTools = [
  ...['agent', 'skill', 'task', 'tool_call', 'tool_search', 'ask_user_question', 'todo_write', 'save_memory'],
  ...['enter_plan_mode', 'exit_plan_mode', 'enter_worktree', 'exit_worktree', 'get_goal', 'propose_goal'],
  ...['update_goal', 'list_agents', 'record_artifact', 'record_source', 'artifact', 'report_findings'],
  ...['read_file', 'write_file', 'edit', 'glob', 'grep_search', 'list_directory', 'run_shell_command', 'exec'],
  ...['notebook_edit', 'web_fetch', 'web_search', 'image_gen', 'zoom_image', 'display_image', 'read_mcp_resource'],
  ...['cron_create', 'cron_list', 'cron_delete', 'loop_wakeup', 'send_message', 'task_stop', 'monitor', 'lsp'],
  ...['task_create', 'task_update', 'task_list', 'team_create', 'team_delete', 'team_plan_approval'],
  ...['request_shutdown', 'create_sub_session', 'workflow'],
];

function qwenSettings(variables: GivenVariables) {
  const { context, hooksConfig, skills, privacy, telemetry } = geminiSettings(variables);
  return {
    security: {
      auth: { selectedType: variables.OPENAI_API_KEY ? 'openai' : 'qwen-oauth' },
      folderTrust: { enabled: true },
    },
    tools: { core: ['none'], exclude: qwenTools, useRipgrep: false },
    permissions: { deny: ['*'] },
    general: { enableAutoUpdate: false, disableAutoUpdate: true, checkpointing: { enabled: false } },
    model: { skipLoopDetection: true, skipNextSpeakerCheck: true, skipStartupContext: true },
    memory: { enableManagedAutoMemory: false, enableManagedAutoDream: false },
    mcp: { allowed: [] },
    skills: { ...skills, disabledLevels: ['bundled', 'extension', 'project', 'user'] },
    ui: { enableFollowupSuggestions: false, enableSpeculation: false }, // both are requests to the API after an answer
    ...{ context, hooksConfig, privacy, telemetry },
  };
}

/** Permissions for the client's tools only. */
const noTools = {
  permission: { '*': 'deny', [`${serverName}_*`]: 'allow' },
  tools: { '*': false, [`${serverName}_*`]: true },
};

/** Provider of opencode itself. Its free models need no login. */
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
  experimental: { mcp_timeout: dayMs }, // the default cancels a call after 30 s
  instructions: [],
  default_agent: 'relay',
  agent: {
    relay: { mode: 'primary', prompt: systemText, ...noTools },
    title: { disable: true }, // avoids a model call for a title of each conversation
    build: { disable: true },
    plan: { disable: true },
  },
};

const on = '1';

/**
 * Presets of the agents known by name. A further agent needs an entry here and its name in `acpAgents`. Without an
 * entry, MODEL_API_CLI=acp runs it with its default settings.
 */
export const presets = {
  acp: plain,
  gemini: {
    ...plain,
    command: ['gemini'],
    hostFolder: '/etc/gemini-cli',
    args: ['--acp'],
    env: {
      ...plain.env,
      ...noProxy,
      GEMINI_CLI_NO_RELAUNCH: 'true', // avoids a second process that only waits for the first
      GEMINI_CLI_TRUST_WORKSPACE: 'true', // required for MCP servers; the folder is empty and private
      GEMINI_MODEL: 'flash', // with `auto`, another model would get each prompt to choose one
      GEMINI_SYSTEM_MD: '~/.gemini/system.md', // replaces 27 KB of instructions for a coding agent
      GEMINI_TELEMETRY_ENABLED: 'false',
    },
    files: (given) => ({
      '.gemini/settings.json': JSON.stringify(geminiSettings(given)),
      '.gemini/system.md': `${systemText}\n`,
    }),
    credentials: ['.gemini/oauth_creds.json', '.gemini/google_accounts.json'],
    homeLogin: { GOOGLE_GENAI_USE_GCA: 'true' },
    modelForm: /^(?:gemini|gemma)-|^(?:auto|pro|flash|flash-lite)$/,
    tools: { ownArguments: ['wait_for_previous'] },
    trial: {
      args: [],
      env: (address) => ({ GEMINI_API_KEY: trialAccess(address).key, GOOGLE_GEMINI_BASE_URL: address.url }),
      isPossible: (given) => geminiLogin(given) === 'gemini-api-key',
    },
  },
  opencode: {
    ...plain,
    command: ['opencode'],
    hostFolder: '/etc/opencode',
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
    trial: {
      args: [],
      env: (address) => {
        const { url: baseURL, key: apiKey } = trialAccess(address);
        const trial = { npm: '@ai-sdk/openai-compatible', options: { baseURL, apiKey }, models: { one: {} } };
        return {
          OPENCODE_CONFIG_CONTENT: JSON.stringify({ ...opencodeConfig, model: 'trial/one', provider: { trial } }),
        };
      },
    },
  },
  qwen: {
    ...plain,
    command: ['qwen'],
    hostFolder: '/etc/qwen-code',
    args: ['--acp'],
    env: { ...plain.env, QWEN_CODE_NO_RELAUNCH: 'true', QWEN_SYSTEM_MD: '~/.qwen/system.md' },
    mode: 'default', // no tools remain, and in mode `plan` the model is ordered to plan
    files: (given) => ({
      '.qwen/settings.json': JSON.stringify(qwenSettings(given)),
      '.qwen/system.md': `${systemText}\n`,
      // Without this file, the agent instructs the model to answer in English.
      '.qwen/output-language.md': '<!-- qwen-code:llm-output-language: that of the user -->\n',
    }),
    credentials: ['.qwen/oauth_creds.json'],
    trial: {
      args: ['--auth-type=openai'],
      env: (address) => {
        const { url, key } = trialAccess(address);
        return { ...noProxy, OPENAI_BASE_URL: url, OPENAI_API_KEY: key, OPENAI_MODEL: 'trial' };
      },
    },
    modelForm: /^(?:qwen\/)?q(?:wen|wq|vq)/, // at OpenRouter, names begin with the name of the CLI
  },
} as const satisfies Readonly<Record<AcpAgent, AcpPreset>>;

/**
 * Returns the preset of an agent. The provider of opencode, open to all users, is disabled unless `providers` names it.
 */
export function presetOf(kind: AcpAgent, providers: ReadonlySet<string>): AcpPreset {
  if (kind !== 'opencode' || !providers.has(ownProvider)) return presets[kind];
  const { env } = presets.opencode;
  return {
    ...presets.opencode,
    env: { ...env, OPENCODE_CONFIG_CONTENT: JSON.stringify({ ...opencodeConfig, disabled_providers: [] }) },
  };
}
