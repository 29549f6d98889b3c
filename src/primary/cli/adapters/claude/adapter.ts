import { z } from 'zod';
import { cliError } from '../../../../shared/errors.js';
import {
  type Adapter,
  type Capabilities,
  type Consult,
  type Effort,
  type FileLogin,
  type ModelEntry,
  optionalWishes,
  type ProgramVersion,
  type Sampling,
  type StoredLogin,
} from '../../contract/adapter.js';
import type { SampledTurn } from '../../contract/model-rules.js';
import { jsonOf } from '../common/lines.js';
import { refuseTools } from '../common/offered-tools.js';
import { controlLine } from './control-line.js';
import { ClaudeDecoder } from './decoder.js';
import {
  type ClaudeProfile,
  effortFlag,
  findSettable,
  noSystem,
  permissionFlag,
  planFor,
  profileFor,
  toolsOpenedBy,
} from './launch.js';
import { ClaudeModels, type ListedModel, listedModels } from './model-rules.js';
import { fitSampling } from './request-fields.js';
import { ClaudeWriter, documentBlock, imageBlock, type SettablePart, schemaOf } from './writer.js';

const environment = {
  CLAUDE_CODE_DISABLE_ATTACHMENTS: '1',
  // Disables instructions and skills that the administrator of the host has written for people.
  CLAUDE_CODE_DISABLE_CLAUDE_MDS: '1',
  CLAUDE_CODE_DISABLE_POLICY_SKILLS: '1',
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  DISABLE_AUTOUPDATER: '1',
  // Near the end of its context, the CLI would replace the conversation by a summary.
  DISABLE_COMPACT: '1',
  // The CLI then reports a refusal of the API within 10 s. The default of ten retries takes minutes, longer than a job
  // may.
  CLAUDE_CODE_MAX_RETRIES: '4',
  // Keeps the names of the client's tools, shows all tools to the model at once, and waits for their results.
  CLAUDE_AGENT_SDK_MCP_NO_PREFIX: '1',
  ENABLE_TOOL_SEARCH: 'false',
  // Otherwise the CLI describes its built-in agents to the model if a client's tool is called Agent.
  CLAUDE_AGENT_SDK_DISABLE_BUILTIN_AGENTS: '1',
  CLAUDE_CODE_MCP_AUTO_BACKGROUND_MS: '0',
};

export interface ClaudeOptions {
  readonly extraArgs: readonly string[];
  /** Environment variables that the program inherits from the service. */
  readonly givenVariables: Readonly<Record<string, string>>;
  /** Whether the program gets the token of a login. */
  readonly hasToken: boolean;
  /** Returns why settings of the host prevent all jobs; null if they do not. */
  hostFault?(): Promise<string | null>;
}

/** Full model names, also in the form of Bedrock, and the CLI's short names. */
const modelForm = /^(?:[a-z]+\.)?(?:anthropic\.)?claude-|^(?:best|opus|sonnet|haiku|opusplan)(?:\[1m\])?$/;

const tokenVariable = 'CLAUDE_CODE_OAUTH_TOKEN';

/** Adapter for Claude Code in stream-json, with many turns per process. Measured on 2.1.197, 2.1.328 and 2.1.330. */
export function claudeAdapter(command: readonly [string, ...string[]], options: ClaudeOptions): Adapter {
  const login = loginOf(options.givenVariables, options.hasToken);
  return {
    name: 'claude',
    provider: 'anthropic',
    reportsCost: true,
    ...(login && { login }),
    command,
    credentialVariable: tokenVariable,
    env: environment,
    models: null,
    modelForm,
    shortNames: ['opus', 'sonnet', 'haiku'],
    learn: (consult) => learn(consult, options),
  };
}

async function learn(consult: Consult, options: ClaudeOptions): Promise<ProgramVersion> {
  const version = /\d+\.\d+\.\d+\S*/.exec(await ask(consult, '--version'))?.[0] ?? null;
  const profile = profileFor(await ask(consult, '--help'), usesApiKey(options));
  const models = new ClaudeModels();
  const found = await findSettable(consult, profile);
  refuseTools('claude', version, found?.ownTools ?? []); // the trial has no arguments of the operator
  const settable = found?.settable ?? new Set<SettablePart>();
  models.noteList(found?.models ?? []);
  const ownTools = toolsOpenedBy(options.extraArgs);
  const ttl = options.givenVariables.ENABLE_PROMPT_CACHING_1H ? '1h' : '5m';
  const cacheHabits = { ttl, inReplays: !usesApiKey(options) } as const;
  return {
    isProvisional: found === null,
    version,
    // Tools that arguments of the operator enable could leave something behind.
    ...(settable.has('rewinding') && options.extraArgs.length === 0 && { keptParts }),
    plan: (launch, systemPath) => planFor(profile, settable, launch, systemPath, options.extraArgs),
    extras: {
      ...extrasOf(profile, settable, models),
      ...(ownTools.size > 0 && { ownTools }),
      // Arguments of the operator could give the model other tools beside the search.
      ...(options.extraArgs.length === 0 && profile.known.has(permissionFlag) && { search: true }),
    },
    protocol: () => {
      const writer = new ClaudeWriter(settable, cacheHabits, models);
      return { writer, decoder: new ClaudeDecoder(writer, options.extraArgs.length > 0) };
    },
    check: (consult) => check(consult, options),
    listModels: (consult) => listModels(consult, profile.args, models),
    renewal: { args: [...profile.args, ...noSystem], input: initializeLine },
  };
}

/** The CLI accepts only the first `initialize` request. */
const keptParts = ['system', 'schema', 'offer'] as const;

/** Whether an API key is the only credential, so that `--bare`, which ignores tokens, can be used. */
function usesApiKey({ givenVariables: given, hasToken }: ClaudeOptions): boolean {
  return !hasToken && !given[tokenVariable] && Boolean(given.ANTHROPIC_API_KEY);
}

function extrasOf({ known }: ClaudeProfile, settable: ReadonlySet<SettablePart>, models: ClaudeModels): Capabilities {
  const fit = (sampling: Sampling, { model, thinks }: SampledTurn) =>
    fitSampling(sampling, thinks, models.rulesOf(model));
  return {
    image: imageBlock,
    document: documentBlock,
    thoughts: true,
    ...(settable.has('tools') && { tools: 'parallel', toolChoice: true, fitSampling: fit }),
    rulesOf: (model) => models.rulesOf(model),
    wishes: settable.has('tools') ? optionalWishes : ['citations'],
    ...(settable.has('schema') && { schema: schemaOf }),
    ...((settable.has('effort') || known.has(effortFlag)) && { effort: (effort: Effort) => effort }),
  };
}

const authStatus = z.object({ loggedIn: z.boolean() });

/**
 * Checks that a credential exists and that no setting of the host prevents all jobs. Only a turn shows whether the API
 * accepts the credential.
 */
async function check(consult: Consult, { hostFault }: ClaudeOptions): Promise<string | null> {
  const fault = (await hostFault?.()) ?? null;
  if (fault !== null) throw cliError('other', fault);
  const { stdout } = await consult(['auth', 'status']);
  const { data } = authStatus.safeParse(jsonOf(stdout));
  if (data === undefined) return 'the model CLI does not report whether it is logged in';
  return data.loggedIn
    ? null
    : 'the model CLI is not logged in: log in as the service user, or set MODEL_CODE_OAUTH_TOKEN';
}

const initializeLine = controlLine('models', { subtype: 'initialize' });

/** Adds capabilities if this version lists effort: models without the field do not support it. */
function entriesOf(models: readonly ListedModel[]): ModelEntry[] {
  const listsEffort = models.some(({ supportsEffort }) => supportsEffort === true);
  return models.map((model) => ({
    ...entryOf(model),
    ...(listsEffort && { capabilities: { images: true, effort: model.supportsEffort === true } }),
  }));
}

/** Converts a listed model. The list names the CLI's default model `default`. */
function entryOf({ value, displayName, description }: ListedModel): ModelEntry {
  return { id: value, name: displayName, default: value === 'default', ...(description && { description }) };
}

async function listModels(
  consult: Consult,
  profile: readonly string[],
  models: ClaudeModels,
): Promise<readonly ModelEntry[] | null> {
  const { stdout } = await consult(profile, initializeLine);
  const list = listedModels(stdout.split('\n').map(jsonOf));
  if (list !== null) models.noteList(list);
  return list === null ? null : entriesOf(list);
}

async function ask(consult: Consult, flag: string): Promise<string> {
  const { code, stdout } = await consult([flag]);
  if (code !== 0) throw cliError('other', `the model CLI does not answer ${flag}`);
  return stdout;
}

/** Variables that make the CLI use another credential than its login in files. */
const otherCredentials = [
  'ANTHROPIC_API_KEY',
  'ANTHROPIC_AUTH_TOKEN',
  'CLAUDE_CODE_OAUTH_TOKEN',
  'CLAUDE_CODE_USE_BEDROCK',
  'CLAUDE_CODE_USE_FOUNDRY',
  'CLAUDE_CODE_USE_VERTEX',
] as const;

/** Latest time that a Date can represent. */
const maxTime = 8.64e15;

const credentials = z.object({
  claudeAiOauth: z.object({
    accessToken: z.string(),
    refreshToken: z.string().min(1),
    expiresAt: z.number().positive().max(maxTime),
  }),
});
/** Content after the API has refused a renewal: the CLI empties the tokens. */
const ended = z.object({ claudeAiOauth: z.object({ accessToken: z.literal(''), refreshToken: z.literal('') }) });
const owner = z.object({ pid: z.number().int().positive(), lockBirthtimeMs: z.number() });

/**
 * Returns the login that `/login` stores; undefined if the CLI gets a credential from its environment. Measured on
 * 2.1.197 to 2.1.330.
 */
export function loginOf(variables: Readonly<Record<string, string>>, hasToken: boolean): FileLogin | undefined {
  const { HOME: home, CLAUDE_CONFIG_DIR: named } = variables;
  const folder = named || (home && `${home}/.claude`);
  if (!folder || hasToken || otherCredentials.some((name) => variables[name])) return undefined;
  return {
    path: `${folder}/.credentials.json`,
    read: readLogin,
    renewedBeforeMs: 5 * 60_000,
    lock: `${folder}/.oauth_refresh.lock`,
    lockStaleMs: 20_000, // the CLI updates the lock every 5 s
    lockOwner: `${folder}/.oauth_refresh.lock.owner`,
    readOwner: (text) => {
      const { data } = owner.safeParse(jsonOf(text));
      return data === undefined ? null : { pid: data.pid, lockBornAt: data.lockBirthtimeMs };
    },
  };
}

function readLogin(text: string): StoredLogin | null {
  const stored = jsonOf(text);
  const { data } = credentials.safeParse(stored);
  if (data !== undefined) return { expiresAt: data.claudeAiOauth.expiresAt };
  return ended.safeParse(stored).success ? 'ended' : null;
}
