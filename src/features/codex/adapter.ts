import { isObject } from '../../primary/cli/adapters/common/lines.js';
import {
  type Adapter,
  type Consult,
  filePlace,
  type ModelEntry,
  type PrivateHome,
  type ProgramVersion,
} from '../../primary/cli/contract/adapter.js';
import type { CreateCliAdapter } from '../../primary/cli/contract/adapter-family.js';
import type { ModelRules } from '../../primary/cli/contract/model-rules.js';
import { cliError } from '../../shared/errors.js';
import { CodexDecoder } from './decoder.js';
import { imageInput } from './input.js';
import { accountQuery, accountState, codexAnswers, entryOf, modelList, modelsQuery } from './lines.js';
import { type CodexProfile, findProfile } from './profile.js';
import { CodexThread, openingLines } from './thread.js';

export const createCodex: CreateCliAdapter = ({ command }, { config, givenVariables }) =>
  codexAdapter(command ?? ['codex'], { extraArgs: config.cliArgs, givenVariables });

export interface CodexOptions {
  readonly extraArgs: readonly string[];
  /** Environment variables that the program inherits from the service. */
  readonly givenVariables: Readonly<Record<string, string>>;
}

/** Adapter for Codex as an app server, with one thread of many turns per process. Measured on 0.160.1 and 0.169.0. */
export function codexAdapter(command: readonly [string, ...string[]], options: CodexOptions): Adapter {
  return {
    name: 'codex',
    provider: 'openai',
    command,
    credentialVariable: null,
    env: {},
    home: homeFor(options.givenVariables),
    hostFolder: '/etc/codex',
    models: null,
    learn: (consult) => learn(consult, options.extraArgs),
  };
}

/**
 * Returns a private home that contains only the login of the service user: no instructions, skills, MCP servers or
 * history.
 */
function homeFor(env: Readonly<Record<string, string>>): PrivateHome {
  const variables = { HOME: '.', CODEX_HOME: '.codex' };
  const path = '.codex/auth.json';
  const key = env.OPENAI_API_KEY || env.CODEX_API_KEY;
  // As an app server, the program reads a key only from this file.
  if (key) return { variables, files: [{ path, text: JSON.stringify({ OPENAI_API_KEY: key }) }], links: [] };
  const defaultHome = env.CODEX_HOME || `${env.HOME ?? ''}/.codex`;
  // Through the link, a renewed login is written to the original file.
  return { variables, files: [], links: [{ path, to: `${defaultHome}/auth.json` }] };
}

async function learn(consult: Consult, extraArgs: readonly string[]): Promise<ProgramVersion> {
  const version = await versionOf(consult);
  const profile = await findProfile(consult);
  const { catalog } = profile;
  const args = [...profile.args, ...extraArgs]; // last, because they may enable more
  const ask = (consult: Consult, queries: Parameters<typeof codexAnswers>[3]) =>
    codexAnswers(consult, args, catalog.text, queries);
  return {
    version,
    keptParts: [], // each thread has instructions, tools and a model of its own
    plan: (_, systemPath) => planFor(args, catalog.text, systemPath),
    extras: {
      image: imageInput,
      schema: strictSchema,
      effort: (effort) => effort,
      rulesOf: (model) => rulesFor(catalog.efforts.get(model ?? '')),
      thoughts: true,
      tools: 'parallel',
    },
    protocol: () => {
      const thread = new CodexThread(catalog.defaultEfforts);
      return { writer: thread, decoder: new CodexDecoder(thread), opening: () => openingLines };
    },
    check: async (consult) => faultOf((await ask(consult, [accountQuery]))[0]),
    listModels: async (consult) => modelsIn(await ask(consult, [accountQuery, modelsQuery])),
  };
}

/** Returns what is known about a model: its efforts. The program itself decides about thoughts. */
function rulesFor(efforts: ModelRules['efforts']): ModelRules {
  return { thinking: null, acceptsDemand: true, tokenFactor: 1, ...(efforts && { efforts }) };
}

/** Returns the same arguments for every launch, so that one standby process serves every job. */
function planFor(args: readonly string[], catalog: CodexProfile['catalog']['text'], path: string) {
  return { args: ['app-server', ...args.map((arg) => arg.replace(filePlace, path))], files: [{ path, text: catalog }] };
}

async function versionOf(consult: Consult): Promise<string | null> {
  const { code, stdout } = await consult(['--version']);
  if (code !== 0) throw cliError('other', 'the model CLI does not answer --version');
  return /\d+\.\d+\.\d+\S*/.exec(stdout)?.[0] ?? null;
}

/** Returns why no credential exists; null if one does. Only a turn shows whether the API accepts it. */
function faultOf(answer: unknown): string | null {
  const { data } = accountState.safeParse(answer);
  if (data === undefined) return 'the model CLI does not report whether it is logged in';
  return data.account != null || !data.requiresOpenaiAuth
    ? null
    : 'the model CLI is not logged in: run `codex login` as the service user, or allow OPENAI_API_KEY in MODEL_API_CLI_ENV';
}

/** Returns the listed models; null if the API belongs to another provider, whose models the program does not know. */
function modelsIn([account, models]: readonly unknown[]): readonly ModelEntry[] | null {
  if (accountState.safeParse(account).data?.requiresOpenaiAuth !== true) return null;
  return modelList.safeParse(models).data?.data.map(entryOf) ?? null;
}

type SchemaPart = Readonly<Record<string, unknown>>;

const notes = ['title', 'description', '$ref', 'type', 'enum', 'const', 'format', 'pattern', '$schema'];
const limits = ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf', 'minItems', 'maxItems'];
const structure = ['properties', 'required', 'additionalProperties', 'items', 'anyOf', '$defs', 'definitions'];
const known: ReadonlySet<string> = new Set([...notes, ...limits, ...structure]);

/**
 * Returns the schema if the API accepts it in strict mode; undefined for any other, which is then written into the
 * prompt. Each object must require all of its properties and allow no others. `schema` is JSON.
 */
export function strictSchema(schema: string): unknown {
  const value: unknown = JSON.parse(schema);
  return isObject(value) && value.type === 'object' && value.anyOf === undefined && isStrict(value) ? value : undefined;
}

function isStrict(schema: unknown): boolean {
  if (!isObject(schema) || Object.keys(schema).some((keyword) => !known.has(keyword))) return false;
  const { properties, items, anyOf = [], $defs = {}, definitions = {} } = schema;
  const isOpen = schema.type === 'object' && !isClosed(schema);
  if (isOpen || !isObject($defs) || !isObject(definitions) || !Array.isArray(anyOf)) return false;
  const named = [properties ?? {}, $defs, definitions].flatMap((each) =>
    isObject(each) ? Object.values(each) : [null],
  );
  return [...named, ...anyOf, ...(items === undefined ? [] : [items])].every(isStrict);
}

function isClosed({ properties, required, additionalProperties }: SchemaPart): boolean {
  if (!isObject(properties) || !Array.isArray(required) || additionalProperties !== false) return false;
  return Object.keys(properties).every((name) => required.includes(name));
}
