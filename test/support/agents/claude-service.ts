import { access, constants, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type Service, type ServiceOptions, startService, twoWorkers } from '../service/service.js';
import { cacheFor, installOnce, npmInstall } from './install-once.js';
import type { MessagesApi } from './messages-api-stub.js';

/** Starts a service with the real claude, and this stub as its API. `env` overrides all other variables. */
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

/** Newest version on npm when this was written. */
const newest = '2.1.332';

/** Version under test; the table of suites sets others. */
export const claudeVersion = process.env.TESTED_CLAUDE ?? newest;

/** Returns the path of the real claude program (235 MB, not under a free licence), installed with npm if missing. */
export async function installClaude(version = claudeVersion): Promise<string> {
  const folder = await installOnce(cacheFor('claude-code'), version, (building) =>
    npmInstall(building, `@anthropic-ai/claude-code@${version}`),
  );
  const installed = await programIn(folder);
  if (installed === null) throw new Error(`npm installed no claude program for this platform in ${folder}`);
  return installed;
}

async function programIn(folder: string): Promise<string | null> {
  const scope = join(folder, 'node_modules', '@anthropic-ai');
  const packages = await readdir(scope).catch(() => []);
  for (const name of packages.filter((each) => each.startsWith('claude-code-'))) {
    const program = join(scope, name, 'claude');
    if (await isExecutable(program)) return program;
  }
  return null;
}

function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}
