import type { Config, Environment } from '../../shared/config/config.js';
import type { Secret } from './process/redactor.js';

/** What a model CLI is handed over, or what the service knows beside it, and what nobody is told. */
export function secretsOf(
  env: Environment,
  { cliEnv, oauthToken, store }: Pick<Config, 'cliEnv' | 'oauthToken' | 'store'>,
): Secret[] {
  const values: (readonly [name: string, value: string | null | undefined])[] = [
    ['MODEL_CODE_OAUTH_TOKEN', oauthToken],
    ['MODEL_API_STORE', store.kind === 'redis' ? store.password : null],
    ...cliEnv.map((name) => [name, env[name]] as const),
  ];
  return values.flatMap(([name, value]) => (value == null ? [] : [{ name, value }]));
}

/** Besides PATH, a model CLI gets these variables of the service's own environment, and no other. */
const allowed = ['HOME', 'LANG', 'TZ'];

const fallbackPath = '/usr/local/bin:/usr/bin:/bin';

/** Where programs are looked for. With an empty PATH, that would be the folder in which the service was started. */
export function searchPathOf(env: Environment): string {
  return env.PATH || fallbackPath;
}

/** The environment of every CLI process, before its adapter adds to it. `further`: names that the operator allows. */
export function launchEnv(
  env: Environment,
  further: readonly string[],
  credential: { readonly variable: string | null; readonly value: string | null },
): Readonly<Record<string, string>> {
  const chosen: Record<string, string> = {};
  for (const name of [...allowed, ...further]) {
    const value = env[name];
    if (value !== undefined) chosen[name] = value;
  }
  chosen.PATH = searchPathOf(env);
  if (credential.variable !== null && credential.value !== null) chosen[credential.variable] = credential.value;
  return Object.freeze(chosen);
}
