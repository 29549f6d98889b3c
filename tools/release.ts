import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { z } from 'zod';

const usage = `Usage: npm run release [-- OPTION...]
Writes the version, its date, the description of the API, the manual and the pictures, commits them, builds the packages, and sets the tag. It publishes nothing.
  --version VERSION     another version than that of package.json
  --output FOLDER       where the packages go (dist/release)
  --no-pictures         keeps the pictures, where there is no Chromium
  --compression TYPE    of the Debian packages: xz, or none, which is fast
`;

const root = join(__dirname, '..', '..');
const manifest = z.object({ version: z.string().regex(/^\d+\.\d+\.\d+$/) });
const unreleased = /^## \[([^\]]+)\] – not yet released$/m;

/** Runs a program after the build, such as `npm run NAME`, and shows its output. */
async function run(program: string, ...args: string[]): Promise<void> {
  process.stderr.write(`+ ${[program, ...args].join(' ')}\n`);
  const [code] = await once(spawn(program, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] }), 'exit');
  if (code !== 0) throw new Error(`${program} ${args[0]} has failed`);
}

async function read(program: string, ...args: string[]): Promise<string> {
  return (await promisify(execFile)(program, args, { cwd: root, maxBuffer: 64 * 1024 ** 2 })).stdout.trim();
}

const tool = (name: string, ...args: string[]) => run(process.execPath, join('dist', 'tools', `${name}.js`), ...args);

async function main(args: readonly string[]): Promise<void> {
  const text = { type: 'string' } as const;
  const pictures = { type: 'boolean', default: true } as const;
  const options = { version: text, output: text, compression: text, pictures } as const;
  const { values } = parseArgs({ args: [...args], options, allowNegative: true });
  const { version } = manifest.parse({
    version: values.version ?? manifest.parse(JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))).version,
  });
  await checkTree(version);
  try {
    await writeVersion(version);
    if (values.pictures) await tool('pictures');
  } catch (error) {
    throw new Error(`${(error as Error).message}. Nothing is committed: "git restore ." takes the changes back`);
  }
  await run('git', 'commit', '--all', '--quiet', '--allow-empty', '--message', `Release ${version}`);
  const output = values.output ?? join('dist', 'release');
  await buildPackages(version, output, values.compression ?? 'xz').catch((error: Error) => {
    throw new Error(
      `${error.message}. The version is committed without a tag: "git reset --hard HEAD~1" takes it back`,
    );
  });
  await run('git', 'tag', '--annotate', `v${version}`, '--message', `prompt-relay ${version}`);
  process.stdout.write(await readFile(join(root, output, 'SHA256SUMS'), 'utf8'));
  process.stderr.write(
    `Released ${version} into ${output}. To publish it: git push --follow-tags, then upload these files.\n`,
  );
}

/** Throws if a change is not committed, if the version has a tag, or if the changelog has nothing to release. */
async function checkTree(version: string): Promise<void> {
  if ((await read('git', 'status', '--porcelain')) !== '') throw new Error('commit your changes first');
  if ((await read('git', 'tag', '--list', `v${version}`)) !== '') throw new Error(`there is a tag v${version} already`);
  if (!unreleased.test(await changelog())) throw new Error('CHANGELOG.md has no section "not yet released"');
}

function changelog(): Promise<string> {
  return readFile(join(root, 'CHANGELOG.md'), 'utf8');
}

async function writeVersion(version: string): Promise<void> {
  await read('npm', 'version', version, '--no-git-tag-version', '--allow-same-version', '--ignore-scripts');
  const date = new Date().toISOString().slice(0, 10);
  await writeFile(join(root, 'CHANGELOG.md'), (await changelog()).replace(unreleased, `## [${version}] – ${date}`));
  await tool('openapi');
  await tool('man-page');
}

async function buildPackages(version: string, output: string, compression: string): Promise<void> {
  const folder = join(root, output);
  await mkdir(folder, { recursive: true });
  if ((await readdir(folder)).length > 0) throw new Error(`${output} is not empty`);
  await run('npm', 'pack', '--ignore-scripts', '--silent', '--pack-destination', output);
  const options = ['--compression', compression, '--output', folder];
  await tool('deb', ...options);
  await tool('deb', '--all', ...options);
  const bill = await read(process.execPath, join('dist', 'tools', 'sbom.js'));
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

if (require.main === module) {
  main(process.argv.slice(2)).catch((error: NodeJS.ErrnoException) => {
    const isUsage = error.code?.startsWith('ERR_PARSE_ARGS') ?? false;
    process.stderr.write(`${isUsage ? `${error.message}\n${usage}` : `release: ${error.message}.`}\n`);
    process.exitCode = 1;
  });
}
