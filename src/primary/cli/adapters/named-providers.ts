import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config, Environment } from '../../../shared/config/config.js';

/** Where opencode keeps the logins of its providers, below HOME. */
const logins = '.local/share/opencode/auth.json';
/** The key of opencode's own provider. */
const ownKey = 'OPENCODE_API_KEY';

/**
 * The providers that the operator has named for opencode: by a model, by a login or by a key. Opencode also offers free
 * models of its own provider to everybody, and prompts would go there.
 */
export async function namedProviders(config: Config, env: Environment): Promise<ReadonlySet<string>> {
  const { defaultModel, allowedModels, modelAliases, apiKeys, namedKeys, clis, cliEnv } = config;
  const ofKeys = [...apiKeys, ...namedKeys].flatMap(({ models }) => models ?? []);
  const targets = modelAliases.map(({ target }) => target);
  const models = [...(defaultModel === null ? [] : [defaultModel]), ...allowedModels, ...targets, ...ofKeys];
  const names = clis.map(({ name }) => name);
  const hasKey = cliEnv.includes(ownKey) && Boolean(env[ownKey]);
  const loggedIn = env.HOME === undefined ? [] : await providersIn(join(env.HOME, logins));
  return new Set([
    ...models.flatMap((model) => providerOf(model, names)),
    ...loggedIn,
    ...(hasKey ? ['opencode'] : []),
  ]);
}

/** Of several CLIs, the name of one may stand before the provider. */
function providerOf(model: string, clis: readonly string[]): string[] {
  const parts = model.split('/');
  const own = clis.includes(parts[0] ?? '') ? parts.slice(1) : parts;
  return own.length > 1 ? own.slice(0, 1) : [];
}

async function providersIn(path: string): Promise<string[]> {
  try {
    const known: unknown = JSON.parse(await readFile(path, 'utf8'));
    return typeof known === 'object' && known !== null ? Object.keys(known) : [];
  } catch {
    return []; // there is none, or opencode can't read it either
  }
}
