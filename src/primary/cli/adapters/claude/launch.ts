import { z } from 'zod';
import { cliError } from '../../../../shared/errors.js';
import type { CommandLine, Consult, LaunchOptions } from '../../contract/adapter.js';
import { jsonOf } from '../common/lines.js';
import { serverName } from '../common/mcp.js';
import { controlLine } from './control-line.js';
import { turnIdOf } from './line-ids.js';
import { type ListedModel, listedModels } from './model-rules.js';
import { ToolServer } from './tool-server.js';
import { searchTool } from './web-searches.js';
import { guardedSystem, type SettablePart } from './writer.js';

type Option = readonly [flag: string, ...values: string[]];

const settings = {
  // Even without tools, `@path` in a prompt reads a file; this rule and other settings prevent that.
  permissions: { deny: ['Read(//**)'] },
  // Otherwise a CLI with a login tells the model how to sign commits, after the newest message. A replay would change
  // what the prompt cache has stored.
  includeCoAuthoredBy: false,
};

/** Options that are required: without them, the CLI cannot be used or would do more than answer. */
const needed: readonly Option[] = [
  ['--print'],
  ['--input-format', 'stream-json'],
  ['--output-format', 'stream-json'],
  ['--verbose'], // required by stream-json output
  ['--tools', ''],
  ['--strict-mcp-config'],
  ['--setting-sources', ''],
  ['--settings', JSON.stringify(settings)],
];

/** Options that are set only if the version knows them, because an unknown flag is fatal. */
const wanted: readonly Option[] = [
  ['--include-partial-messages'],
  ['--no-session-persistence'],
  ['--disable-slash-commands'],
  ['--restricted'],
  ['--allowed-tools', `mcp__${serverName}`], // without it, calls are denied before they reach the relay
];

/** Keeps newer versions from sending working directory and platform to the model. It works only with API keys. */
const forApiKeys: Option = ['--bare'];

/** Flags of one version, and the arguments to start it with. */
export interface ClaudeProfile {
  readonly args: readonly string[];
  /** Flags that its help text names. */
  readonly known: ReadonlySet<string>;
}

/** Returns the profile of a version. Throws `cli_error` if a required flag is missing. */
export function profileFor(help: string, usesApiKey: boolean): ClaudeProfile {
  const known = new Set(help.match(/--[a-z][a-z-]*/g));
  const missing = needed.flatMap(([flag]) => (known.has(flag) ? [] : [flag]));
  if (missing.length > 0)
    throw cliError('other', `the model CLI is too old: it does not support ${missing.join(', ')}`);
  const options = usesApiKey ? [...wanted, forApiKeys] : wanted;
  return { args: [...needed, ...options.filter(([flag]) => known.has(flag))].flat(), known };
}

/** Empty system text. Without it, the CLI sends 5 KB of instructions for a coding agent. */
export const noSystem: Option = ['--system-prompt', ''];

/**
 * Returns the arguments and files of a start. They are equal for all launches if the version takes all parts over
 * stdin, so that one standby process serves every job. `extraArgs` come last, because they may enable more.
 */
export function planFor(
  { args, known }: ClaudeProfile,
  settable: ReadonlySet<SettablePart>,
  { model, system, effort, hasSearch }: LaunchOptions,
  systemPath: string,
  extraArgs: readonly string[],
): CommandLine {
  const isSystemSent = settable.has('system');
  const systemArgs = isSystemSent ? noSystem : ['--system-prompt-file', systemPath];
  const modelArgs = model === null || settable.has('model') ? [] : [`--model=${model}`];
  const isEffortFlag = effort !== null && !settable.has('effort') && known.has(effortFlag);
  const effortArgs = isEffortFlag ? [`${effortFlag}=${effort}`] : [];
  return {
    args: [...(hasSearch ? searchArgs(args) : args), ...systemArgs, ...modelArgs, ...effortArgs, ...extraArgs],
    files: isSystemSent ? [] : [{ path: systemPath, text: guardedSystem(system ?? '') }],
  };
}

/** The CLI then asks the relay for permission before each call of a tool. */
export const permissionFlag = '--permission-prompt-tool';

/** Returns the arguments with the web search as the only tool. With `--bare`, the CLI has no web search. */
function searchArgs(args: readonly string[]): readonly string[] {
  const [bare] = forApiKeys;
  const otherArgs = args.filter((arg) => arg !== bare);
  return [
    ...otherArgs.map((arg, index) => (otherArgs[index - 1] === '--tools' ? searchTool : arg)),
    ...[permissionFlag, 'stdio'],
  ];
}

export const effortFlag = '--effort';

/** Returns arguments for a start that cannot reach the API, whatever its credential. */
function offline({ args }: ClaudeProfile): readonly string[] {
  const withoutServices = JSON.stringify({ ...settings, env: unusedServices });
  return args.map((arg, index) => (args[index - 1] === '--settings' ? withoutServices : arg));
}

/**
 * Environment that makes the API unreachable: nothing listens on port 1. The invalid token keeps the CLI from renewing
 * its login in files.
 */
const unusedServices = {
  ANTHROPIC_BASE_URL: 'http://127.0.0.1:1',
  ANTHROPIC_API_KEY: '',
  ANTHROPIC_AUTH_TOKEN: '',
  CLAUDE_CODE_OAUTH_TOKEN: 'none',
  CLAUDE_CODE_USE_BEDROCK: '',
  CLAUDE_CODE_USE_VERTEX: '',
  CLAUDE_CODE_USE_FOUNDRY: '',
};

const trialModel = 'claude-of-the-trial';
const trialTool = 'trial';
const trialEffort: LaunchOptions['effort'] = 'low';

/**
 * Input of a trial. The last line is a message of the history: the CLI starts no turn for it, but lists its tools.
 */
const trialLines = [
  controlLine('1', {
    subtype: 'initialize',
    systemPrompt: 'A trial.',
    jsonSchema: { type: 'object', properties: {} },
    ...new ToolServer().introduce([{ name: trialTool, description: 'A trial.', schema: '{"type":"object"}' }]),
  }),
  controlLine('2', { subtype: 'apply_flag_settings', settings: { model: trialModel, effortLevel: trialEffort } }),
  controlLine('3', { subtype: 'get_settings' }),
  controlLine('4', { subtype: 'get_context_usage', detail: 'summary' }),
  controlLine('5', { subtype: 'rewind_conversation', target_message_uuid: turnIdOf(0) }),
  `${JSON.stringify({ type: 'user', message: { role: 'user', content: 'A trial.' }, shouldQuery: false })}\n`,
].join('');

/** Findings of a trial: the parts that the version takes over stdin, and its models. */
export interface TrialFindings {
  readonly settable: ReadonlySet<SettablePart>;
  readonly models: readonly ListedModel[];
  /** Tools that the CLI offers the model beside those of the trial. */
  readonly ownTools: readonly string[];
}

/**
 * Finds by a trial which parts this version takes over stdin. The trial runs without the API, because some versions
 * count the tokens of their context there. Parts without a sign of success are set at the start instead. Returns null
 * if the program gives no answer, perhaps because the host is busy.
 */
export async function findSettable(consult: Consult, profile: ClaudeProfile): Promise<TrialFindings | null> {
  const trial = await consult([...offline(profile), ...noSystem], trialLines).catch(() => null);
  if (trial === null) return null;
  const lines = trial.stdout.split('\n').map(jsonOf);
  const settable = new Set(lines.flatMap(signsOf));
  if (lines.some(isTrace)) settable.delete('model');
  const offered = lines.flatMap((line) => tools.safeParse(line).data?.tools ?? []);
  return { settable, models: listedModels(lines) ?? [], ownTools: offered.filter((name) => !trialTools.has(name)) };
}

/**
 * Settings in force, and the tokens of each part of the context. A version that drops the system text reports no tokens
 * for it.
 */
const appliedSettings = z.object({ applied: z.object({ model: z.string(), effort: z.string().nullish() }) });
const contextUsage = z.object({ categories: z.array(z.object({ name: z.string(), tokens: z.number() })) });
/** Answer of versions that can rewind a conversation to its start and export it. 2.1.197 gives no reason. */
const notRewound = z.object({ rewound: z.literal(false), reason: z.string() });
const tools = z.object({ type: z.literal('system'), subtype: z.literal('init'), tools: z.array(z.string()) });
const response = z.object({
  type: z.literal('control_response'),
  response: z.object({ response: z.unknown().optional() }),
});

/** Sign of older versions, which write a change of the model into the context as a command of the user. */
const trace = z.object({ type: z.literal('user'), message: z.object({ content: z.string().includes(trialModel) }) });

/** Tools of the trial: that of its schema, and that of the client, with and without the name of its server. */
const trialTools: ReadonlySet<string> = new Set(['StructuredOutput', trialTool, `mcp__${serverName}__${trialTool}`]);

function isTrace(line: unknown): boolean {
  return trace.safeParse(line).success;
}

/** Signs that the CLI uses the server of the client's tools: it sends a message to it, or already has its manifest. */
const spoken = z.object({
  type: z.literal('control_request'),
  request: z.object({ subtype: z.literal('mcp_message'), server_name: z.literal(serverName) }),
});
const parked = z.object({ sdk_mcp_manifests_parked: z.object({ [serverName]: z.string() }) });

function signsOf(line: unknown): readonly SettablePart[] {
  if (tools.safeParse(line).data?.tools.includes('StructuredOutput')) return ['schema'];
  if (spoken.safeParse(line).success) return ['tools'];
  const answer = response.safeParse(line).data?.response.response;
  if (parked.safeParse(answer).success) return ['tools'];
  if (notRewound.safeParse(answer).success) return ['rewinding'];
  const { categories = [] } = contextUsage.safeParse(answer).data ?? {};
  if (categories.some(({ name, tokens }) => name === 'System prompt' && tokens > 0)) return ['system'];
  const { applied } = appliedSettings.safeParse(answer).data ?? {};
  return [
    ...(applied?.model === trialModel ? (['model'] as const) : []),
    ...(applied?.effort === trialEffort ? (['effort'] as const) : []),
  ];
}

/** Returns the names of native tools that the operator's arguments enable: `--tools "Read,Bash(git *)"`. */
export function toolsOpenedBy(args: readonly string[]): ReadonlySet<string> {
  let isList = false;
  const lists = args.flatMap((arg) => {
    const [, flag, value] = /^(--[\w-]+)(?:=(.*))?$/s.exec(arg) ?? [];
    if (flag === undefined) return isList ? [arg] : [];
    isList = toolFlags.has(flag) && value === undefined;
    return toolFlags.has(flag) && value !== undefined ? [value] : [];
  });
  return new Set(lists.flatMap((list) => list.replace(/\([^)]*\)/g, '').match(/[\w-]+/g) ?? []));
}

const toolFlags: ReadonlySet<string> = new Set(['--tools', '--allowedTools', '--allowed-tools']);
