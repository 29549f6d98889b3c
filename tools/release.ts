import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { z } from 'zod';
import { datedChangelog, newsFaults } from './changelog.js';
import { ownerFaults } from './owner.js';

const usage = `Usage: npm run release [-- OPTION...]
Writes the version, its date, the description of the API, the manual and the pictures, commits them, builds the packages, and sets the tag. It publishes nothing.
  --dry-run             checks whether a release is possible, and changes nothing
  --version VERSION     another version than that of package.json
  --output FOLDER       where the packages go (dist/release)
  --no-owner            accepts a package.json without author, bugs and repository
  --no-pictures         keeps the pictures, where there is no Chromium
  --compression TYPE    of the Debian packages: xz, or none, which is fast
`;

const manifestSchema = z.looseObject({ version: z.string() });
const options = {
  'dry-run': { type: 'boolean', default: false },
  version: { type: 'string' },
  output: { type: 'string', default: join('dist', 'release') },
  owner: { type: 'boolean', default: true },
  pictures: { type: 'boolean', default: true },
  compression: { type: 'string', default: 'xz' },
} as const;

interface Release {
  /** Folder of the checkout. */
  readonly root: string;
  readonly version: string;
  /** Folder of the packages, relative to the checkout. */
  readonly output: string;
}

/** Runs a program after the build, such as a tool, and shows its output. */
async function run(root: string, program: string, ...args: string[]): Promise<void> {
  process.stderr.write(`+ ${[program, ...args].join(' ')}\n`);
  const [code] = await once(spawn(program, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] }), 'exit');
  if (code !== 0) throw new Error(`${program} ${args[0]} has failed`);
}

async function read(root: string, program: string, ...args: string[]): Promise<string> {
  return (await promisify(execFile)(program, args, { cwd: root, maxBuffer: 64 * 1024 ** 2 })).stdout.trim();
}

function runTool(root: string, name: string, ...args: string[]): Promise<void> {
  return run(root, process.execPath, join('dist', 'tools', `${name}.js`), ...args);
}

/** Releases the checkout in `root`, or throws with all reasons why it cannot be released. Returns what it has done. */
async function release(root: string, args: readonly string[]): Promise<string> {
  const { values } = parseArgs({ args: [...args], options, allowNegative: true });
  const manifest = manifestSchema.parse(JSON.parse(await readFile(join(root, 'package.json'), 'utf8')));
  const { output, compression } = values;
  const plan: Release = { root, version: values.version ?? manifest.version, output };
  const faults = [...(await treeFaults(plan)), ...newsFaults(await changelog(root))];
  const missing = values.owner ? ownerFaults(manifest) : [];
  if (missing.length > 0)
    faults.push(`package.json must name the owner of the project: ${missing.join(', ')}; or use --no-owner`);
  if (faults.length > 0) throw new Error(faults.join('\n         '));
  if (values['dry-run']) return `Version ${plan.version} can be released. Nothing was changed.\n`;
  await commitVersion(plan, values.pictures);
  await buildPackages(plan, compression).catch((error: Error) => {
    throw new Error(
      `${error.message}. The version is committed without a tag: "git reset --hard HEAD~1" takes it back`,
    );
  });
  await run(root, 'git', 'tag', '--annotate', `v${plan.version}`, '--message', `prompt-relay ${plan.version}`);
  const sums = await readFile(resolve(root, output, 'SHA256SUMS'), 'utf8');
  return `${sums}Released ${plan.version} into ${output}. To publish it: git push --follow-tags, then upload these files.\n`;
}

/** Returns what of the version, the tree, its tags and the folder for the packages prevents a release. */
async function treeFaults({ root, version, output }: Release): Promise<string[]> {
  if (!/^\d+\.\d+\.\d+$/.test(version)) return [`the version ${version} is not of the form 1.2.3`];
  const faults: string[] = [];
  if ((await read(root, 'git', 'status', '--porcelain')) !== '') faults.push('commit your changes first');
  if ((await read(root, 'git', 'tag', '--list', `v${version}`)) !== '')
    faults.push(`there is a tag v${version} already`);
  if ((await readdir(resolve(root, output)).catch(() => [])).length > 0)
    faults.push(`the folder ${output} is not empty`);
  return faults;
}

function changelog(root: string): Promise<string> {
  return readFile(join(root, 'CHANGELOG.md'), 'utf8');
}

async function commitVersion({ root, version }: Release, hasPictures: boolean): Promise<void> {
  try {
    await read(root, 'npm', 'version', version, '--no-git-tag-version', '--allow-same-version', '--ignore-scripts');
    const date = new Date().toISOString().slice(0, 10);
    await writeFile(join(root, 'CHANGELOG.md'), datedChangelog(await changelog(root), version, date));
    await runTool(root, 'openapi');
    await runTool(root, 'man-page');
    if (hasPictures) await runTool(root, 'pictures');
  } catch (error) {
    throw new Error(`${(error as Error).message}. Nothing is committed: "git restore ." takes the changes back`);
  }
  await run(root, 'git', 'commit', '--all', '--quiet', '--allow-empty', '--message', `Release ${version}`);
}

async function buildPackages({ root, version, output }: Release, compression: string): Promise<void> {
  const folder = resolve(root, output);
  await mkdir(folder, { recursive: true });
  await run(root, 'npm', 'pack', '--ignore-scripts', '--silent', '--pack-destination', output);
  const options = ['--compression', compression, '--output', folder];
  await runTool(root, 'deb', ...options);
  await runTool(root, 'deb', '--all', ...options);
  const bill = await read(root, process.execPath, join('dist', 'tools', 'sbom.js'));
  await writeFile(join(folder, `prompt-relay-${version}.cdx.json`), `${bill}\n`);
  const names = (await readdir(folder)).sort();
  const sums = await Promise.all(
    names.map(async (name) => {
      const digest = createHash('sha256').update(await readFile(join(folder, name)));
      return `${digest.digest('hex')}  ${name}\n`;
    }),
  );
  await writeFile(join(folder, 'SHA256SUMS'), sums.join(''));
}

/** Runs the release as a program does: prints its result, or why it has failed. */
export async function runRelease(root: string, args: readonly string[]): Promise<void> {
  try {
    process.stdout.write(await release(root, args));
  } catch (thrown) {
    const error = thrown as NodeJS.ErrnoException;
    const isUsage = error.code?.startsWith('ERR_PARSE_ARGS') ?? false;
    process.stderr.write(isUsage ? `${error.message}\n${usage}` : `release: ${error.message}.\n`);
    process.exitCode = 1;
  }
}

if (require.main === module) void runRelease(join(__dirname, '..', '..'), process.argv.slice(2));
