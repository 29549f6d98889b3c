import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { CreateCliAdapter } from '../../primary/cli/contract/adapter-family.js';
import type { Config, Environment } from '../../shared/config/config.js';
import { acpAdapter } from './adapter.js';
import { CallbackServer } from './callback-server.js';
import { presetOf } from './presets.js';
import { type AcpValues, isAgent } from './shared.js';

/** Creates the adapter of an agent. */
export const createAgent: CreateCliAdapter = async ({ kind, command }, { config, env, givenVariables, clock }) => {
  if (!isAgent(kind)) throw new Error(`${kind} is not an agent`);
  const { MODEL_API_CLI_HOME_FILES: homeFiles } = config.featureValues as AcpValues;
  const providers = kind === 'opencode' ? await namedProviders(config, env) : new Set<string>();
  const options = { extraArgs: config.cliArgs, givenVariables, homeFiles, mayHaveTools: config.tools === 'on' };
  const adapter = acpAdapter(kind, presetOf(kind, providers), command, options);
  return { ...adapter, callbacks: CallbackServer.of(clock) };
};

/** File with the logins of opencode's providers, below HOME. */
const logins = '.local/share/opencode/auth.json';
/** Variable with the key of opencode's provider. */
const ownKey = 'OPENCODE_API_KEY';

/**
 * Returns the providers that the operator has configured for opencode, by a model, a login or a key. Opencode also
 * offers free models of its provider without login, to which prompts must not go unintentionally.
 */
async function namedProviders(config: Config, env: Environment): Promise<ReadonlySet<string>> {
  const { defaultModel, allowedModels, modelAliases, featureModels, apiKeys, namedKeys, personLines, clis, cliEnv } =
    config;
  const keyModels = [...apiKeys, ...namedKeys, ...personLines].flatMap(({ models }) => models ?? []);
  const targets = modelAliases.map(({ target }) => target);
  const configured = [...allowedModels, ...targets, ...keyModels, ...featureModels];
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
