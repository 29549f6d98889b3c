import { basename } from 'node:path';
import type { Clock } from '../../../shared/clock.js';
import { claudeFamily, familyOf } from '../../../shared/config/clis.js';
import { type Config, ConfigFault, type Environment } from '../../../shared/config/config.js';
import { applicableLines } from '../../../shared/config/keys-file.js';
import { defaultModelName } from '../../../shared/config/values.js';
import { toRelayError } from '../../../shared/errors.js';
import type { Adapter } from '../contract/adapter.js';
import type { AdapterFamily, CliChoice } from '../contract/adapter-family.js';
import { sharedLoginWarnings } from '../login/shared-home.js';
import type { LoginProvider, LoginSettings, LoginSource } from '../logins.js';
import {
  type AtLeastOne,
  type ConfiguredModels,
  type ModelsCheck,
  modelFor,
  mustBeOneOf,
  type NamedAdapter,
} from '../models.js';
import { launchEnv } from '../process/launcher.js';
import { findProgram, searchPathOf } from '../process/program.js';
import { ModelNames } from '../route.js';
import { hostSettings, managedFault } from './host-settings.js';

/** Where the adapters come from: the core, and these features. */
export interface AdapterSources {
  readonly clock: Clock;
  readonly features: readonly ({ readonly clis?: AdapterFamily; loadLogins?(): LoginProvider } & ModelsCheck)[];
}

export interface AdapterChoice {
  /** Further logins of the CLIs; null if no feature adds any. */
  readonly loginSource: LoginSource | null;
  /** Model CLIs, and the meaning of model names. */
  readonly names: ModelNames;
  /** Hints for the operator about the choice. */
  readonly warnings: readonly string[];
  /** Faults of lines in the keys file and of further logins. The service refuses these lines. */
  readonly lineFaults: readonly string[];
}

/** Adapter of the core. */
const claude: AdapterFamily = {
  ...claudeFamily,
  loadAdapters: () => {
    // `import()` would require tests that are ES modules
    const { claudeAdapter } = require('./claude/adapter.js') as typeof import('./claude/adapter.js');
    return ({ command }, { config, givenVariables }) => {
      const options = { extraArgs: config.cliArgs, givenVariables, hasToken: config.oauthToken !== null };
      return claudeAdapter(command ?? ['claude'], { ...options, hostFault: managedFault });
    };
  },
};

function adapterFamilies({ features }: AdapterSources): readonly AdapterFamily[] {
  return [claude, ...features.flatMap(({ clis }) => clis ?? [])];
}

/**
 * Creates the adapters of the configuration. `env` is the environment of the service. Rejects with a ConfigFault for a
 * faulty adapter or unusable models.
 */
export async function chooseAdapters(
  config: Config,
  env: Environment,
  sources: AdapterSources,
): Promise<AdapterChoice> {
  const named = async (choice: CliChoice): Promise<NamedAdapter> => {
    const adapter = await createAdapter(choice, config, env, sources);
    return { name: choice.name, adapter };
  };
  const { clis, warnings, choices } = await choose(config, env, adapterFamilies(sources), named);
  const names = new ModelNames(config, clis);
  const create: LoginSettings['create'] = (name, ...settings) => {
    const choice = choices.get(name);
    if (choice === undefined) throw new Error('the model CLI is unknown');
    return createAdapter(choice, ...settings, sources);
  };
  const provider = loginProviderOf(sources.features);
  const loginSource = (await provider?.open(config.featureValues, { config, env, clis, create })) ?? null;
  const models = configuredModels(names, loginSource);
  const ruleFaults = sources.features.flatMap((each) => each.findModelFaults?.(config.featureValues, models) ?? []);
  const faults = [...modelFaults(config, names), ...aliasFaults(config, names), ...ruleFaults];
  if (faults.length > 0) throw new ConfigFault(faults, warnings);
  const shared = await sharedLoginWarnings(names.clis, env);
  const otherWarnings = [...(await hostWarnings(clis)), ...idleAliases(config, names), ...shared];
  const lineFaults = [
    ...applicableLines(config, names.reportCosts).faults.map((fault) => `MODEL_API_KEYS_FILE: ${fault}`),
    ...(loginSource?.lineFaults ?? []),
  ];
  return { names, loginSource, warnings: [...warnings, ...otherWarnings], lineFaults };
}

/** Returns warnings about settings of the host that apply to jobs. */
async function hostWarnings(clis: readonly NamedAdapter[]): Promise<string[]> {
  const adapters = new Map(clis.map(({ adapter }) => [adapter.name, adapter]));
  return (await Promise.all([...adapters.values()].map(hostSettings))).flat();
}

interface ChosenClis {
  readonly clis: AtLeastOne<NamedAdapter>;
  readonly warnings: readonly string[];
  /** How each CLI was chosen, by its name. */
  readonly choices: ReadonlyMap<string, CliChoice>;
}

async function choose(
  config: Config,
  env: Environment,
  families: readonly AdapterFamily[],
  named: (choice: CliChoice) => Promise<NamedAdapter>,
): Promise<ChosenClis> {
  const [first, ...others] = config.clis;
  if (first !== undefined) {
    const choices = new Map(config.clis.map((choice) => [choice.name, choice]));
    return { clis: [await named(first), ...(await Promise.all(others.map(named)))], warnings: [], choices };
  }
  const { kind, warnings } =
    config.cli === 'auto'
      ? await chooseDefault(config, searchPathOf(env), families)
      : { kind: config.cli, warnings: [] };
  const choice = { name: kind, kind, command: config.cliCommand };
  const { adapter } = await named(choice);
  const { name } = adapter;
  return { clis: [{ name, adapter }], warnings, choices: new Map([[name, choice]]) };
}

/**
 * Returns the default kind of CLI: claude, or the stand-in of a feature if claude is not installed. Never a stand-in on a
 * production host or with a configured program.
 */
async function chooseDefault(
  { production, cliCommand }: Config,
  searchPath: string,
  families: readonly AdapterFamily[],
): Promise<{ readonly kind: string; readonly warnings: readonly string[] }> {
  if (cliCommand !== null) return { kind: 'claude', warnings: otherProgram(cliCommand[0], families) };
  const isInstalled = production || (await findProgram('claude', searchPath)).kind === 'found';
  if (isInstalled) return { kind: 'claude', warnings: [] };
  const standIn = families.map((family) => family.standIn).find((each) => each !== undefined);
  return standIn === undefined
    ? { kind: 'claude', warnings: ['no claude on PATH: install claude, or set MODEL_API_CLI.'] }
    : { kind: standIn.kind, warnings: [standIn.warning] };
}

/** Returns a warning if the program seems to be no claude. */
function otherProgram(path: string, families: readonly AdapterFamily[]): string[] {
  const program = basename(path);
  if (program.includes('claude')) return [];
  const [kind] = families.flatMap(({ anyProgram }) => anyProgram ?? []);
  const advice = kind === undefined ? '' : `: for another program, set MODEL_API_CLI=${kind}`;
  return [`${program} is run as claude${advice}.`];
}

/**
 * Returns faults of configured models that no request could use, or of a required model that is missing. A single CLI may
 * have more models than it lists, so only its default is checked, and only if the operator has named the CLI.
 */
function modelFaults(config: Config, names: ModelNames): string[] {
  const { fallback, fault } = names.choice;
  const { allowedModels } = config;
  const [{ name: first, adapter }] = names.clis;
  if (fallback === null && adapter.needsModel === true)
    return [`MODEL_API_DEFAULT_MODEL: must be set, because ${first} has no default model`];
  const isChosen = config.clis.length > 0 || config.cli !== 'auto';
  const listed = isChosen ? adapter.models : null;
  const unlisted = (name: string) =>
    listed === null || listed.includes(name) ? null : `${mustBeOneOf} ${listed.join(', ')}`;
  const faultOf = (variable: string, name: string) => {
    const wrong = (fault ?? unlisted)(names.resolveConfigured(name));
    return wrong === null ? [] : [`${variable}: ${name} ${wrong}`];
  };
  // The default may come from MODEL_API_ALLOWED_MODELS; its fault is then reported under that name only.
  const isAllowedOne = config.defaultModel === null && allowedModels.length > 0;
  return [
    ...(!isAllowedOne && fallback !== null ? faultOf('MODEL_API_DEFAULT_MODEL', fallback) : []),
    ...(fault === undefined ? [] : allowedModels.flatMap((name) => faultOf('MODEL_API_ALLOWED_MODELS', name))),
  ];
}

function configuredModels(names: ModelNames, source: LoginSource | null): ConfiguredModels {
  const accountFault = (name: string, account: string) =>
    source === null ? `has no account ${account}` : source.findFault(names.split(name).cli.name, account);
  return {
    faultOf: (name, account) => (account === null ? null : accountFault(name, account)) ?? whyNot(name, names),
  };
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

/** Returns the first feature's part that adds logins; null without one. */
export function loginProviderOf(features: AdapterSources['features']): LoginProvider | null {
  return features.find(({ loadLogins }) => loadLogins !== undefined)?.loadLogins?.() ?? null;
}

/** Creates the adapter of a CLI, also for an account of it, which has another environment. */
export async function createAdapter(
  choice: CliChoice,
  config: Config,
  env: Environment,
  sources: AdapterSources,
): Promise<Adapter> {
  const family = familyOf(choice.kind, adapterFamilies(sources));
  if (family === undefined) throw new Error(`the model CLI ${choice.kind} is unknown`);
  const givenVariables = launchEnv(env, config.cliEnv, { variable: null, value: null });
  return family.loadAdapters()(choice, { config, env, givenVariables, clock: sources.clock });
}
