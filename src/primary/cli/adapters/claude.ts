import { cliError } from '../../../shared/errors.js';
import type { Adapter, Consult, Dialect, Launch, LaunchPlan, ModelEntry, Turn, TurnInput } from '../adapter.js';
import { ClaudeDecoder } from './claude-decoder.js';
import { authStatus, entryOf, initializeLine, modelList } from './claude-queries.js';
import { turnIdOf } from './claude-turn-id.js';
import { jsonOf } from './lines.js';

type Option = readonly [flag: string, ...values: string[]];

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
  ['--settings', '{"permissions":{"deny":["Read(//**)"]}}'],
];

/** An unknown flag is fatal to the CLI, so these go only to the versions that know them. */
const wanted: readonly Option[] = [
  ['--include-partial-messages'],
  ['--no-session-persistence'],
  ['--disable-slash-commands'],
  ['--restricted'],
];

const environment = {
  CLAUDE_CODE_DISABLE_ATTACHMENTS: '1',
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  DISABLE_AUTOUPDATER: '1',
  // Near the end of its context the CLI would replace the conversation by a summary of its own.
  DISABLE_COMPACT: '1',
  // It reports a refusal of the API within 10 s then. Its own ten retries take minutes, longer than a job may.
  CLAUDE_CODE_MAX_RETRIES: '4',
};

/** Claude Code in stream-json: one process, many turns. Measured on 2.1.197, 2.1.328 and 2.1.330. */
export function claudeAdapter(
  command: readonly [string, ...string[]],
  options: { readonly extraArgs: readonly string[] },
): Adapter {
  return {
    name: 'claude',
    command,
    credentialVariable: 'CLAUDE_CODE_OAUTH_TOKEN',
    env: environment,
    models: null,
    learn: (consult) => learn(consult, options.extraArgs),
  };
}

async function learn(consult: Consult, extraArgs: readonly string[]): Promise<Dialect> {
  const version = await ask(consult, '--version');
  const profile = profileFor(await ask(consult, '--help'));
  return {
    version: /\d+\.\d+\.\d+\S*/.exec(version)?.[0] ?? null,
    plan: (launch, systemPath) => planFor(profile, launch, systemPath, extraArgs),
    extras: {},
    writer: () => ({ write: inputOf }),
    decoder: () => new ClaudeDecoder(),
    check,
    listModels: (consult) => listModels(consult, profile),
  };
}

/** Tells whether there is a credential. Whether the API accepts it, only a turn can tell. */
async function check(consult: Consult): Promise<string | null> {
  const { stdout } = await consult(['auth', 'status']);
  const { data } = authStatus.safeParse(jsonOf(stdout));
  if (data === undefined) return 'the model CLI does not say whether it is logged in';
  return data.loggedIn
    ? null
    : 'the model CLI is not logged in: log in as the service user, or set MODEL_CODE_OAUTH_TOKEN';
}

async function listModels(consult: Consult, profile: readonly string[]): Promise<readonly ModelEntry[] | null> {
  const { stdout } = await consult(profile, initializeLine);
  for (const line of stdout.split('\n')) {
    const { data } = modelList.safeParse(jsonOf(line));
    if (data !== undefined) return data.response.response.models.map(entryOf);
  }
  return null;
}

async function ask(consult: Consult, flag: string): Promise<string> {
  const { code, stdout } = await consult([flag]);
  if (code !== 0) throw cliError('other', `the model CLI does not answer ${flag}`);
  return stdout;
}

function profileFor(help: string): readonly string[] {
  const known = new Set(help.match(/--[a-z][a-z-]*/g));
  const missing = needed.flatMap(([flag]) => (known.has(flag) ? [] : [flag]));
  if (missing.length > 0) throw cliError('other', `the model CLI is too old: it does not know ${missing.join(', ')}`);
  return [...needed, ...wanted.filter(([flag]) => known.has(flag))].flat();
}

/** Without a system file, the CLI sends 5 KB about being a coding agent; with an empty one, nothing. */
function planFor(
  profile: readonly string[],
  { model, system }: Launch,
  systemPath: string,
  extraArgs: readonly string[],
): LaunchPlan {
  const modelArgs = model === null ? [] : [`--model=${model}`];
  return {
    args: [...profile, '--system-prompt-file', systemPath, ...modelArgs, ...extraArgs],
    files: [{ path: systemPath, text: guarded(system ?? '', ownSystemBlock) }],
  };
}

/** The first system block of a request describes the CLI. A system text that looks like it would replace it. */
const ownSystemBlock = /^x-anthropic-/;
const slashCommand = /^\//;

/** A newline in front keeps the CLI from taking the text for a command or a block of its own. */
function guarded(text: string, trigger: RegExp): string {
  return trigger.test(text) ? `\n${text}` : text;
}

/**
 * The history is replayed with its roles. A user line of it must be taken in before the next line is written: the CLI
 * queues user lines but not assistant lines, so lines written at once lose their order.
 */
export function inputOf({ text, history }: Turn, number?: number): TurnInput {
  const parts: string[] = [];
  let part = '';
  for (const turn of history) {
    part += turn.role === 'user' ? userLine(turn.text, { shouldQuery: false }) : assistantLine(turn.text);
    if (turn.role === 'user') {
      parts.push(part);
      part = '';
    }
  }
  const [first = '', ...rest] = [
    ...parts,
    part + userLine(text, number === undefined ? {} : { uuid: turnIdOf(number) }),
  ];
  return { text: first, rest, stdin: 'keep-open' };
}

/** `client_composed` asks newer versions to expand nothing in the text and to run no command in it. */
function userLine(text: string, extras: { readonly shouldQuery?: false; readonly uuid?: string } = {}): string {
  const message = { role: 'user', content: guarded(text, slashCommand) };
  return `${JSON.stringify({ type: 'user', message, client_composed: true, ...extras })}\n`;
}

function assistantLine(text: string): string {
  const message = { role: 'assistant', content: [{ type: 'text', text }] };
  return `${JSON.stringify({ type: 'assistant', message })}\n`;
}
