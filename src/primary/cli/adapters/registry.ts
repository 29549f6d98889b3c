import { readFile, realpath, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Clock } from '../../../shared/clock.js';
import { type AdapterFile, commandModel, isAdapterFile } from '../../../shared/config/clis.js';
import { type Config, ConfigFault, type Environment } from '../../../shared/config/config.js';
import { applicableLines } from '../../../shared/config/keys-file.js';
import { defaultModelName } from '../../../shared/config/values.js';
import { toRelayError } from '../../../shared/errors.js';
import { type AccountsSource, noAccounts, type PreparedAccounts } from '../accounts.js';
import type { Adapter } from '../contract/adapter.js';
import { sharedLoginWarnings } from '../login/shared-home.js';
import { type AtLeastOne, modelFor, type NamedAdapter } from '../models.js';
import { launchEnv } from '../process/launcher.js';
import { findProgram, searchPathOf } from '../process/program.js';
import { ModelNames } from '../route.js';
import { accountsSource, type CreateAccountAdapter } from './account-login.js';
import { hostSettings, managedFault } from './host-settings.js';

export type AdapterKind = Exclude<Config['cli'], 'auto' | AdapterFile>;

/** Model CLI of the service. */
export interface CliChoice {
  /** Name in logs and metrics, and before the names of its models. */
  readonly name: string;
  readonly kind: AdapterKind;
  /** Program and its leading arguments; null for the default of its kind. */
  readonly command: readonly [program: string, ...args: string[]] | null;
}

/** Model CLI whose adapter is in a file. */
type FileChoice = Omit<CliChoice, 'kind'> & { readonly kind: AdapterFile };

type LoadModule = (path: string) => Promise<unknown>;

export interface AdapterChoice {
  /** Accounts of the accounts file; null without one. */
  readonly accountsSource: AccountsSource | null;
  /** Model CLIs, and the meaning of model names. */
  readonly names: ModelNames;
  /** Hints for the operator about the choice. */
  readonly warnings: readonly string[];
  /** Faults of lines in the keys file and the accounts file. The service refuses these lines. */
  readonly lineFaults: readonly string[];
}

const demoProgram = join(__dirname, '..', '..', '..', 'features', 'demo', 'program', 'main.js');
const demoWarning = 'no claude on PATH: the demo model answers. Install claude, or set MODEL_API_CLI.';

/**
 * Creates the adapters of the configuration. `env` is the environment of the service. Rejects with a ConfigFault for a
 * faulty adapter file or unusable models.
 */
export async function chooseAdapters(
  config: Config,
  env: Environment,
  load: LoadModule = importAdapterModule,
): Promise<AdapterChoice> {
  const named = async (choice: CliChoice | FileChoice): Promise<NamedAdapter> => ({
    name: choice.name,
    adapter: await createNamed(choice, config, env, load),
  });
  const { clis, warnings, choices } = await choose(config, env, named);
  const names = new ModelNames(config, clis);
  const createFor: CreateAccountAdapter = (name, ...settings) => createNamed(choices.get(name), ...settings, load);
  const source = await accountsSource(config, env, clis, createFor);
  const ruleFaults = fallbackFaults(config, names, source?.first ?? noAccounts);
  const faults = [...modelFaults(config, names), ...aliasFaults(config, names), ...ruleFaults];
  if (faults.length > 0) throw new ConfigFault(faults);
  const shared = await sharedLoginWarnings(names.clis, env);
  const otherWarnings = [...(await hostWarnings(clis)), ...idleAliases(config, names), ...shared];
  const lineFaults = [
    ...applicableLines(config, names.reportCosts).faults.map((fault) => `MODEL_API_KEYS_FILE: ${fault}`),
    ...(source?.first.faults ?? []).map((fault) => `MODEL_API_ACCOUNTS_FILE: ${fault}`),
  ];
  return { names, accountsSource: source, warnings: [...warnings, ...otherWarnings], lineFaults };
}

/** Returns warnings about settings of the host that apply to jobs. */
async function hostWarnings(clis: readonly NamedAdapter[]): Promise<string[]> {
  const kinds = [...new Set(clis.map(({ adapter }) => adapter.name))];
  return (await Promise.all(kinds.map(hostSettings))).flat();
}

interface ChosenClis {
  readonly clis: AtLeastOne<NamedAdapter>;
  readonly warnings: readonly string[];
  /** How each CLI was chosen, by its name. */
  readonly choices: ReadonlyMap<string, CliChoice | FileChoice>;
}

/** Creates the adapter of a CLI, also for an account of it, which has another environment. */
async function createNamed(
  choice: CliChoice | FileChoice | undefined,
  config: Config,
  env: Environment,
  load: LoadModule,
): Promise<Adapter> {
  if (choice === undefined) throw new Error('the model CLI is unknown');
  return isFileChoice(choice) ? adapterOfFile(choice, config, env, load) : createAdapter(choice, config, env);
}

async function choose(
  config: Config,
  env: Environment,
  named: (choice: CliChoice | FileChoice) => Promise<NamedAdapter>,
): Promise<ChosenClis> {
  const [first, ...others] = config.clis;
  if (first !== undefined) {
    const choices = new Map(config.clis.map((choice) => [choice.name, choice as CliChoice | FileChoice]));
    return { clis: [await named(first), ...(await Promise.all(others.map(named)))], warnings: [], choices };
  }
  const kind = await chooseKind(config, searchPathOf(env));
  const warnings = config.cli === 'auto' ? warningsOf(kind, config) : [];
  const choice = { name: kind, kind, command: config.cliCommand } as CliChoice | FileChoice;
  const { adapter } = await named(choice);
  const name = isAdapterFile(kind) ? adapter.name : kind;
  return { clis: [{ name, adapter }], warnings, choices: new Map([[name, choice]]) };
}

/** Returns faults of configured models that no request could use, or of a required model that is missing. */
function modelFaults(config: Config, names: ModelNames): string[] {
  const { fallback, fault } = names.choice;
  const { allowedModels } = config;
  const [{ name: first, adapter }] = names.clis;
  if (fallback === null && adapter.needsModel === true)
    return [`MODEL_API_DEFAULT_MODEL: must be set, because ${first} has no default model`];
  const faultOf = (variable: string, name: string) => {
    const wrong = fault?.(names.resolveConfigured(name)) ?? null;
    return wrong === null ? [] : [`${variable}: ${name} ${wrong}`];
  };
  // The default may come from MODEL_API_ALLOWED_MODELS; its fault is then reported under that name only.
  const isAllowedOne = config.defaultModel === null && allowedModels.length > 0;
  return [
    ...(!isAllowedOne && fallback !== null ? faultOf('MODEL_API_DEFAULT_MODEL', fallback) : []),
    ...allowedModels.flatMap((name) => faultOf('MODEL_API_ALLOWED_MODELS', name)),
  ];
}

/** Returns faults of rules for fallbacks, with a model that no request could use or with an unknown account. */
function fallbackFaults({ fallbacks }: Config, names: ModelNames, { accounts, closed }: PreparedAccounts): string[] {
  const models = fallbacks.flatMap((rule) => [{ name: rule.model, account: null }, ...rule.fallbacks]);
  return models.flatMap(({ name, account }) => {
    const { cli } = names.split(name);
    const isPrepared = accounts.some((each) => each.cli === cli.name && each.line.name === account);
    const isKnown = account === null || isPrepared || closed.some((each) => each.name === account);
    const wrong = isKnown ? whyNot(name, names) : `has no account ${account} (MODEL_API_ACCOUNTS_FILE)`;
    return wrong === null ? [] : [`MODEL_API_FALLBACKS: ${name} ${wrong}`];
  });
}

/** Returns faults of aliases whose target no request could use. */
function aliasFaults({ modelAliases }: Config, names: ModelNames): string[] {
  return modelAliases.flatMap(({ name, target }) => {
    const isAlias = modelAliases.some((other) => other.name === target) && !names.isModel(target);
    const wrong = isAlias ? 'is an alias, too: use its model instead' : whyNot(target, names);
    return wrong === null ? [] : [`MODEL_API_MODEL_ALIASES: ${target}, which ${name} stands for, ${wrong}`];
  });
}

/** Returns why a request for this model would be refused; null if no fault is known. */
function whyNot(target: string, names: ModelNames): string | null {
  try {
    modelFor(target === defaultModelName ? target : names.resolveConfigured(target), names.choice);
    return null;
  } catch (error) {
    return toRelayError(error).details?.[0]?.message ?? null;
  }
}

function idleAliases({ modelAliases }: Config, names: ModelNames): string[] {
  const idle = modelAliases.filter(({ name }) => names.isModel(name));
  return idle.map(({ name }) => `MODEL_API_MODEL_ALIASES: ${name} is the name of a model, so it cannot be an alias`);
}

function isFileChoice(choice: CliChoice | FileChoice): choice is FileChoice {
  return isAdapterFile(choice.kind);
}

async function adapterOfFile(
  { kind: path, command }: FileChoice,
  config: Config,
  env: Environment,
  load: LoadModule,
): Promise<Adapter> {
  const givenVariables = launchEnv(env, config.cliEnv, { variable: null, value: null });
  const { fileAdapter } = loadPart<typeof import('../../../features/file/adapter.js')>('../../../features/file/adapter.js');
  const { adapterKit } = loadPart<typeof import('../../../features/file/kit.js')>('../../../features/file/kit.js');
  const options = { command, extraArgs: config.cliArgs, env: givenVariables, kit: adapterKit };
  try {
    return fileAdapter(await load(path), options);
  } catch (error) {
    const variable = config.clis.length > 0 ? 'MODEL_API_CLIS' : 'MODEL_API_CLI';
    throw new ConfigFault([`${variable}: ${path}: ${(error as Error).message}`]);
  }
}

/**
 * Returns the kind of the CLI. `auto` means claude, or the demo if claude is not installed; never the demo on a
 * production host or with a configured program.
 */
export async function chooseKind(config: Config, searchPath: string): Promise<AdapterKind | AdapterFile> {
  if (config.cli !== 'auto') return config.cli;
  if (config.production || config.cliCommand !== null) return 'claude';
  const found = await findProgram('claude', searchPath);
  return found.kind === 'found' ? 'claude' : 'demo';
}

/**
 * Loads the file of an adapter when it is needed. Uses `require`, because `import()` would require tests that are ES
 * modules.
 */
function loadPart<Part>(path: string): Part {
  return require(path);
}

/**
 * Creates an adapter; the only place that knows adapters by name. Loads only the file that is needed, because each
 * costs about 1 MB of memory.
 */
export async function createAdapter({ kind, command }: CliChoice, config: Config, env: Environment): Promise<Adapter> {
  const extraArgs = config.cliArgs;
  const givenVariables = launchEnv(env, config.cliEnv, { variable: null, value: null });
  switch (kind) {
    case 'claude': {
      const { claudeAdapter } = loadPart<typeof import('./claude/adapter.js')>('./claude/adapter.js');
      const hasToken = config.oauthToken !== null;
      return claudeAdapter(command ?? ['claude'], { extraArgs, givenVariables, hasToken, hostFault: managedFault });
    }
    case 'codex': {
      const { codexAdapter } = loadPart<typeof import('../../../features/codex/adapter.js')>('../../../features/codex/adapter.js');
      return codexAdapter(command ?? ['codex'], { extraArgs, givenVariables });
    }
    case 'command': {
      const { commandAdapter } = loadPart<typeof import('../../../features/command/adapter.js')>('../../../features/command/adapter.js');
      const words = command ?? [''];
      // With several CLIs, the name may begin with the name of a CLI.
      const defaultModel = config.clis.length > 0 ? null : config.defaultModel;
      return commandAdapter(words, { extraArgs, ...commandModel(words, extraArgs, defaultModel) });
    }
    case 'demo': {
      const { demoAdapter } = loadPart<typeof import('../../../features/demo/adapter.js')>('../../../features/demo/adapter.js');
      return demoAdapter(command ?? [process.execPath, demoProgram]);
    }
    default: {
      const { acpAdapter } = loadPart<typeof import('../../../features/acp/adapter.js')>('../../../features/acp/adapter.js');
      const { presetOf } = loadPart<typeof import('../../../features/acp/presets.js')>('../../../features/acp/presets.js');
      const providers = kind === 'opencode' ? await namedProviders(config, env) : new Set<string>();
      const agentSettings = {
        extraArgs,
        givenVariables,
        homeFiles: config.cliHomeFiles,
        mayHaveTools: config.tools === 'on',
      };
      return acpAdapter(kind, presetOf(kind, providers), command, agentSettings);
    }
  }
}

function warningsOf(kind: AdapterKind | AdapterFile, { cliCommand }: Config): string[] {
  if (kind === 'demo') return [demoWarning];
  const [program = 'claude'] = cliCommand ?? [];
  const isNamedOtherwise = !basename(program).includes('claude');
  return isNamedOtherwise
    ? [`${basename(program)} is run as claude: for another program, set MODEL_API_CLI=command.`]
    : [];
}

/** File with the logins of opencode's providers, below HOME. */
const logins = '.local/share/opencode/auth.json';
/** Variable with the key of opencode's provider. */
const ownKey = 'OPENCODE_API_KEY';

/**
 * Returns the providers that the operator has configured for opencode, by a model, a login or a key. Opencode also
 * offers free models of its provider without login, to which prompts must not go unintentionally.
 */
async function namedProviders(config: Config, env: Environment): Promise<ReadonlySet<string>> {
  const { defaultModel, allowedModels, modelAliases, fallbacks, apiKeys, namedKeys, personLines, clis, cliEnv } =
    config;
  const keyModels = [...apiKeys, ...namedKeys, ...personLines].flatMap(({ models }) => models ?? []);
  const targets = modelAliases.map(({ target }) => target);
  const ruleModels = fallbacks.flatMap((rule) => [rule.model, ...rule.fallbacks.map(({ name }) => name)]);
  const configured = [...allowedModels, ...targets, ...keyModels, ...ruleModels];
  const models = [...(defaultModel === null ? [] : [defaultModel]), ...configured];
  const names = clis.map(({ name }) => name);
  const hasKey = cliEnv.includes(ownKey) && Boolean(env[ownKey]);
  const loggedIn = env.HOME === undefined ? [] : await providersIn(join(env.HOME, logins));
  return new Set([
    ...models.flatMap((model) => providerOf(model, names)),
    ...loggedIn,
    ...(hasKey ? ['opencode'] : []),
  ]);
}

/** Returns the provider in a model's name. With several CLIs, a CLI's name may precede it. */
function providerOf(model: string, clis: readonly string[]): string[] {
  const parts = model.split('/');
  const modelParts = clis.includes(parts[0] ?? '') ? parts.slice(1) : parts;
  return modelParts.length > 1 ? modelParts.slice(0, 1) : [];
}

async function providersIn(path: string): Promise<string[]> {
  try {
    const known: unknown = JSON.parse(await readFile(path, 'utf8'));
    return typeof known === 'object' && known !== null ? Object.keys(known) : [];
  } catch {
    return []; // the file is missing, or unreadable for opencode too
  }
}

/** Owner and mode of a file. */
interface FileFacts {
  readonly uid: number;
  readonly mode: number;
}

const writableByOthers = 0o022;
const sticky = 0o1000;

/**
 * Loads a file whose code runs as the service. Rejects with a description of the fault unless the file belongs to root
 * or the service user, and no other user can write or replace it.
 */
export async function importAdapterModule(
  path: string,
  importModule: (path: string) => Promise<unknown> = importFile,
): Promise<unknown> {
  const file = await realpath(path);
  const uid = process.geteuid?.() ?? 0;
  const facts = await stat(file);
  if (!facts.isFile()) throw new Error('is not a file');
  if (!isTrustedOwner(facts, uid)) throw new Error('must belong to root or to the user of the service: chown it');
  if ((facts.mode & writableByOthers) !== 0) throw new Error('can be written by other users: chmod go-w it');
  for (const folder of foldersAbove(file)) {
    const isSafe = isSafeFolder(await stat(folder), uid);
    if (!isSafe) throw new Error(`can be replaced by other users, who can write to ${folder}`);
  }
  return importModule(file).catch((error: unknown) => {
    throw new Error(`cannot be loaded: ${error instanceof Error ? error.message : String(error)}`);
  });
}

/**
 * Time limit for loading a file. While a file awaits a promise that never settles, nothing keeps the service running,
 * and it would exit silently.
 */
const loadLimitMs = 10_000;

/** Returns a loader like `importAdapterModule`, with a time limit. */
export function adapterLoader(clock: Clock, load: (path: string) => Promise<unknown> = importAdapterModule) {
  return (path: string): Promise<unknown> =>
    new Promise((resolve, reject) => {
      const late = new Error(`cannot be loaded: it takes longer than ${loadLimitMs} ms`);
      const stopTimer = clock.after(loadLimitMs, () => reject(late));
      load(path).then(resolve, reject).finally(stopTimer);
    });
}

function importFile(path: string): Promise<unknown> {
  return import(pathToFileURL(path).href);
}

function isTrustedOwner({ uid }: FileFacts, serviceUid: number): boolean {
  return uid === 0 || uid === serviceUid;
}

/** Whether other users cannot replace a file in the folder. In a sticky folder, only its owner can. */
function isSafeFolder(facts: FileFacts, serviceUid: number): boolean {
  return isTrustedOwner(facts, serviceUid) && ((facts.mode & writableByOthers) === 0 || (facts.mode & sticky) !== 0);
}

function foldersAbove(path: string): string[] {
  const folder = dirname(path);
  return folder === path ? [] : [folder, ...foldersAbove(folder)];
}
