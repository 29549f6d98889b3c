import type { GeminiApi } from './gemini-api-stub.js';
import { installGemini } from './gemini-cli.js';
import { type Service, type ServiceOptions, startService, twoWorkers } from './service.js';

/** A service whose model CLI is the real gemini, with this stub as its API. `env` comes last. */
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
