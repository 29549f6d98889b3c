import type { Environment } from '../../shared/config/config.js';

/** What a model CLI may know of the service's own environment, beside its PATH; everything else stays here. */
const allowed = ['HOME', 'LANG', 'TZ'];

const fallbackPath = '/usr/local/bin:/usr/bin:/bin';

/** Where programs are looked for: never only in the folder that the service was started in, as with an empty PATH. */
export function searchPathOf(env: Environment): string {
  return env.PATH || fallbackPath;
}

/**
 * The environment of every CLI process, before its adapter adds to it.
 * `further` are names the operator allows; the credential goes in under the CLI's own name for it.
 */
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
