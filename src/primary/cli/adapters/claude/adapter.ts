import { z } from 'zod';
import { cliError } from '../../../../shared/errors.js';
import {
  type Adapter,
  type Capabilities,
  type Consult,
  type Effort,
  type ModelEntry,
  optionalWishes,
  type ProgramVersion,
} from '../../contract/adapter.js';
import { jsonOf } from '../common/lines.js';
import { ClaudeDecoder } from './decoder.js';
import { type ClaudeProfile, effortFlag, findSettable, planFor, profileFor, toolsOpenedBy } from './launch.js';
import { ClaudeWriter, controlLine, fitSampling, imageBlock, type SettablePart, schemaOf } from './writer.js';

const environment = {
  CLAUDE_CODE_DISABLE_ATTACHMENTS: '1',
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  DISABLE_AUTOUPDATER: '1',
  // Near the end of its context the CLI would replace the conversation by a summary of its own.
  DISABLE_COMPACT: '1',
  // It reports a refusal of the API within 10 s then. Its own ten retries take minutes, longer than a job may.
  CLAUDE_CODE_MAX_RETRIES: '4',
  // Tools of clients keep their names, stand before the model at once, and are waited for.
  CLAUDE_AGENT_SDK_MCP_NO_PREFIX: '1',
  ENABLE_TOOL_SEARCH: 'false',
  CLAUDE_CODE_MCP_AUTO_BACKGROUND_MS: '0',
};

export interface ClaudeOptions {
  readonly extraArgs: readonly string[];
  /** What the program sees of the service's environment. */
  readonly given: Readonly<Record<string, string>>;
  /** Whether it is given the token of a login. */
  readonly hasToken: boolean;
}

/** Full names, also as Bedrock has them, and the short ones of the program. */
const modelForm = /^(?:[a-z]+\.)?(?:anthropic\.)?claude-|^(?:best|opus|sonnet|haiku|opusplan)(?:\[1m\])?$/;

const tokenVariable = 'CLAUDE_CODE_OAUTH_TOKEN';

/** Claude Code in stream-json: one process, many turns. Measured on 2.1.197, 2.1.328 and 2.1.330. */
export function claudeAdapter(command: readonly [string, ...string[]], options: ClaudeOptions): Adapter {
  return {
    name: 'claude',
    provider: 'anthropic',
    reportsCost: true,
    command,
    credentialVariable: tokenVariable,
    env: environment,
    models: null,
    modelForm,
    learn: (consult) => learn(consult, options),
  };
}

async function learn(consult: Consult, options: ClaudeOptions): Promise<ProgramVersion> {
  const version = await ask(consult, '--version');
  const profile = profileFor(await ask(consult, '--help'), usesApiKey(options));
  const found = await findSettable(consult, profile);
  const settable = found ?? new Set<SettablePart>();
  const ownTools = toolsOpenedBy(options.extraArgs);
  return {
    isProvisional: found === null,
    version: /\d+\.\d+\.\d+\S*/.exec(version)?.[0] ?? null,
    plan: (launch, systemPath) => planFor(profile, settable, launch, systemPath, options.extraArgs),
    extras: { ...extrasOf(profile, settable), ...(ownTools.size > 0 && { ownTools }) },
    protocol: () => {
      const writer = new ClaudeWriter(settable);
      return { writer, decoder: new ClaudeDecoder(writer, options.extraArgs.length > 0) };
    },
    check,
    listModels: (consult) => listModels(consult, profile.args),
  };
}

/** With a key and a token, the CLI uses the key; but without the key, `--bare` would find no login. */
function usesApiKey({ given, hasToken }: ClaudeOptions): boolean {
  return !hasToken && !given[tokenVariable] && Boolean(given.ANTHROPIC_API_KEY);
}

function extrasOf({ known }: ClaudeProfile, settable: ReadonlySet<SettablePart>): Capabilities {
  return {
    image: imageBlock,
    thoughts: true,
    ...(settable.has('tools') && { tools: 'parallel', toolChoice: true, wishes: optionalWishes, fitSampling }),
    ...(settable.has('schema') && { schema: schemaOf }),
    ...((settable.has('effort') || known.has(effortFlag)) && { effort: (effort: Effort) => effort }),
  };
}

const authStatus = z.object({ loggedIn: z.boolean() });

/** Whether there is a credential. Only a turn can show whether the API accepts it. */
async function check(consult: Consult): Promise<string | null> {
  const { stdout } = await consult(['auth', 'status']);
  const { data } = authStatus.safeParse(jsonOf(stdout));
  if (data === undefined) return 'the model CLI does not say whether it is logged in';
  return data.loggedIn
    ? null
    : 'the model CLI is not logged in: log in as the service user, or set MODEL_CODE_OAUTH_TOKEN';
}

const initializeLine = controlLine('models', { subtype: 'initialize' });

const listed = z.object({
  value: z.string(),
  displayName: z.string(),
  description: z.string().optional(),
  supportsEffort: z.boolean().optional().catch(undefined),
});
type ListedModel = z.infer<typeof listed>;

const modelList = z.object({
  type: z.literal('control_response'),
  response: z.object({ response: z.object({ models: z.array(listed) }) }),
});

/** A version that lists effort leaves it out for a model that takes none. */
function entriesOf(models: readonly ListedModel[]): ModelEntry[] {
  const listsEffort = models.some(({ supportsEffort }) => supportsEffort === true);
  return models.map((model) => ({
    ...entryOf(model),
    ...(listsEffort && { capabilities: { images: true, effort: model.supportsEffort === true } }),
  }));
}

/** In the program's list, its own choice is called `default`. */
function entryOf({ value, displayName, description }: ListedModel): ModelEntry {
  return { id: value, name: displayName, default: value === 'default', ...(description && { description }) };
}

async function listModels(consult: Consult, profile: readonly string[]): Promise<readonly ModelEntry[] | null> {
  const { stdout } = await consult(profile, initializeLine);
  for (const line of stdout.split('\n')) {
    const { data } = modelList.safeParse(jsonOf(line));
    if (data !== undefined) return entriesOf(data.response.response.models);
  }
  return null;
}

async function ask(consult: Consult, flag: string): Promise<string> {
  const { code, stdout } = await consult([flag]);
  if (code !== 0) throw cliError('other', `the model CLI does not answer ${flag}`);
  return stdout;
}
