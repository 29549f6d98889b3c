import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { type ApiKey, readApiKey, readApiKeys } from './api-keys.js';
import { commandModel } from './command-model.js';
import { isLoopback, isWildcard } from './loopback.js';
import { nearest } from './nearest.js';
import { type Values, type VariableName, variables } from './variables.js';

export type Environment = Readonly<Record<string, string | undefined>>;
export type ReadFile = (path: string) => Promise<string>;

/** Everything that is wrong with the configuration, all at once; a sentence each. */
export class ConfigFault extends Error {
  override readonly name = 'ConfigFault';
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(faults.join('\n'));
    this.faults = faults;
  }
}

/**
 * Parses the environment once, strictly; the result is frozen. Durations are milliseconds, sizes bytes.
 * Throws a ConfigFault that lists all faults.
 */
export async function loadConfig(env: Environment, readFile: ReadFile) {
  const faults: string[] = [];
  const parsed = parseValues(env, faults);
  const apiKeys = await loadApiKeys(env, parsed, readFile, faults);
  faults.push(...contradictions(parsed, apiKeys));
  if (faults.length > 0 || apiKeys === null) throw new ConfigFault(faults);
  const values = parsed as Values;
  return frozen({
    ...door(values),
    ...work(values),
    ...modelCli(values),
    apiKeys,
    production: env.NODE_ENV === 'production',
    warnings: [...unknownNames(env), ...unreadKeys(values)],
  });
}

function door(values: Values) {
  return {
    host: values.MODEL_API_HOST,
    port: values.MODEL_API_PORT,
    socketPath: values.MODEL_API_SOCKET,
    workers: values.MODEL_API_WORKERS ?? Math.min(availableParallelism(), 4),
    allowedHosts: allowedHosts(values),
    allowedOrigins: values.MODEL_API_ALLOWED_ORIGINS,
    trustedProxies: values.MODEL_API_TRUST_PROXY,
    bodyLimitBytes: values.MODEL_API_BODY_LIMIT,
    rateWindowMs: values.MODEL_API_RATE_LIMIT_WINDOW_SECONDS,
    rateMaxRequests: values.MODEL_API_RATE_LIMIT_MAX_REQUESTS,
  };
}

function work(values: Values) {
  return {
    executionMs: values.MODEL_API_TIMEOUT,
    maxConcurrent: values.MODEL_API_MAX_CONCURRENT,
    maxQueue: values.MODEL_API_MAX_QUEUE,
    queueTimeoutMs: values.MODEL_API_QUEUE_TIMEOUT_MS,
    drainMs: values.MODEL_API_DRAIN_TIMEOUT_SECONDS,
    strictHealth: values.MODEL_API_STRICT_HEALTH,
    readinessIntervalMs: values.MODEL_API_READINESS_INTERVAL_SECONDS,
    historyLimit: values.MODEL_API_HEALTH_HISTORY_LIMIT,
    conversationTtlMs: values.MODEL_API_CONVERSATION_TTL_SECONDS,
    maxConversations: values.MODEL_API_MAX_CONVERSATIONS,
    conversationBytes: values.MODEL_API_CONVERSATION_MEMORY_MB * 1024 ** 2,
    logLevel: values.MODEL_API_LOG_LEVEL,
  };
}

function modelCli(values: Values) {
  return {
    killGraceMs: values.MODEL_API_KILL_GRACE_MS,
    cli: values.MODEL_API_CLI,
    cliCommand: values.MODEL_API_CLI_COMMAND,
    cliArgs: values.MODEL_API_CLI_ARGS,
    cliEnv: values.MODEL_API_CLI_ENV,
    defaultModel: values.MODEL_API_DEFAULT_MODEL,
    allowedModels: values.MODEL_API_ALLOWED_MODELS,
    firstOutputMs: values.MODEL_API_FIRST_OUTPUT_TIMEOUT,
    stallMs: values.MODEL_API_STALL_TIMEOUT,
    standby: values.MODEL_API_STANDBY,
    liveSessions: values.MODEL_API_LIVE_SESSIONS,
    sessionIdleMs: values.MODEL_API_SESSION_IDLE_SECONDS,
    maxOutputBytes: values.MODEL_API_MAX_OUTPUT_BYTES,
    oauthToken: values.MODEL_CODE_OAUTH_TOKEN,
  };
}

export type Config = Awaited<ReturnType<typeof loadConfig>>;

function frozen<T extends object>(settings: T): Readonly<T> {
  for (const setting of Object.values(settings)) Object.freeze(setting);
  return Object.freeze(settings);
}

/** What could be read; a variable that is at fault is left out. */
type Parsed = Partial<Values>;

function parseValues(env: Environment, faults: string[]): Parsed {
  const values: Record<string, unknown> = {};
  for (const [name, { schema, fallback }] of Object.entries(variables)) {
    const raw = env[name] ?? fallback;
    if (raw === null) {
      values[name] = null;
      continue;
    }
    const parsed = schema.safeParse(raw);
    if (parsed.success) values[name] = parsed.data;
    else faults.push(`${name}: ${parsed.error.issues[0]?.message}`);
  }
  return values as Parsed;
}

/** null: there is a key, or should be, but it is at fault. */
async function loadApiKeys(
  env: Environment,
  { MODEL_API_KEY: key, MODEL_API_KEY_FILE: file }: Parsed,
  readFile: ReadFile,
  faults: string[],
): Promise<ApiKey[] | null> {
  if (key === undefined || file === undefined) return null;
  const [source, read] = keySource(env, key, file, readFile);
  try {
    return await read();
  } catch (error) {
    faults.push(`${source}: ${(error as Error).message}`);
    return null;
  }
}

type KeySource = readonly [name: string, read: () => Promise<ApiKey[]>];

function keySource(env: Environment, key: string | null, file: string | null, readFile: ReadFile): KeySource {
  if (key !== null) return ['MODEL_API_KEY', async () => [readApiKey(key)]];
  if (file !== null) return ['MODEL_API_KEY_FILE', async () => readApiKeys(await readFile(file))];
  const credentials = env.CREDENTIALS_DIRECTORY;
  if (!credentials) return ['MODEL_API_KEY', async () => []];
  return ['$CREDENTIALS_DIRECTORY/api_key', () => readCredential(readFile, join(credentials, 'api_key'))];
}

/** A unit may load other credentials than ours: a missing file is no fault, an unreadable one is. */
async function readCredential(readFile: ReadFile, path: string): Promise<ApiKey[]> {
  const content = await readFile(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
  return content === null ? [] : readApiKeys(content);
}

/** Judges only what could be read: a variable that is at fault contradicts nothing. */
function contradictions(values: Parsed, apiKeys: readonly ApiKey[] | null): string[] {
  const faults: string[] = [];
  const host = values.MODEL_API_HOST;
  if (host !== undefined && !isLoopback(host) && apiKeys?.length === 0) {
    faults.push(`MODEL_API_HOST: ${host} can be reached from other machines: set MODEL_API_KEY, or bind to 127.0.0.1`);
  }
  if (values.MODEL_API_CLI === 'command') faults.push(...commandContradictions(values));
  const { MODEL_API_DEFAULT_MODEL: model, MODEL_API_ALLOWED_MODELS: allowed } = values;
  if (model && allowed && allowed.length > 0 && !allowed.includes(model)) {
    faults.push(`MODEL_API_DEFAULT_MODEL: ${model} is not among MODEL_API_ALLOWED_MODELS`);
  }
  return faults;
}

/** An answer must never name a model that has not run. */
function commandContradictions(values: Parsed): string[] {
  const { MODEL_API_CLI_COMMAND: command, MODEL_API_CLI_ARGS: extraArgs } = values;
  const { MODEL_API_DEFAULT_MODEL: model, MODEL_API_ALLOWED_MODELS: allowed } = values;
  if (command === null) return ['MODEL_API_CLI_COMMAND: must be set when MODEL_API_CLI is command'];
  if (command === undefined || extraArgs === undefined || model === undefined) return [];
  const { takesModel, ownName } = commandModel(command, extraArgs, model);
  const namesNone = model === null && allowed?.length === 0;
  if (takesModel && namesNone) return ['MODEL_API_DEFAULT_MODEL: must be set when the command holds {model}'];
  const others = takesModel ? [] : (allowed ?? []).filter((name) => name !== ownName);
  if (others.length === 0) return [];
  const cause = `the command holds no {model}, so only ${ownName} can answer`;
  return [`MODEL_API_ALLOWED_MODELS: must not name ${others.join(', ')}: ${cause}`];
}

/** null: any host name will do. */
function allowedHosts(values: Values): readonly string[] | null {
  const { MODEL_API_ALLOWED_HOSTS: named, MODEL_API_HOST: host } = values;
  if (named !== null) return named;
  if (isWildcard(host)) return null;
  return [...new Set(['localhost', '127.0.0.1', '::1', host])];
}

function unreadKeys({ MODEL_API_KEY: key, MODEL_API_KEY_FILE: file }: Values): string[] {
  return key === null || file === null ? [] : ['MODEL_API_KEY_FILE is not read, because MODEL_API_KEY is set'];
}

function unknownNames(env: Environment): string[] {
  const known = Object.keys(variables) as VariableName[];
  return Object.keys(env)
    .filter((name) => name.startsWith('MODEL_API_') && !(name in variables))
    .map((name) => {
      const close = nearest(name, known);
      return `${name} is not a variable of prompt-relay${close === null ? '' : `: did you mean ${close}?`}`;
    });
}
