import { chmod, copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileAdapter } from '../../../src/features/file/adapter.js';
import { adapterKit } from '../../../src/features/file/kit.js';
import type { ProgramVersion } from '../../../src/primary/cli/contract/adapter.js';
import type { RelayError } from '../../../src/shared/errors.js';
import { root } from '../documents/sources.js';
import { type Service, type ServiceOptions, startService } from '../service/service.js';

export const example = require(join(root, 'docs', 'examples', 'jay-adapter.cjs'));
export const options = { command: ['node', 'jay.cjs'], extraArgs: ['--mood=merry'], env: {}, kit: adapterKit };
export const consult = async (args: readonly string[]) => {
  return { code: 0, stdout: args.includes('--version') ? 'jay 0.3.1\n' : '{"op":"models","models":["a","b"]}\n' };
};

/** Returns the example adapter with some parts replaced. */
export function adapterWith(parts: object): unknown {
  return { createAdapter: (given: object) => ({ ...example.createAdapter(given), ...parts }) };
}

export function faultOf(module: unknown): string {
  try {
    fileAdapter(module, options);
    return 'none';
  } catch (error) {
    return (error as Error).message;
  }
}

export function ofExample(): Promise<ProgramVersion> {
  return example.createAdapter(options).learn(consult);
}

export async function versionWith(parts: object = {}): Promise<ProgramVersion> {
  const learn = async () => ({ ...(await ofExample()), ...parts });
  return fileAdapter(adapterWith({ learn }), options).learn(consult);
}

/** Returns a protocol without output, with some parts replaced. */
export function silent({ writer = {}, decoder = {} }: { readonly writer?: object; readonly decoder?: object }) {
  const input = { text: '', stdin: 'end' };
  const nothing = () => [];
  return () => ({
    writer: { write: () => input, ...writer },
    decoder: { hasBegun: true, read: nothing, exit: nothing, ...decoder },
  });
}

/** Returns the error that the file adapter makes of a fault in its protocol. */
export async function failureOf(parts: object, act: (programVersion: ProgramVersion) => unknown): Promise<RelayError> {
  const programVersion = await versionWith(parts);
  try {
    act(programVersion);
  } catch (error) {
    return error as RelayError;
  }
  throw new Error('nothing was thrown');
}

/** Starts a service with the example of docs/adapters.md; `args` are the arguments of its agent. */
export type StartExampleAgent = (args?: string, options?: ServiceOptions) => Promise<Service>;

/** Copies the adapter into this folder first: a checkout may be writable by a group, which the service refuses. */
export async function exampleAgentIn(folder: string): Promise<StartExampleAgent> {
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
