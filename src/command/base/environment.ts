import { isAbsolute, join } from 'node:path';
import { localUrl } from '../../shared/config/addresses.js';
import { checkKey, readClearKeys } from '../../shared/config/api-keys.js';
import type { Environment } from '../../shared/config/config.js';
import {
  absentSettings,
  type ConfiguredFeature,
  type FeatureVariables,
  variablesOf,
} from '../../shared/config/feature-variables.js';
import type { ReadFile } from '../../shared/config/secrets.js';
import { type StorePlace, storeFamiliesOf, storeSchema } from '../../shared/config/stores.js';
import { defaultConversationTtlMs, variables } from '../../shared/config/variables.js';
import { fileFault } from '../../shared/text/system-error.js';
import type { SettingsFolders } from './client-programs.js';
import { CommandError, exitCodes } from './errors.js';

export interface ServiceAddress {
  /** URL without a slash at the end; `unix:/path` for a Unix socket. */
  readonly url: string;
  readonly socketPath?: string;
  readonly key: string | null;
}

export interface AddressFlags {
  readonly url?: string | undefined;
  /** API key; if null, the client sends none. */
  readonly key?: string | null | undefined;
}

/** Login that `prompt-relay login` has stored. */
export interface Login {
  readonly url: string;
  /** API key; null if the service needs none. */
  readonly key: string | null;
}

/**
 * Determines the service and the key. Flags have precedence over environment variables, and these over the stored
 * login. The key of the login is sent only to the service of the login. Throws a CommandError.
 */
export async function addressFrom(
  flags: AddressFlags,
  env: Environment,
  readFile: ReadFile,
  readLogin: () => Promise<Login | null> = async () => null,
): Promise<ServiceAddress> {
  const url = flags.url ?? (env.MODEL_API_URL || undefined);
  const source = flags.url === undefined ? 'MODEL_API_URL' : '--url';
  const named = flags.key === null ? null : await keyFrom(flags, env, readFile);
  const isPlaceNamed = url !== undefined || Boolean(env.MODEL_API_HOST || env.MODEL_API_PORT);
  const isKeyNamed = named !== null || flags.key === null;
  const login = isPlaceNamed && isKeyNamed ? null : await readLogin();
  const place = placeFrom(url ?? (isPlaceNamed ? undefined : login?.url), source, env);
  return { ...place, key: isKeyNamed || login?.url !== place.url ? named : login.key };
}

function placeFrom(url: string | undefined, source: string, env: Environment): Omit<ServiceAddress, 'key'> {
  const socketPath = /^unix:(?:\/\/)?(\/.+)$/.exec(url ?? '')?.[1];
  if (socketPath !== undefined) return { url: `unix:${socketPath}`, socketPath };
  return { url: url === undefined ? configuredUrl(env) : checkedUrl(url, source, env) };
}

function configuredUrl(env: Environment): string {
  const port = Number(settingOf(env, 'MODEL_API_PORT'));
  if (port === 0) throw configError('MODEL_API_PORT: 0 means any free port: use --url to name the service');
  return localUrl(String(settingOf(env, 'MODEL_API_HOST')), port);
}

function checkedUrl(url: string, source: string, env: Environment): string {
  const whole = /^[a-z][a-z0-9+.-]*:\/\//i.test(url) ? url : withScheme(url, env);
  const parsed = URL.canParse(whole) ? new URL(whole) : null;
  if (parsed !== null && /^https?:$/.test(parsed.protocol) && parsed.search + parsed.hash === '') {
    return parsed.href.replace(/\/+$/, '');
  }
  const forms = 'http://127.0.0.1:5051, localhost:5051, localhost or unix:/run/relay.sock';
  const exitCode = source === '--url' ? exitCodes.usage : exitCodes.config;
  throw new CommandError(exitCode, `${source}: must be an address such as ${forms}`);
}

/** Completes `host:port` to a URL. A host alone gets the configured port of the service. */
function withScheme(host: string, env: Environment): string {
  const bracketed = /^[0-9a-f]*:[0-9a-f:.]*:[0-9a-f:.]*$/i.test(host) ? `[${host}]` : host;
  const hasPort = /:\d+(\/|$)/.test(bracketed.replace(/^\[.*\]/, ''));
  const [, name = '', path = ''] = /^([^/]*)(.*)$/.exec(bracketed) ?? [];
  return hasPort ? `http://${bracketed}` : `http://${name}:${settingOf(env, 'MODEL_API_PORT') || defaultPort}${path}`;
}

const defaultPort = 5051;

type ReadSetting = 'MODEL_API_HOST' | 'MODEL_API_PORT' | 'MODEL_API_CONVERSATION_TTL_SECONDS';

/** null if it is unset and has no default of its own. */
function settingOf(env: Environment, name: ReadSetting): unknown {
  const [, schema, fallback] = variables[name];
  return parsedSetting(env, name, { schema, fallback });
}

function parsedSetting(
  env: Environment,
  name: string,
  { schema, fallback }: Pick<FeatureVariables[string], 'schema' | 'fallback'>,
): unknown {
  if ((env[name] ?? fallback) === null) return null;
  const parsed = schema.safeParse(env[name] ?? fallback);
  if (!parsed.success) throw configError(`${name}: ${parsed.error.issues[0]?.message}`);
  return parsed.data;
}

/** Returns the API key that the flag, the environment or the key file names; the first one if the file has several. */
async function keyFrom({ key }: AddressFlags, env: Environment, readFile: ReadFile): Promise<string | null> {
  if (typeof key === 'string') return checkedKey(key, '--key', exitCodes.usage);
  if (env.MODEL_API_KEY) return checkedKey(env.MODEL_API_KEY, 'MODEL_API_KEY', exitCodes.config);
  const file = env.MODEL_API_KEY_FILE;
  if (!file) return null;
  try {
    return readClearKeys(await readFile(file))[0] ?? null;
  } catch (error) {
    throw configError(`MODEL_API_KEY_FILE: ${fileFault(file, error as NodeJS.ErrnoException)}`);
  }
}

/** Rejects a key that cannot be a header. The error that Node would throw shows the key. */
function checkedKey(key: string, source: string, exitCode: number): string {
  try {
    checkKey(key);
    return key;
  } catch (error) {
    throw new CommandError(exitCode, `${source}: ${(error as Error).message}`);
  }
}

function configError(message: string): CommandError {
  return new CommandError(exitCodes.config, message);
}

/** Settings of the store in the environment of the service. */
export interface NamedStore {
  /** null if the environment names no store: then the running service knows its store. */
  readonly place: StorePlace | null;
  readonly conversationTtlMs: number;
  readonly jobTtlMs: number;
}

const jobTtlName = 'MODEL_API_JOB_TTL_SECONDS';

/** Reads the settings of the store; `flag` has precedence over MODEL_API_STORE. Throws a CommandError. */
export function storeSettings(
  flag: string | undefined,
  env: Environment,
  features: readonly Pick<ConfiguredFeature, 'variables' | 'store'>[],
): NamedStore {
  const text = flag ?? env.MODEL_API_STORE;
  const place = text === undefined ? null : placeOf(text, flag !== undefined, features);
  const isDurable = place !== null && place.kind !== 'memory';
  const jobTtl = variablesOf(features)[jobTtlName];
  return {
    place,
    conversationTtlMs: Number(
      settingOf(env, 'MODEL_API_CONVERSATION_TTL_SECONDS') ?? defaultConversationTtlMs(isDurable),
    ),
    jobTtlMs: jobTtl === undefined ? absentSettings.jobTtlMs : Number(parsedSetting(env, jobTtlName, jobTtl)),
  };
}

function placeOf(text: string, isFlag: boolean, features: Parameters<typeof storeFamiliesOf>[0]): StorePlace {
  const parsed = storeSchema(storeFamiliesOf(features)).safeParse(text);
  if (parsed.success) return parsed.data;
  const sentence = parsed.error.issues[0]?.message;
  if (!isFlag) throw configError(`MODEL_API_STORE: ${sentence}`);
  throw new CommandError(exitCodes.usage, `--store: ${sentence}`);
}

/** Returns the folders with the settings of the user's programs. Throws a CommandError if HOME is not set. */
export function settingsFolders({ HOME: home, XDG_CONFIG_HOME: config }: Environment): SettingsFolders {
  if (!home) throw configError('set HOME, which contains the settings of programs');
  // The specification of XDG_CONFIG_HOME says to ignore a relative path.
  return { home, config: config && isAbsolute(config) ? config : join(home, '.config') };
}
