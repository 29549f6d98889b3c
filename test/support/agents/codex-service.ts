import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type Service, type ServiceOptions, startService, twoWorkers } from '../service/service.js';
import { cacheFor, installOnce, npmInstall } from './install-once.js';
import type { ResponsesApi } from './responses-api-stub.js';

/** Returns the arguments that point codex to this stub, with an API key or with the login. */
export function toStub(url: string, by: 'key' | 'login' = 'key'): readonly string[] {
  const credential = by === 'key' ? 'env_key="STUB_KEY",requires_openai_auth=false' : 'requires_openai_auth=true';
  const settings = `name="stub",base_url="${url}",wire_api="responses",${credential}`;
  return ['-c', 'model_provider="stub"', '-c', `model_providers.stub={${settings}}`];
}

export const stubKey = { STUB_KEY: 'a-key-of-the-stub' };

/** Starts a service with the real codex, and this stub as its API. `env` overrides all other variables. */
export async function startWithCodex(api: ResponsesApi, { env, ...options }: ServiceOptions = {}): Promise<Service> {
  return startService({
    ...options,
    env: {
      ...twoWorkers,
      MODEL_API_CLI: 'codex',
      MODEL_API_CLI_COMMAND: `'${await installCodex()}'`,
      MODEL_API_CLI_ARGS: toStub(api.url)
        .map((word) => `'${word}'`)
        .join(' '),
      MODEL_API_CLI_ENV: Object.keys(stubKey).join(','),
      ...stubKey,
      ...env,
    },
  });
}

/** Newest version on npm when this was written. */
export const codexVersion = '0.171.0';

/** Returns the path of the real codex program (400 MB), installed with npm if missing. */
export async function installCodex(version = codexVersion): Promise<string> {
  const folder = await installOnce(cacheFor('codex'), version, (building) =>
    npmInstall(building, `@openai/codex@${version}`),
  );
  return programIn(folder);
}

/** Finds the program in the platform's package: `codex` itself is only a script that starts it. */
async function programIn(folder: string): Promise<string> {
  const scope = join(folder, 'node_modules', '@openai');
  const platform = (await readdir(scope)).find((name) => name.startsWith('codex-'));
  if (platform === undefined) throw new Error(`npm installed no codex program for this platform in ${folder}`);
  const vendor = join(scope, platform, 'vendor');
  const [target = ''] = await readdir(vendor);
  return join(vendor, target, 'bin', 'codex');
}
