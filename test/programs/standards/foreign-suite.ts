import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { cacheFor, installNode, installOnce, npmInstall } from '../../support/agents/install-once.js';

/** Node for suites that need a newer version than the service. */
const nodeVersion = '24.21.0';

/** Packages of npm, in the tested versions. */
export const packages = {
  attw: { name: '@arethetypeswrong/cli', version: '0.18.5', program: 'dist/index.js' },
  knip: { name: 'knip', version: '6.44.2', program: 'bin/knip.js' },
  mcp: { name: '@modelcontextprotocol/conformance', version: '0.2.0-alpha.12', program: 'dist/index.js' },
  publint: { name: 'publint', version: '0.3.25', program: 'src/cli.js' },
  redocly: { name: '@redocly/cli', version: '2.77.0', program: 'bin/cli.js' },
  spectral: { name: '@stoplight/spectral-cli', version: '6.16.3', program: 'dist/index.js' },
} as const;

const limitMs = 60_000;
const maxBytes = 64 * 1024 ** 2;
/** Disables the usage reports and update checks of the suites. */
const silence = { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true', SCARF_ANALYTICS: 'false' };

/** Runs the program of a package with these arguments. Returns its output, whether or not it finds faults. */
export async function runSuite(suite: keyof typeof packages, cwd: string, args: readonly string[]): Promise<string> {
  const { name, version, program } = packages[suite];
  const folder = await installOnce(cacheFor('standards'), `${suite}-${version}`, (building) =>
    npmInstall(building, `${name}@${version}`),
  );
  const node = join(await installNode(nodeVersion), 'node');
  const options = { cwd, env: { ...process.env, ...silence }, timeout: limitMs, maxBuffer: maxBytes };
  return new Promise((resolve, reject) => {
    execFile(node, [join(folder, 'node_modules', name, program), ...args], options, (error, stdout, stderr) => {
      if (error !== null && typeof error.code !== 'number') return reject(error);
      if (stdout === '') return reject(new Error(`${name} prints nothing: ${stderr}`));
      resolve(stdout);
    });
  });
}
