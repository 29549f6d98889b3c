import { join } from 'node:path';
import { type Service, type ServiceOptions, startService, twoWorkers } from '../service/service.js';
import type { GeminiApi } from './gemini-api-stub.js';
import { cacheFor, installOnce, npmInstall } from './install-once.js';

/** Starts a service with the real gemini, and this stub as its API. `env` overrides all other variables. */
export async function startWithGemini(api: GeminiApi, { env, ...options }: ServiceOptions = {}): Promise<Service> {
  const [node, program] = await installGemini();
  return startService({
    ...options,
    env: {
      ...twoWorkers,
      MODEL_API_CLI: 'gemini',
      MODEL_API_CLI_COMMAND: `'${node}' '${program}'`,
      MODEL_API_CLI_ENV: 'GOOGLE_GEMINI_BASE_URL,GEMINI_API_KEY',
      GOOGLE_GEMINI_BASE_URL: api.url,
      GEMINI_API_KEY: 'key-of-the-test',
      ...env,
    },
  });
}

/** Newest version on npm when this was written. */
export const geminiVersion = '0.61.0';

/** Returns the command line of the real gemini program (115 MB), installed with npm if missing. */
export async function installGemini(): Promise<readonly [node: string, program: string]> {
  const folder = await installOnce(cacheFor('gemini-cli'), geminiVersion, (building) =>
    npmInstall(building, '--omit=optional', `@google/gemini-cli@${geminiVersion}`),
  );
  return [process.execPath, join(folder, 'node_modules', '@google', 'gemini-cli', 'bundle', 'gemini.js')];
}
