/**
 * Compiles the service and the console (`node tools/build.mjs service`), or everything with tests and tools
 * (`node tools/build.mjs`). The service is only compiled if its files have changed since the last build of either kind.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const sources = ['src', 'package-lock.json', 'tools/browser-files.ts', 'tools/build.mjs'];
/** Scripts that Redis runs. */
const scripts = 'src/features/redis/scripts';
const settings = readdirSync('.').filter((name) => name.startsWith('tsconfig'));
/** Has the digest of the sources from which `dist` was built. Written last, so that a build that was stopped is repeated. */
const stamp = 'dist/.sources';

const kind = process.argv[2] ?? 'all';
const digest = digestOf([...sources, ...settings]);
const isCurrent = existsSync(stamp) && readFileSync(stamp, 'utf8') === digest;
if (kind === 'all') {
  process.stderr.write('Building prompt-relay with its tests and tools …\n');
  await build('dist', 'tsconfig.json');
} else if (!isCurrent) {
  process.stdout.write(
    'Building prompt-relay; this takes some seconds, and is done again only when its files change.\n',
  );
  await build('dist/src', 'tsconfig.service.json');
}

/** Compiles into `folder`, which is emptied before. Ends this process if a step fails. */
async function build(folder, project) {
  rmSync(stamp, { force: true });
  rmSync(folder, { recursive: true, force: true });
  cpSync('src/console/static', 'dist/src/console', { recursive: true });
  // A feature may be deleted.
  if (existsSync(scripts)) cpSync(scripts, join('dist', scripts), { recursive: true });
  const compiler = 'node_modules/typescript/bin/tsc';
  await Promise.all(
    ['src/console', project, 'tsconfig.types.json'].map((each) => run(compiler, '--checkers', '2', '-p', each)),
  );
  await run('dist/tools/browser-files.js');
  writeFileSync(stamp, digest);
}

async function run(...args) {
  const [code] = await once(spawn(process.execPath, args, { stdio: 'inherit' }), 'exit');
  if (code !== 0) process.exit(code ?? 1);
}

/** Returns a digest of the names, sizes and modification times of all files in these folders. */
function digestOf(paths) {
  const hash = createHash('sha256');
  for (const path of paths.flatMap(filesIn)) {
    const { size, mtimeMs } = statSync(path);
    hash.update(`${path} ${size} ${mtimeMs}\n`);
  }
  return hash.digest('hex');
}

function filesIn(path) {
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path)
    .sort()
    .flatMap((name) => filesIn(join(path, name)));
}
