import { execFile } from 'node:child_process';
import { chmod, copyFile, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { dependencyRows } from '../../tools/dependency-table.js';
import { readInstalled } from '../../tools/licences.js';
import { importNameOf, productionFolders, readLockfile } from '../../tools/lockfile.js';
import { productionSbom, readSbom } from '../../tools/sbom.js';
import { vendor, vendoredFiles } from '../../tools/vendor.js';
import { temporaryFolder } from '../support/folder.js';
import { tableUnder } from '../support/markdown.js';
import { root } from '../support/sources.js';

const page = 'docs/dependencies.md';
const lockfile = readLockfile(root);
const names = z.record(z.string(), z.string());
const manifestSchema = z.object({
  dependencies: names,
  devDependencies: names,
  overrides: names,
  vendored: z.array(z.string()),
});
type Manifest = z.infer<typeof manifestSchema>;
const manifest = readFile(join(root, 'package.json'), 'utf8').then((text) => manifestSchema.parse(JSON.parse(text)));
const pageText = readFile(join(root, page), 'utf8');

/** Returns the packages that are neither installed with the published package nor bundled in it. */
function developed({ devDependencies, vendored }: Manifest): string[] {
  return Object.keys(devDependencies).filter((name) => !vendored.includes(name));
}

describe('docs/dependencies.md', () => {
  it.each([
    ['To run', (all: Manifest) => Object.keys(all.dependencies)],
    ['Carried in the package', (all: Manifest) => all.vendored],
    ['To develop', developed],
  ] as const)('lists in "%s" the version, the licence and the number of packages of each', async (heading, namesOf) => {
    const rows = tableUnder(heading, page).map((row) => row.slice(0, 4));
    expect(rows).toEqual(dependencyRows(await lockfile, namesOf(await manifest)));
  });

  it('explains the purpose of each', () => {
    const rows = ['To run', 'Carried in the package', 'To develop'].flatMap((heading) => tableUnder(heading, page));
    expect(rows.length).toBeGreaterThan(20);
    expect(rows.filter(([, , , , , purpose = '']) => purpose.length < 12)).toEqual([]);
  });

  it('explains each override', async () => {
    const overridden = [...(await pageText).matchAll(/^- \*\*`([^`]+)`\*\*/gm)].map(([, name]) => name);
    expect(overridden.toSorted()).toEqual(Object.keys((await manifest).overrides).toSorted());
  });

  it('names all existing install scripts', async () => {
    const scripts = [...(await lockfile)].flatMap(([folder, one]) => (one.hasInstallScript ? [folder] : []));
    for (const folder of scripts) expect(await pageText).toContain(`\`${importNameOf(folder)}\``);
  });
});

describe('package-lock.json', () => {
  it('has a SHA-512 for each package', async () => {
    const without = [...(await lockfile)].flatMap(([folder, { integrity = '' }]) =>
      /^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity) ? [] : [folder],
    );
    expect((await lockfile).size).toBeGreaterThan(100);
    expect(without).toEqual([]);
  });

  it('names no registry', async () => {
    expect([...(await lockfile)].flatMap(([folder, { resolved }]) => (resolved === undefined ? [] : [folder]))).toEqual(
      [],
    );
    expect(await readFile(join(root, '.npmrc'), 'utf8')).not.toMatch(/registry\s*=\s*http|\/\//);
  });
});

describe('The packages installed with the service', () => {
  it('have no install script, and build nothing', async () => {
    const isScript = (name: string) => ['preinstall', 'install', 'postinstall'].includes(name);
    for (const folder of productionFolders(await lockfile)) {
      expect([folder, (await lockfile).get(folder)?.hasInstallScript]).toEqual([folder, false]);
      const { scripts = {} } = z.object({ scripts: names.optional() }).parse((await readInstalled(root, folder)) ?? {});
      expect([folder, Object.keys(scripts).filter(isScript)]).toEqual([folder, []]);
    }
  });

  it('are all in the bill of materials, with their hashes, and no development package is', async () => {
    const { metadata, components, dependencies } = productionSbom(await readSbom(root), 'prompt-relay', await lockfile);
    expect(metadata.component.name).toBe('prompt-relay');
    const installed: string[] = [];
    for (const folder of productionFolders(await lockfile)) {
      if ((await readInstalled(root, folder)) !== null) installed.push(importNameOf(folder));
    }
    expect(components.map(({ name }) => name).toSorted()).toEqual(installed.toSorted());
    expect(components.filter(({ hashes }) => !Array.isArray(hashes) || hashes.length === 0)).toEqual([]);
    expect(dependencies).toHaveLength(components.length + 1);
  });
});

describe('The bundled packages', () => {
  it('match package.json, each with its licence, in the versions of the lockfile', async () => {
    expect(Object.keys(vendoredFiles)).toEqual((await manifest).vendored);
    for (const name of Object.keys(vendoredFiles)) {
      const folder = join(root, 'dist', 'src', 'node_modules', name);
      const { version } = z
        .object({ version: z.string() })
        .parse(JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')));
      expect(version).toBe((await lockfile).get(`node_modules/${name}`)?.version);
      const licence = vendoredFiles[name]?.find((file) => file.startsWith('LICENSE')) ?? 'LICENSE';
      expect((await readFile(join(folder, licence), 'utf8')).length).toBeGreaterThan(500);
    }
  });

  it('run without their original packages', async () => {
    await using folder = await temporaryFolder();
    await vendor(root, join(folder.path, 'node_modules'));
    await symlink(join(root, 'node_modules', 'express'), join(folder.path, 'node_modules', 'express'));
    const program = `
      const { countTokens } = require('gpt-tokenizer/encoding/o200k_base');
      const { generateHTML } = require('swagger-ui-express');
      console.log(countTokens('Hello, world!'), generateHTML().includes('swagger-ui'));`;
    await writeFile(join(folder.path, 'program.js'), program);
    const { stdout } = await promisify(execFile)(process.execPath, [join(folder.path, 'program.js')]);
    expect(stdout).toBe('4 true\n');
  });
});

describe('The audit of CI', () => {
  /** Runs the audit with a fake npm that gives this answer if the audit includes development packages. */
  async function auditWith(answer: string, status: number, at = root): Promise<{ code: number; said: string }> {
    await using folder = await temporaryFolder();
    const program = join(folder.path, 'bin', 'npm');
    await mkdir(join(folder.path, 'bin'));
    const isAsked = `[ "$*" = 'audit --include=dev --json' ] || exit 1`;
    await writeFile(program, `#!/bin/sh\n${isAsked}\ncat <<'END'\n${answer}\nEND\nexit ${status}\n`);
    await chmod(program, 0o755);
    const env = { ...process.env, PATH: `${join(folder.path, 'bin')}:${process.env.PATH}` };
    const run = promisify(execFile)(join(at, '.ci', 'audit'), { env });
    return await run.then(
      ({ stdout }) => ({ code: 0, said: stdout }),
      ({ code, stdout }: { code: number; stdout: string }) => ({ code, said: stdout }),
    );
  }

  function reportOf(name: string, severity: string): string {
    return JSON.stringify({
      auditReportVersion: 2,
      vulnerabilities: { [name]: { severity, nodes: [`node_modules/${name}`] } },
    });
  }

  it.each([
    ['is clean', '{"auditReportVersion":2,"vulnerabilities":{}}', 0, 0, 'no known vulnerability'],
    ['fails for what is installed', reportOf('express', 'high'), 1, 1, 'known vulnerabilities'],
    ['fails for what the build carries', reportOf('swagger-ui-dist', 'critical'), 1, 1, 'known vulnerabilities'],
    ['passes what is less than high', reportOf('express', 'moderate'), 1, 0, 'no known vulnerability'],
    ['passes what only the development needs', reportOf('jest', 'critical'), 1, 0, 'no known vulnerability'],
    ['is skipped, and says so', '{"message":"405","error":{"summary":""}}', 1, 0, 'skipped'],
    ['is skipped where npm says nothing', '', 1, 0, 'skipped'],
  ])('%s', async (_, answer, status, code, words) => {
    const result = await auditWith(answer, status);
    expect(result.said).toContain(words);
    expect(result.code).toBe(code);
  });

  it('covers each bundled package, and their dependencies', async () => {
    const locked = await lockfile;
    const folders = productionFolders(locked).filter((folder) => locked.get(folder)?.dev);
    expect(folders.length).toBeGreaterThanOrEqual((await manifest).vendored.length);
    const vulnerabilities = Object.fromEntries(folders.map((node) => [node, { severity: 'high', nodes: [node] }]));
    const result = await auditWith(JSON.stringify({ auditReportVersion: 2, vulnerabilities }), 1);
    expect(result.code).toBe(1);
    const named = result.said.split('\n').flatMap((line) => /^(.*): high$/.exec(line)?.[1] ?? []);
    expect(named).toEqual(folders);
  });

  it('fails if package-lock.json lacks a bundled package', async () => {
    await using folder = await temporaryFolder();
    await mkdir(join(folder.path, '.ci'));
    await copyFile(join(root, '.ci', 'audit'), join(folder.path, '.ci', 'audit'));
    await writeFile(join(folder.path, 'package.json'), JSON.stringify({ vendored: ['marked', 'luxon'] }));
    await writeFile(
      join(folder.path, 'package-lock.json'),
      JSON.stringify({ packages: { 'node_modules/marked': {} } }),
    );
    const result = await auditWith('{"auditReportVersion":2,"vulnerabilities":{}}', 0, folder.path);
    expect(result).toEqual({ code: 1, said: expect.stringMatching(/^luxon: .*package-lock\.json lacks it/) });
  });
});
