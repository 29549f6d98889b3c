import { cliError } from '../../../../shared/errors.js';
import type { Launch, LaunchPlan } from '../../contract/adapter.js';
import { guardedSystem, type TellablePart } from './writer.js';

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
];

/** Keeps newer versions from telling the model the working directory and the platform. It takes API keys alone. */
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
  tellable: ReadonlySet<TellablePart>,
  { model, system, effort }: Launch,
  systemPath: string,
  extraArgs: readonly string[],
): LaunchPlan {
  const isSystemTold = tellable.has('system');
  const systemArgs = isSystemTold ? noSystem : ['--system-prompt-file', systemPath];
  const modelArgs = model === null || tellable.has('model') ? [] : [`--model=${model}`];
  const isEffortFlag = effort !== null && !tellable.has('effort') && known.has(effortFlag);
  const effortArgs = isEffortFlag ? [`${effortFlag}=${effort}`] : [];
  return {
    args: [...args, ...systemArgs, ...modelArgs, ...effortArgs, ...extraArgs],
    files: isSystemTold ? [] : [{ path: systemPath, text: guardedSystem(system ?? '') }],
  };
}

export const effortFlag = '--effort';

/** The arguments of a start that reaches no API, whatever credential it is given. */
export function offline({ args }: ClaudeProfile): readonly string[] {
  const settings = JSON.stringify({ permissions: bars, env: nowhere });
  return args.map((arg, index) => (args[index - 1] === '--settings' ? settings : arg));
}

/** Overrides the environment. Nobody listens on port 1. */
const nowhere = {
  ANTHROPIC_BASE_URL: 'http://127.0.0.1:1',
  ANTHROPIC_API_KEY: '',
  ANTHROPIC_AUTH_TOKEN: '',
  CLAUDE_CODE_OAUTH_TOKEN: '',
  CLAUDE_CODE_USE_BEDROCK: '',
  CLAUDE_CODE_USE_VERTEX: '',
  CLAUDE_CODE_USE_FOUNDRY: '',
};
