import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { maxNewsWords } from '../../../tools/changelog.js';
import { maintainerOf, ownerFaults } from '../../../tools/owner.js';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { root } from '../../support/documents/sources.js';

const owner = {
  author: 'Ada Lovelace <ada@example.org>',
  bugs: { url: 'https://example.org/relay/issues' },
  repository: { type: 'git', url: 'git+https://example.org/relay.git' },
};
const news =
  '# Changelog\n\n## [1.2.0] – not yet released\n\n### Added\n\n- A feature.\n\n## [1.1.0] – 2026-01-31\n\nOlder.\n';
const identity = { GIT_AUTHOR_NAME: 'a', GIT_AUTHOR_EMAIL: 'a@b', GIT_COMMITTER_NAME: 'a', GIT_COMMITTER_EMAIL: 'a@b' };
const isolated = { GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_SYSTEM: '/dev/null' };
/** Stands in for each tool that a release runs: writes its name and its arguments. */
const stub = `
const { appendFileSync, writeFileSync } = require('node:fs');
const { basename, join } = require('node:path');
const name = basename(process.argv[1], '.js');
appendFileSync('dist/calls', name + '\\n');
const at = process.argv.indexOf('--output');
if (name === 'deb') writeFileSync(join(process.argv[at + 1], process.argv.includes('--all') ? 'all.deb' : 'amd64.deb'), name);
if (name === 'sbom') process.stdout.write('{"bomFormat":"CycloneDX"}');
`;

/** A release starts npm and git several times, which take long on a busy machine. */
const limitMs = 300_000;
jest.setTimeout(limitMs);

let folder: TemporaryFolder;

async function runProgram(program: string, ...args: string[]): Promise<{ code: number; text: string }> {
  const env = { PATH: process.env.PATH, HOME: folder.path, ...identity, ...isolated };
  return await promisify(execFile)(program, args, { cwd: folder.path, env }).then(
    ({ stdout }) => ({ code: 0, text: stdout }),
    ({ code, stderr }: { code: number; stderr: string }) => ({ code, text: stderr }),
  );
}

function release(...args: string[]): Promise<{ code: number; text: string }> {
  return runProgram(process.execPath, 'dist/tools/release.js', ...args);
}

async function git(...args: string[]): Promise<string> {
  return (await runProgram('git', ...args)).text.trim();
}

/** Makes a small checkout with one commit, in which the release is possible unless a part of it is changed. */
async function makeCheckout(manifest: object = owner, changelog = news): Promise<void> {
  const write = (path: string, text: string) => writeFile(join(folder.path, path), text);
  await mkdir(join(folder.path, 'dist', 'tools'), { recursive: true });
  for (const name of ['openapi', 'man-page', 'pictures', 'deb', 'sbom']) await write(`dist/tools/${name}.js`, stub);
  const program = join(root, 'dist', 'tools', 'release.js');
  await write(
    'dist/tools/release.js',
    `const { runRelease } = require(${JSON.stringify(program)});\nvoid runRelease(process.cwd(), process.argv.slice(2));\n`,
  );
  await write('package.json', JSON.stringify({ name: 'relay', version: '1.2.0', ...manifest }));
  await write('CHANGELOG.md', changelog);
  await write('.gitignore', 'dist\n.npm\n');
  await git('init', '--quiet');
  await git('add', '--all');
  await git('commit', '--quiet', '--message', 'Begin');
}

beforeEach(async () => {
  folder = await temporaryFolder();
});
afterEach(() => folder[Symbol.asyncDispose]());

describe('npm run release', () => {
  it('writes version and date, commits them, builds the packages with their checksums, and sets the tag', async () => {
    await makeCheckout();
    const { code, text } = await release('--version', '1.3.0');
    expect([code, text]).toEqual([0, expect.stringContaining('Released 1.3.0')]);
    expect(await git('log', '--format=%s')).toBe('Release 1.3.0\nBegin');
    expect(await git('describe', '--exact-match')).toBe('v1.3.0');
    expect(await git('status', '--porcelain')).toBe('');
    const today = new Date().toISOString().slice(0, 8);
    expect(await git('show', 'HEAD:CHANGELOG.md')).toContain(`## [1.3.0] – ${today}`);
    expect(JSON.parse(await git('show', 'HEAD:package.json'))).toMatchObject({ version: '1.3.0' });
    const calls = await readFile(join(folder.path, 'dist', 'calls'), 'utf8');
    expect(calls.trim().split('\n')).toEqual(['openapi', 'man-page', 'pictures', 'deb', 'deb', 'sbom']);
    const packages = join(folder.path, 'dist', 'release');
    const names = ['all.deb', 'amd64.deb', 'prompt-relay-1.3.0.cdx.json', 'relay-1.3.0.tgz'];
    expect(await readdir(packages)).toEqual(['SHA256SUMS', ...names]);
    const sums = (await readFile(join(packages, 'SHA256SUMS'), 'utf8')).trim().split('\n');
    for (const [index, name] of names.entries()) {
      const digest = createHash('sha256').update(await readFile(join(packages, name)));
      expect(sums[index]).toBe(`${digest.digest('hex')}  ${name}`);
    }
  });

  it('changes nothing with --dry-run', async () => {
    await makeCheckout();
    expect(await release('--dry-run')).toEqual({ code: 0, text: expect.stringContaining('1.2.0 can be released') });
    expect(await git('log', '--format=%s')).toBe('Begin');
    expect([await git('tag'), await git('status', '--porcelain')]).toEqual(['', '']);
    expect(await readdir(join(folder.path, 'dist'))).toEqual(['tools']);
  });

  it('names the fields of package.json that the owner has to fill in, unless it may do without', async () => {
    await makeCheckout({ author: '', bugs: { url: '' }, repository: { type: 'git', url: '' } });
    const { code, text } = await release('--dry-run');
    expect(code).toBe(1);
    for (const name of ['package.json', 'author', 'bugs.url', 'repository.url']) expect(text).toContain(name);
    expect((await release('--dry-run', '--no-owner')).code).toBe(0);
  });

  it.each([
    ['no section that is not yet released', news.replace('not yet released', '2026-03-01'), 'does not begin with'],
    ['an empty section', news.replace('- A feature.', ''), 'is empty'],
    ['a long section', news.replace('A feature', 'word '.repeat(maxNewsWords)), `may have ${maxNewsWords}`],
  ])('refuses a changelog with %s', async (_, changelog, words) => {
    await makeCheckout(owner, changelog);
    expect(await release()).toEqual({ code: 1, text: expect.stringContaining(words) });
    expect(await git('log', '--format=%s')).toBe('Begin');
  });

  it('names all other reasons at once: changes that are not committed, an existing tag, old packages', async () => {
    await makeCheckout();
    await git('tag', 'v1.2.0');
    await writeFile(join(folder.path, 'new.txt'), 'text');
    await mkdir(join(folder.path, 'dist', 'release'));
    await writeFile(join(folder.path, 'dist', 'release', 'old.deb'), 'text');
    const { code, text } = await release();
    expect(code).toBe(1);
    for (const words of ['commit your changes first', 'a tag v1.2.0 already', 'is not empty'])
      expect(text).toContain(words);
    expect(await git('log', '--format=%s')).toBe('Begin');
  });

  it('refuses a version of another form', async () => {
    await makeCheckout();
    expect(await release('--version', '1.3')).toEqual({ code: 1, text: expect.stringContaining('form 1.2.3') });
  });
});

it('The Debian package names the author as its maintainer', () => {
  expect(maintainerOf(owner)).toBe('Ada Lovelace <ada@example.org>');
  for (const author of ['', 'Ada', { name: 'Ada' }, 1, undefined])
    expect(maintainerOf({ author, bugs: 1 })).toMatch(/^The prompt-relay authors <\S+>$/);
});

it.each([
  [
    'objects',
    { author: { name: 'Ada Lovelace', email: 'ada@example.org' }, bugs: owner.bugs, repository: owner.repository },
  ],
  ['texts', { author: `${owner.author} (https://example.org)`, bugs: owner.bugs.url, repository: 'github:ada/relay' }],
  ['short texts', { author: owner.author, bugs: owner.bugs.url, repository: 'ada/relay' }],
])('The owner may have any form that npm permits: %s', (_, manifest) => {
  expect([ownerFaults(manifest), maintainerOf(manifest)]).toEqual([[], owner.author]);
});

it('The owner is missing if the fields are unusable', () => {
  for (const manifest of [
    {},
    { author: 'Ada', bugs: { email: 'a@b' }, repository: 'here' },
    { author: 1, bugs: 1, repository: 1 },
  ])
    expect(ownerFaults(manifest)).toHaveLength(3);
});
