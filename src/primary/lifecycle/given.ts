import { readFile, stat } from 'node:fs/promises';
import { type Config, type Environment, loadConfig } from '../../shared/config/config.js';
import { eraseFromEnviron } from '../../shared/process/environ.js';
import { type Handover, takeHandover } from './systemd.js';

/** What this process was started with. What its children must not inherit has been removed from its environment. */
export interface Given {
  readonly handover: Handover;
  readonly env: Environment;
  readonly warnings: readonly string[];
}

/** `settings` are those of the command line: they win over the environment. */
export async function takeGiven(
  own: Record<string, string | undefined>,
  pid: number,
  settings: Environment,
): Promise<Given> {
  const handover = takeHandover(own, pid);
  const env = takeSettings(own);
  const isHidden = await eraseFromEnviron(Object.keys(env).filter(isSetting));
  const holdsSecret = env.MODEL_API_KEY !== undefined || env.MODEL_CODE_OAUTH_TOKEN !== undefined;
  const warnings = isHidden || !holdsSecret ? [] : [visibleSecrets];
  return { handover, env: Object.freeze({ ...env, ...settings }), warnings };
}

const visibleSecrets =
  'the environment of this process holds a key or a token and can be read in /proc by every program of its user: ' +
  'use MODEL_API_KEY_FILE and MODEL_CODE_OAUTH_TOKEN_FILE';

/** There are credentials among our variables, perhaps under a mistyped name. Returns the environment as it was. */
export function takeSettings(env: Record<string, string | undefined>): Environment {
  const whole = Object.freeze({ ...env });
  for (const name of Object.keys(env).filter(isSetting)) delete env[name];
  return whole;
}

/** Reads the files too that the settings name. Rejects with a ConfigFault. */
export function readConfig(env: Environment): Promise<Config> {
  return loadConfig(
    env,
    (path) => readFile(path, 'utf8'),
    async (path) => (await stat(path)).mode,
  );
}

function isSetting(name: string): boolean {
  return /^MODEL_(API|CODE)_/.test(name);
}
