import { z } from 'zod';
import { cliError } from '../../../../shared/errors.js';
import type { CommandLine, Consult, LaunchOptions } from '../../contract/adapter.js';
import { jsonOf } from '../common/lines.js';
import { serverName } from '../common/mcp.js';
import { ToolServer } from './tool-server.js';
import { controlLine, guardedSystem, type SettablePart } from './writer.js';

type Option = readonly [flag: string, ...values: string[]];

const bars = { deny: ['Read(//**)'] };

/** A version without these can't be used, or would do more than answer. */
const needed: readonly Option[] = [
  ['--print'],
  ['--input-format', 'stream-json'],
  ['--output-format', 'stream-json'],
  ['--verbose'], // stream-json output wants it
  ['--tools', ''],
  ['--strict-mcp-config'],
  ['--setting-sources', ''],
  // Even without tools, `@path` in a prompt reads a file. This is one of several ways to stop it.
  ['--settings', JSON.stringify({ permissions: bars })],
];

/** An unknown flag is fatal to the CLI, so these go only to the versions that know them. */
const wanted: readonly Option[] = [
  ['--include-partial-messages'],
  ['--no-session-persistence'],
  ['--disable-slash-commands'],
  ['--restricted'],
  ['--allowed-tools', `mcp__${serverName}`], // else a call would be denied before it gets to the relay
];

/** Keeps newer versions from sending the model the working directory and the platform. It takes API keys alone. */
const forApiKeys: Option = ['--bare'];

/** What one version knows, and how it is to be started. */
export interface ClaudeProfile {
  readonly args: readonly string[];
  /** The flags that its help names. */
  readonly known: ReadonlySet<string>;
}

/** Throws `cli_error` for a version that can't be used. */
export function profileFor(help: string, usesApiKey: boolean): ClaudeProfile {
  const known = new Set(help.match(/--[a-z][a-z-]*/g));
  const missing = needed.flatMap(([flag]) => (known.has(flag) ? [] : [flag]));
  if (missing.length > 0) throw cliError('other', `the model CLI is too old: it does not know ${missing.join(', ')}`);
  const options = usesApiKey ? [...wanted, forApiKeys] : wanted;
  return { args: [...needed, ...options.filter(([flag]) => known.has(flag))].flat(), known };
}

/** Without an empty system text, the CLI sends 5 KB about being a coding agent. */
export const noSystem: Option = ['--system-prompt', ''];

/**
 * The same for every launch, where the version takes all parts over stdin: then a process that waits serves everybody.
 * `extraArgs` come last, because they may open up more.
 */
export function planFor(
  { args, known }: ClaudeProfile,
  settable: ReadonlySet<SettablePart>,
  { model, system, effort }: LaunchOptions,
  systemPath: string,
  extraArgs: readonly string[],
): CommandLine {
  const isSystemSent = settable.has('system');
  const systemArgs = isSystemSent ? noSystem : ['--system-prompt-file', systemPath];
  const modelArgs = model === null || settable.has('model') ? [] : [`--model=${model}`];
  const isEffortFlag = effort !== null && !settable.has('effort') && known.has(effortFlag);
  const effortArgs = isEffortFlag ? [`${effortFlag}=${effort}`] : [];
  return {
    args: [...args, ...systemArgs, ...modelArgs, ...effortArgs, ...extraArgs],
    files: isSystemSent ? [] : [{ path: systemPath, text: guardedSystem(system ?? '') }],
  };
}

export const effortFlag = '--effort';

/** The arguments of a start that reaches no API, whatever credential it is given. */
export function offline({ args }: ClaudeProfile): readonly string[] {
  const settings = JSON.stringify({ permissions: bars, env: nowhere });
  return args.map((arg, index) => (args[index - 1] === '--settings' ? settings : arg));
}

/** Overrides the environment. Nothing listens on port 1. The token is none, but without one the CLI would renew its login in files. */
const nowhere = {
  ANTHROPIC_BASE_URL: 'http://127.0.0.1:1',
  ANTHROPIC_API_KEY: '',
  ANTHROPIC_AUTH_TOKEN: '',
  CLAUDE_CODE_OAUTH_TOKEN: 'none',
  CLAUDE_CODE_USE_BEDROCK: '',
  CLAUDE_CODE_USE_VERTEX: '',
  CLAUDE_CODE_USE_FOUNDRY: '',
};

const trialModel = 'claude-of-the-trial';
const trialEffort: LaunchOptions['effort'] = 'low';

/** The last line is a message of the past: it starts no turn, but makes the program list its tools. */
const trialLines = [
  controlLine('1', {
    subtype: 'initialize',
    systemPrompt: 'A trial.',
    jsonSchema: { type: 'object', properties: {} },
    ...new ToolServer().introduce([{ name: 'trial', description: 'A trial.', schema: '{"type":"object"}' }]),
  }),
  controlLine('2', { subtype: 'apply_flag_settings', settings: { model: trialModel, effortLevel: trialEffort } }),
  controlLine('3', { subtype: 'get_settings' }),
  controlLine('4', { subtype: 'get_context_usage', detail: 'summary' }),
  `${JSON.stringify({ type: 'user', message: { role: 'user', content: 'A trial.' }, shouldQuery: false })}\n`,
].join('');

/**
 * Finds out by trying what this version takes over stdin once it runs. No API can be reached then: some versions
 * would count the tokens of their context there. What shows no sign is not taken, and is decided at the start. Null where
 * the program gave no answer: it may on a host that is less busy.
 */
export async function findSettable(
  consult: Consult,
  profile: ClaudeProfile,
): Promise<ReadonlySet<SettablePart> | null> {
  const trial = await consult([...offline(profile), ...noSystem], trialLines).catch(() => null);
  if (trial === null) return null;
  const lines = trial.stdout.split('\n').map(jsonOf);
  const taken = new Set(lines.flatMap(signsOf));
  if (lines.some(isTrace)) taken.delete('model');
  return taken;
}

/** The settings in force, and the tokens of each part of the context. A version that drops the system text counts none. */
const settings = z.object({ applied: z.object({ model: z.string(), effort: z.string().nullish() }) });
const contextUsage = z.object({ categories: z.array(z.object({ name: z.string(), tokens: z.number() })) });
const tools = z.object({ type: z.literal('system'), subtype: z.literal('init'), tools: z.array(z.string()) });
const response = z.object({
  type: z.literal('control_response'),
  response: z.object({ response: z.unknown().optional() }),
});

/** Older versions put a change of the model into the context, as a command of the user's. */
const trace = z.object({ type: z.literal('user'), message: z.object({ content: z.string().includes(trialModel) }) });

function isTrace(line: unknown): boolean {
  return trace.safeParse(line).success;
}

/** The CLI speaks with the server of the client's tools, or has all that it needs of it. */
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
  const { categories = [] } = contextUsage.safeParse(answer).data ?? {};
  if (categories.some(({ name, tokens }) => name === 'System prompt' && tokens > 0)) return ['system'];
  const { applied } = settings.safeParse(answer).data ?? {};
  return [
    ...(applied?.model === trialModel ? (['model'] as const) : []),
    ...(applied?.effort === trialEffort ? (['effort'] as const) : []),
  ];
}

/** The names of the CLI's own tools that these arguments of the operator open: `--tools "Read,Bash(git *)"`. */
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
