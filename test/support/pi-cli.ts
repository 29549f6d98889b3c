import { chmod, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cacheFor, installOnce, npmInstall } from './install-once.js';
import { installNode } from './other-nodes.js';

/** The newest of both that npm could install together when this was written. */
const packages = ['pi-acp@0.0.34', '@earendil-works/pi-coding-agent@0.87.1'] as const;
const nodeVersion = '24';

/** The coding agent pi behind its adapter for the Agent Client Protocol, which both need a newer Node than the service. */
export interface Pi {
  /** The command line of the adapter. */
  readonly command: string;
  /** Folders in which the adapter finds Node and pi. */
  readonly path: string;
}

export async function installPi(): Promise<Pi> {
  const folder = await installOnce(cacheFor('pi'), packages.map((name) => name.replaceAll('/', '-')).join('+'), fill);
  const node = await installNode(nodeVersion);
  const adapter = join(folder, 'node_modules', 'pi-acp', 'dist', 'index.js');
  return { command: `'${join(node, 'node')}' '${adapter}'`, path: `${node}:${join(folder, 'bin')}` };
}

async function fill(building: string): Promise<void> {
  await npmInstall(building, ...packages);
  await symlink(join('node_modules', '.bin'), join(building, 'bin'));
}

/** A script that starts pi without its tools, as docs/clis.md has it. */
export async function writeQuietPi(folder: string): Promise<string> {
  const path = join(folder, 'quiet-pi');
  await writeFile(path, '#!/bin/sh\nexec pi --no-tools --no-extensions --no-skills --no-context-files "$@"\n');
  await chmod(path, 0o755);
  return path;
}
