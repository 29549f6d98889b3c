import { installClaude } from './claude-cli.js';
import type { MessagesApi } from './messages-api-stub.js';
import { type Service, type ServiceOptions, startService, twoWorkers } from './service.js';

/** A service whose model CLI is the real claude, with this stub as its API. `env` comes last. */
export async function startWithClaude(api: MessagesApi, { env, ...options }: ServiceOptions = {}): Promise<Service> {
  return startService({
    ...options,
    env: {
      ...twoWorkers,
      MODEL_API_CLI: 'claude',
      MODEL_API_CLI_COMMAND: `'${await installClaude()}'`,
      MODEL_API_CLI_ENV: 'ANTHROPIC_BASE_URL,ANTHROPIC_API_KEY',
      ANTHROPIC_BASE_URL: api.url,
      ANTHROPIC_API_KEY: 'sk-ant-test',
      ...env,
    },
  });
}
