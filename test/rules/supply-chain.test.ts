import { execFile } from 'node:child_process';
import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { z } from 'zod';
import { browserPackages } from '../../tools/browser-files.js';
import { readInstalled } from '../../tools/licences.js';
import { importNameOf, productionFolders, readLockfile } from '../../tools/lockfile.js';
import { productionSbom, readSbom } from '../../tools/sbom.js';
import { temporaryFolder } from '../support/basics/folder.js';
import { tableUnder } from '../support/documents/markdown.js';
import { root } from '../support/documents/sources.js';

/** npm reads all installed packages, which takes long on a busy machine. */
const limitMs = 300_000;
jest.setTimeout(limitMs);

const maxConsoleKb = 400;
const page = 'docs/dependencies.md';
const lockfile = readLockfile(root);
const names = z.record(z.string(), z.string());
const manifestSchema = z.object({ overrides: names });
const manifest = readFile(join(root, 'package.json'), 'utf8').then((text) => manifestSchema.parse(JSON.parse(text)));
const pageText = readFile(join(root, page), 'utf8');

describe('docs/dependencies.md', () => {
  it('explains the purpose of each', () => {
    const rows = ['To run', 'In the console', 'To develop'].flatMap((heading) => tableUnder(heading, page));
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
    const { metadata, components, dependencies } = productionSbom(await readSbom(root), 'prompt-relay');
    expect(metadata.component.name).toBe('prompt-relay');
    const installed = new Set<string>();
    for (const folder of productionFolders(await lockfile)) {
      const { name = importNameOf(folder), version } = (await lockfile).get(folder) ?? {};
      if ((await readInstalled(root, folder)) !== null) installed.add(`${name}@${version}`);
    }
    expect(components.map((one) => one['bom-ref']).toSorted()).toEqual([...installed].toSorted());
    expect(components.filter(({ hashes }) => !Array.isArray(hashes) || hashes.length === 0)).toEqual([]);
    expect(dependencies).toHaveLength(components.length + 1);
  });
});

describe('The packages of the console', () => {
  it('are copied with their licences', async () => {
    for (const name of browserPackages) {
      const licence = join(root, 'dist', 'src', 'console', 'packages', `${name.replace('/', '-')}.LICENSE`);
      expect((await readFile(licence, 'utf8')).length).toBeGreaterThan(500);
    }
  });
});

describe('The files of the console', () => {
  it(`have at most ${maxConsoleKb} KB together, as the service sends them`, async () => {
    const folder = join(root, 'dist', 'src', 'console');
    const names = (await readdir(folder, { recursive: true })).filter((name) =>
      /\.(mjs|css|html|svg|woff2)$/.test(name),
    );
    const sizes = await Promise.all(
      names.map(async (name) => {
        const content = await readFile(join(folder, name));
        return name.endsWith('.woff2') ? content.length : gzipSync(content).length;
      }),
    );
    expect(names).toContain('math.woff2');
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(maxConsoleKb * 1000);
  });
});

describe('The audit of CI', () => {
  /** Runs the audit with a fake npm that gives this answer if the audit includes development packages. */
  async function auditWith(answer: string, status: number): Promise<{ code: number; said: string }> {
    await using folder = await temporaryFolder();
    const program = join(folder.path, 'bin', 'npm');
    await mkdir(join(folder.path, 'bin'));
    const isAsked = `[ "$*" = 'audit --include=dev --json' ] || exit 1`;
    await writeFile(program, `#!/bin/sh\n${isAsked}\ncat <<'END'\n${answer}\nEND\nexit ${status}\n`);
    await chmod(program, 0o755);
    const env = { ...process.env, PATH: `${join(folder.path, 'bin')}:${process.env.PATH}` };
    const run = promisify(execFile)(join(root, '.ci', 'audit'), { env });
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
    ['fails for what the console has', reportOf('marked', 'critical'), 1, 1, 'known vulnerabilities'],
    ['passes what is less than high', reportOf('express', 'moderate'), 1, 0, 'no known vulnerability'],
    ['passes what only the development needs', reportOf('jest', 'critical'), 1, 0, 'no known vulnerability'],
    ['is skipped, and says so', '{"message":"405","error":{"summary":""}}', 1, 0, 'skipped'],
    ['is skipped where npm says nothing', '', 1, 0, 'skipped'],
  ])('%s', async (_, answer, status, code, words) => {
    const result = await auditWith(answer, status);
    expect(result.said).toContain(words);
    expect(result.code).toBe(code);
  });
});
