import { availableParallelism } from 'node:os';
import { isAbsolute, join } from 'node:path';
import type { z } from 'zod';
import { issueWords } from '../text/issue-words.js';
import { nearest } from '../text/nearest.js';
import { isLoopback, isWildcard, portFaults } from './addresses.js';
import { type CliFamily, cliFamiliesOf, cliSchemas, clisFaults, needsCommand } from './clis.js';
import { commandWarnings } from './command-warnings.js';
import {
  type ConfiguredFeature,
  type CoreFacts,
  type FileFindings,
  featureSettingsOf,
  ownPortsOf,
  portsOf,
  type SettingsOfFiles,
  secretNames,
  variablesOf,
} from './feature-variables.js';
import { OptionTable } from './key-options.js';
import {
  type KeyFiles,
  type LoadedKeys,
  loadKeys,
  loadOauthToken,
  loadToken,
  type ModeOf,
  openSecrets,
  type ReadFile,
} from './secrets.js';
import { memoryFamily, storeFamiliesOf, storeSchema } from './stores.js';
import { defaultConversationTtlMs, removedVariables, settingsOf, type Values, variables } from './variables.js';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Error with all faults of the configuration, a sentence each. */
export class ConfigFault extends Error {
  override readonly name = 'ConfigFault';
  readonly faults: readonly string[];
  /** Probable mistakes in addition to the faults, such as a mistyped name of a variable. */
  readonly warnings: readonly string[];

  constructor(faults: readonly string[], warnings: readonly string[] = []) {
    super(faults.join('\n'));
    this.faults = faults;
    this.warnings = warnings;
  }
}

/** Permissions for callers that do not check them: no file is readable by other users. */
const noModes: ModeOf = async () => 0;

/** Returns the lines of the keys file that features check. */
function linesOf(keys: Awaited<ReturnType<typeof loadKeysOf>>): Pick<CoreFacts, 'personLines' | 'optionLines'> {
  if (keys === null) return { personLines: [], optionLines: [] };
  const { namedKeys, personLines, groupLines } = keys;
  return { personLines, optionLines: [...namedKeys, ...personLines, ...groupLines] };
}

/** Parses the environment strictly. Durations are milliseconds, sizes bytes. Throws a ConfigFault with all faults. */
export async function loadConfig(
  env: Environment,
  read: ReadFile,
  modeOf = noModes,
  features: readonly ConfiguredFeature[] = [],
) {
  const faults: string[] = [];
  const families = cliFamiliesOf(features);
  const parsed = parseVariables(env, coreVariables(families), faults) as Parsed;
  const { featureValues, unknown } = await parseFeatures(env, features, read, faults);
  const [files, keyOptions] = [{ read, modeOf }, new OptionTable(features)];
  const keys = await loadKeysOf(env, parsed, files, keyOptions);
  const production = env.NODE_ENV === 'production';
  faults.push(...(keys?.faults ?? []), ...(isTrial(parsed, production) ? [] : (keys?.tooShort ?? [])));
  const oauthToken = await loadOauthToken(env, parsed, read, faults);
  const [featurePorts, ownPorts] = [portsOf(features, featureValues), ownPortsOf(features, featureValues)];
  const hasPeople = features.some((each) => each.identifiesPeople?.(featureValues));
  const featureSettings = featureSettingsOf(features, featureValues);
  const { store, namedStateFolder } = featureSettings;
  const facts = { values: parsed, settings: featureSettings, requestHeaders: headersOf(features), ...linesOf(keys) };
  faults.push(...contradictions(parsed, keys, hasPeople, families));
  faults.push(...clisFaults(parsed, families), ...portFaults(parsed, [...ownPorts, ...featurePorts]));
  faults.push(...features.flatMap((each) => each.findFaults(featureValues, facts)));
  if (faults.length > 0 || keys === null) throw new ConfigFault(faults, unknown);
  const values = parsed as Values;
  const stateFolder = namedStateFolder ?? stateFolderOf(env);
  const { apiKeys, namedKeys, personLines, groupLines, lineFaults } = keys;
  const needsKey = keys.needsKey || hasPeople;
  const found = await findInFiles(env, files, features, { store, stateFolder, needsKey, keyOptions });
  return frozen({
    ...settingsOf(values),
    ...featureSettings,
    conversationTtlMs: values.MODEL_API_CONVERSATION_TTL_SECONDS ?? defaultConversationTtlMs(store.kind !== 'memory'),
    workers: values.MODEL_API_WORKERS ?? Math.min(availableParallelism(), 4),
    allowedHosts: allowedHosts(values),
    ...{ apiKeys, oauthToken, namedKeys, groupLines, personLines, keyOptions },
    ...stateFiles(stateFolder),
    ...{ featureValues, featurePorts, ownPorts, featureKeyDigests: found.keyDigests },
    featureModels: features.flatMap((each) => each.namedModels?.(featureValues) ?? []),
    featureSecrets: secretsIn(featureValues, features),
    ...{ keysFileFaults: lineFaults, needsKey, production },
    warnings: [
      ...unknown,
      ...commandWarnings(env, values),
      ...features.flatMap((each) => each.findWarnings(featureValues, facts)),
      ...keys.warnings,
      ...found.warnings,
    ],
  });
}

/** Returns what features find in their files, and warnings about the files of the core. */
async function findInFiles(
  env: Environment,
  files: KeyFiles,
  features: readonly ConfiguredFeature[],
  settings: SettingsOfFiles,
): Promise<FileFindings> {
  const found = await Promise.all(features.map(async (each) => each.inspectFiles?.(settings, files.read)));
  const secretWarnings = await openSecrets(env, files, secretNames(features, ['whole']));
  return {
    warnings: [...found.flatMap((each) => each?.warnings ?? []), ...secretWarnings],
    keyDigests: found.flatMap((each) => each?.keyDigests ?? []),
  };
}

/** Returns the names of the headers that clients send to features. */
function headersOf(features: readonly ConfiguredFeature[]): string[] {
  return features.flatMap(({ requestHeaders }) => Object.keys(requestHeaders));
}

export type Config = Awaited<ReturnType<typeof loadConfig>>;

function frozen<T extends object>(settings: T): Readonly<T> {
  for (const setting of Object.values(settings)) Object.freeze(setting);
  return Object.freeze(settings);
}

/** Values of the variables without a fault. */
type Parsed = Partial<Values>;

type NamedVariable = readonly [name: string, schema: z.ZodType, fallback: string | null];

/** Returns the variables of the core. The features add kinds of model CLIs to two of them. */
function coreVariables(families: readonly CliFamily[]): readonly NamedVariable[] {
  const schemas: Readonly<Record<string, z.ZodType>> = cliSchemas(families);
  return Object.entries(variables).map(([name, [, schema, fallback]]) => [name, schemas[name] ?? schema, fallback]);
}

/**
 * Parses the variables of features, and reads the files with their credentials. Several features add kinds of stores to
 * the variable of the store. Also warns of set variables that neither the core nor a feature has.
 */
async function parseFeatures(
  env: Environment,
  features: readonly ConfiguredFeature[],
  read: ReadFile,
  faults: string[],
) {
  const all = variablesOf(features);
  const store = storeSchema(storeFamiliesOf(features));
  const named = Object.entries(all).map(([name, { schema, fallback, setting }]): NamedVariable => {
    return [name, setting === 'store' ? store : schema, fallback];
  });
  // a service that only warned would lose what its clients expect it to store
  const isIgnored =
    all.MODEL_API_STORE === undefined && (env.MODEL_API_STORE ?? memoryFamily.form) !== memoryFamily.form;
  if (isIgnored) faults.push(`MODEL_API_STORE: must be ${memoryFamily.form}`);
  const featureValues = { ...parseVariables(env, named, faults) };
  for (const [name, { secrecy }] of Object.entries(all)) {
    const path = featureValues[name];
    if (secrecy === 'file' && typeof path === 'string') featureValues[name] = await loadToken(name, path, read, faults);
  }
  return { featureValues, unknown: unknownNames(env, [...Object.keys(variables), ...Object.keys(all)]) };
}

/** Parses variables. A variable with a fault has no value. */
function parseVariables(
  env: Environment,
  named: readonly NamedVariable[],
  faults: string[],
): Readonly<Record<string, unknown>> {
  const values: Record<string, unknown> = {};
  for (const [name, schema, fallback] of named) {
    const raw = env[name] ?? fallback;
    if (raw === null) {
      values[name] = null;
      continue;
    }
    const parsed = schema.safeParse(raw, { error: issueWords });
    if (parsed.success) values[name] = parsed.data;
    else faults.push(`${name}: ${parsed.error.issues[0]?.message}`);
  }
  return values;
}

/** Returns the credentials among the values of features. */
function secretsIn(values: Readonly<Record<string, unknown>>, features: readonly ConfiguredFeature[]) {
  const secrets = secretNames(features, ['whole', 'file']).map((name) => ({ name, value: values[name] }));
  return secrets.flatMap(({ name, value }) => (typeof value === 'string' ? [{ name, value }] : []));
}

/** Loads the keys; null if their variables have faults. */
async function loadKeysOf(
  env: Environment,
  parsed: Parsed,
  files: KeyFiles,
  table: OptionTable,
): Promise<LoadedKeys | null> {
  const { MODEL_API_KEY: key, MODEL_API_KEY_FILE: keyFile, MODEL_API_KEYS_FILE: keysFile } = parsed;
  if (key === undefined || keyFile === undefined || keysFile === undefined) return null;
  const credentials = env.CREDENTIALS_DIRECTORY;
  return loadKeys({ key, keyFile, keysFile, credentials }, files, table);
}

/** Returns the folder for files of the service, and the files of the core in it. */
function stateFiles(stateFolder: string | null) {
  const fileOf = (name: string) => (stateFolder === null ? null : join(stateFolder, name));
  return { stateFolder, firstStartFile: fileOf('first-start'), modelSizesFile: fileOf('model-sizes.json') };
}

/** Returns the folder of systemd or of the user; null if there is none. */
function stateFolderOf(env: Environment): string | null {
  const [unitFolder] = env.STATE_DIRECTORY?.split(':') ?? [];
  const userFolder = env.XDG_STATE_HOME || (env.HOME && join(env.HOME, '.local', 'state'));
  const folder = unitFolder || (userFolder && join(userFolder, 'prompt-relay'));
  return folder && isAbsolute(folder) ? folder : null;
}

/** Whether only users of this machine can reach the service, and it is not marked as production. */
function isTrial({ MODEL_API_HOST: host }: Parsed, production: boolean): boolean {
  return !production && host !== undefined && isLoopback(host);
}

/** Returns the faults of variables that contradict each other. Ignores variables that could not be read. */
function contradictions(
  values: Parsed,
  keys: LoadedKeys | null,
  hasPeople: boolean,
  families: readonly CliFamily[],
): string[] {
  const faults: string[] = [];
  const host = values.MODEL_API_HOST;
  const isOpen = keys !== null && !keys.needsKey && keys.faults.length === 0 && !hasPeople;
  if (host !== undefined && !isLoopback(host) && isOpen) {
    faults.push(
      `MODEL_API_HOST: ${host} can be reached from other machines: set MODEL_API_KEY or MODEL_API_KEYS_FILE, or bind to 127.0.0.1`,
    );
  }
  if (values.MODEL_API_METRICS_AUTH === true && isOpen) {
    faults.push('MODEL_API_METRICS_AUTH: needs an API key, and none is configured');
  }
  const { MODEL_API_CLI: kind, MODEL_API_CLI_COMMAND: command } = values;
  if (kind !== undefined && command === null && needsCommand(kind, families))
    faults.push(`MODEL_API_CLI_COMMAND: must be set when MODEL_API_CLI is ${kind}`);
  const { MODEL_API_DEFAULT_MODEL: model, MODEL_API_ALLOWED_MODELS: allowed } = values;
  const hasOneSpelling = values.MODEL_API_CLIS?.length === 0;
  if (hasOneSpelling && model && allowed && allowed.length > 0 && !allowed.includes(model)) {
    faults.push(`MODEL_API_DEFAULT_MODEL: ${model} is not in MODEL_API_ALLOWED_MODELS`);
  }
  return faults;
}

/** Returns the accepted host names; null accepts every name. */
function allowedHosts(values: Values): readonly string[] | null {
  const { MODEL_API_ALLOWED_HOSTS: named, MODEL_API_HOST: host } = values;
  if (named !== null) return named;
  if (isWildcard(host)) return null;
  return [...new Set(['localhost', '127.0.0.1', '::1', host])];
}

/** Variable that only the command reads: the URL of the service. */
const commandVariable = 'MODEL_API_URL';

/** Warns of set variables that the service does not read, because they were removed or are misspelt. */
function unknownNames(env: Environment, known: readonly string[]): string[] {
  return Object.keys(env)
    .filter((name) => name.startsWith('MODEL_API_') && !known.includes(name) && name !== commandVariable)
    .map((name) => {
      const advice = removedVariables.get(name.slice('MODEL_API_'.length));
      if (advice !== undefined) return `${name} was removed and has no effect: ${advice}`;
      const close = nearest(name, known);
      return `${name} is not a variable of prompt-relay${close === null ? '' : `: did you mean ${close}?`}`;
    });
}
