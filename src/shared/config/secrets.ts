import { join } from 'node:path';
import { fileFault } from '../text/system-error.js';
import {
  type ApiKey,
  type GroupLine,
  isShort,
  isTooShort,
  minKeyLength,
  type PersonLine,
  readApiKey,
  readApiKeys,
  readClearKeys,
} from './api-keys.js';
import type { Environment } from './config.js';
import { keysFileWarnings } from './group-warnings.js';
import type { OptionTable } from './key-options.js';
import { readKeysFile } from './keys-file.js';

export type ReadFile = (path: string) => Promise<string>;

/** Returns the permission bits of a file; rejects if the file does not exist. */
export type ModeOf = (path: string) => Promise<number>;

/** Functions that read files. */
export interface KeyFiles {
  readonly read: ReadFile;
  readonly modeOf: ModeOf;
}

/** Values of the variables about keys. */
export interface KeyVariables {
  readonly key: string | null;
  readonly keyFile: string | null;
  readonly keysFile: string | null;
  /** Folder in which systemd provides the credentials of a unit. */
  readonly credentials: string | undefined;
}

export interface LoadedKeys {
  /** Keys that do not change while the service runs. */
  readonly apiKeys: readonly ApiKey[];
  /** Keys of the keys file, which may change. */
  readonly namedKeys: readonly ApiKey[];
  /** Lines of the keys file for groups and the whole service. */
  readonly groupLines: readonly GroupLine[];
  /** Lines of the keys file for people. */
  readonly personLines: readonly PersonLine[];
  /** Whether requests need a key. If a keys file has no key, every request is refused. */
  readonly needsKey: boolean;
  readonly faults: readonly string[];
  /** Faults of lines of the keys file. The service starts without these lines, which are refused. */
  readonly lineFaults: readonly string[];
  /** Faults about short keys, which are ignored in a trial on a local machine. */
  readonly tooShort: readonly string[];
  readonly warnings: readonly string[];
}

/** Reads all keys. Faults and warnings never contain a key. */
export async function loadKeys(variables: KeyVariables, files: KeyFiles, table: OptionTable): Promise<LoadedKeys> {
  const source = sourceOf(variables);
  const hasOthers = variables.keysFile !== null;
  const {
    keys: apiKeys,
    faults,
    warnings,
    tooShort,
  } = source === null ? nothing : await loadFrom(source, files, hasOthers);
  const { keysFile } = variables;
  const named = keysFile === null ? nothing : await loadNamed(keysFile, apiKeys, files, table);
  const isUseless =
    variables.keysFile !== null &&
    named.faults.length + named.lineFaults.length === 0 &&
    named.keys.length + named.personLines.length + apiKeys.length === 0;
  return {
    apiKeys,
    namedKeys: named.keys,
    groupLines: named.groupLines,
    personLines: named.personLines,
    needsKey: apiKeys.length > 0 || variables.keysFile !== null,
    faults: [...faults, ...named.faults],
    lineFaults: named.lineFaults,
    tooShort,
    warnings: [
      ...(variables.key === null || variables.keyFile === null ? [] : [unread]),
      ...warnings,
      ...named.warnings,
      ...(isUseless ? ['MODEL_API_KEYS_FILE: contains no key, so every request that needs one is refused'] : []),
    ],
  };
}

const unread = 'MODEL_API_KEY_FILE is not read, because MODEL_API_KEY is set';

interface Loaded {
  readonly keys: readonly ApiKey[];
  readonly groupLines: readonly GroupLine[];
  readonly personLines: readonly PersonLine[];
  readonly faults: readonly string[];
  readonly lineFaults: readonly string[];
  readonly tooShort: readonly string[];
  readonly warnings: readonly string[];
}

const nothing: Loaded = {
  ...{ keys: [], groupLines: [], personLines: [] },
  ...{ faults: [], lineFaults: [], tooShort: [], warnings: [] },
};

/** Source of the keys in clear text: its name for messages, and the key or the path of the file. */
type KeySource =
  | { readonly name: string; readonly key: string }
  | { readonly name: string; readonly path: string; readonly isOptional: boolean };

function sourceOf({ key, keyFile, credentials }: KeyVariables): KeySource | null {
  if (key !== null) return { name: 'MODEL_API_KEY', key };
  if (keyFile !== null) return { name: 'MODEL_API_KEY_FILE', path: keyFile, isOptional: false };
  if (!credentials) return null;
  return { name: '$CREDENTIALS_DIRECTORY/api_key', path: join(credentials, 'api_key'), isOptional: true };
}

/** Loads the keys in clear text. With a keys file (`hasOthers`), an empty file is valid. */
async function loadFrom(source: KeySource, files: KeyFiles, hasOthers: boolean): Promise<Loaded> {
  try {
    if ('key' in source) return { ...nothing, keys: [readApiKey(source.key)], ...shortOnes(source, [source.key]) };
    const text = await readOptional(source.path, source.isOptional, files.read);
    if (text === null || (hasOthers && text.trim() === '')) return nothing;
    const { tooShort, warnings } = shortOnes(source, readClearKeys(text));
    const open = await openOnes(source.name, source.path, files);
    return { ...nothing, keys: readApiKeys(text), tooShort, warnings: [...warnings, ...open] };
  } catch (error) {
    return { ...nothing, faults: [`${source.name}: ${(error as Error).message}`] };
  }
}

/**
 * Reads a file; null if an optional one is missing, because a unit may load only other credentials. Unreadable files
 * are faults.
 */
async function readOptional(path: string, isOptional: boolean, read: ReadFile): Promise<string | null> {
  return read(path).catch((error: NodeJS.ErrnoException) => {
    if (isOptional && error.code === 'ENOENT') return null;
    throw new Error(fileFault(path, error));
  });
}

async function loadNamed(
  path: string,
  otherKeys: readonly ApiKey[],
  files: KeyFiles,
  table: OptionTable,
): Promise<Loaded> {
  const name = 'MODEL_API_KEYS_FILE';
  try {
    const { faults: lineFaults, ...content } = readKeysFile(await files.read(path), table, otherKeys);
    const warnings = [...(await openOnes(name, path, files)), ...keysFileWarnings(content)];
    return { ...nothing, ...content, lineFaults, warnings };
  } catch (error) {
    return { ...nothing, faults: [`${name}: ${fileFault(path, error as NodeJS.ErrnoException)}`] };
  }
}

function shortOnes({ name }: KeySource, keys: readonly string[]): Pick<Loaded, 'tooShort' | 'warnings'> {
  const advice = `${name}: a key of fewer than 24 characters may be guessed: "prompt-relay keys new" generates a secure one`;
  return {
    tooShort: keys.some(isTooShort) ? [`${name}: a key must have at least ${minKeyLength} characters`] : [],
    warnings: keys.some(isShort) ? [advice] : [],
  };
}

/** File from which the unit in deploy/systemd reads its variables. */
const environmentFile = '/etc/prompt-relay/environment';

/**
 * Returns a warning if a secret in the environment comes from a file that every user of this machine can read.
 * `featureNames`: variables of features that are secrets.
 */
export async function openSecrets(
  env: Readonly<Record<string, string | undefined>>,
  files: KeyFiles,
  featureNames: readonly string[],
): Promise<string[]> {
  const secrets = ['MODEL_API_KEY', ...featureNames, 'MODEL_CODE_OAUTH_TOKEN'].filter((name) => env[name]);
  if (secrets.length === 0) return [];
  const warnings = await openOnes(secrets.join(' and '), environmentFile, files);
  if (warnings.length === 0) return [];
  const text = await files.read(environmentFile).catch(() => '');
  return secrets.some((name) => new RegExp(`^\\s*${name}=.`, 'm').test(text)) ? warnings : [];
}

const othersMayRead = 0o004;

/** Returns a warning if every user of this machine can read the file. */
async function openOnes(name: string, path: string, { modeOf }: KeyFiles): Promise<string[]> {
  const mode = await modeOf(path).catch(() => 0);
  if ((mode & othersMayRead) === 0) return [];
  return [`${name}: every user of this machine can read ${path}: chmod o-r it`];
}

export const tokenFault = 'must contain only one token, without quotes, spaces or line breaks';

/**
 * Whether a text can be a token. Quotes around a token belong to the syntax of a shell or of another program's file, so
 * they are a mistake.
 */
export function isToken(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text) && !/^["'`]|["'`]$/.test(text);
}

type TokenSettings = Readonly<Record<'MODEL_CODE_OAUTH_TOKEN' | 'MODEL_CODE_OAUTH_TOKEN_FILE', string | null>>;

/**
 * Returns the credential of the model CLI from its variable, else from the named file, else from a credential that
 * systemd has loaded; null if none is set. Appends its faults to `faults`; they never contain the token.
 */
export async function loadOauthToken(
  env: Environment,
  { MODEL_CODE_OAUTH_TOKEN: token, MODEL_CODE_OAUTH_TOKEN_FILE: file }: Partial<TokenSettings>,
  readFile: ReadFile,
  faults: string[],
): Promise<string | null> {
  if (token) {
    if (!isToken(token)) faults.push(`MODEL_CODE_OAUTH_TOKEN: ${tokenFault}`);
    return token;
  }
  if (token !== null || file === undefined) return null;
  const folder = env.CREDENTIALS_DIRECTORY;
  const path = file ?? (folder ? join(folder, 'oauth_token') : null);
  if (path === null) return null;
  try {
    return await readToken(path, readFile);
  } catch (error) {
    const fault = error as NodeJS.ErrnoException;
    // A unit may load credentials without an OAuth token among them. If the folder of credentials is unreadable,
    // `faults` already contains a fault about it.
    if (file === null && (fault.code === 'ENOENT' || faults.some((each) => each.startsWith('$CREDENTIALS'))))
      return null;
    const name = file === null ? '$CREDENTIALS_DIRECTORY/oauth_token' : 'MODEL_CODE_OAUTH_TOKEN_FILE';
    faults.push(`${name}: ${fileFault(path, fault)}`);
    return null;
  }
}

async function readToken(path: string, readFile: ReadFile): Promise<string> {
  const text = (await readFile(path)).trim();
  if (isToken(text)) return text;
  throw new Error(tokenFault);
}

/** Returns the token in the file that a variable names; undefined if it has a fault, which never contains the token. */
export async function loadToken(
  name: string,
  path: string,
  readFile: ReadFile,
  faults: string[],
): Promise<string | undefined> {
  try {
    return await readToken(path, readFile);
  } catch (error) {
    faults.push(`${name}: ${fileFault(path, error as NodeJS.ErrnoException)}`);
    return undefined;
  }
}
