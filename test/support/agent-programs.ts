import { join } from 'node:path';
import { cacheFor, installOnce, npmInstall } from './install-once.js';

/** An agent from npm, in the newest version when this was written. */
export interface AgentPackage {
  readonly name: string;
  readonly version: string;
  /** The program in `node_modules`; one in JavaScript is run by this very node. */
  readonly program: string;
}

export const agentPackages = {
  opencode: { name: 'opencode-ai', version: '1.18.33', program: 'opencode-linux-x64/bin/opencode' },
  qwen: { name: '@qwen-code/qwen-code', version: '0.15.10', program: '@qwen-code/qwen-code/cli.js' },
} as const satisfies Readonly<Record<string, AgentPackage>>;

export type PackagedAgent = keyof typeof agentPackages;

/** The path of the program, installed with npm where it is not there yet. */
export async function installPackage(cache: string, { name, version, program }: AgentPackage): Promise<string> {
  const folder = await installOnce(cacheFor(cache), version, (building) => npmInstall(building, `${name}@${version}`));
  return join(folder, 'node_modules', program);
}

/** The command line of the agent. */
export async function installAgent(agent: PackagedAgent): Promise<string> {
  const program = await installPackage(agent, agentPackages[agent]);
  return program.endsWith('.js') ? `'${process.execPath}' '${program}'` : `'${program}'`;
}
