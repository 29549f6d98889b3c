import { chmod, copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Service, type ServiceOptions, startService } from './service.js';
import { root } from './sources.js';

/** Starts a service with the example of docs/adapters.md; `args` are those of its agent. */
export type StartJay = (args?: string, options?: ServiceOptions) => Promise<Service>;

/** A checkout may be writable by a group: what is started is a copy in this folder, which is not. */
export async function jayFrom(folder: string): Promise<StartJay> {
  const examples = join(root, 'docs', 'examples');
  const adapter = join(folder, 'jay-adapter.cjs');
  await copyFile(join(examples, 'jay-adapter.cjs'), adapter);
  await chmod(adapter, 0o644);
  const agent = `'${process.execPath}' '${join(examples, 'jay-agent.cjs')}'`;
  return (args = '', { env, ...options } = {}) => {
    const jay = { MODEL_API_CLI: adapter, MODEL_API_CLI_COMMAND: `${agent} ${args}` };
    return startService({ env: { ...jay, ...env }, ...options });
  };
}
