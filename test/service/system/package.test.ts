import { execFile } from 'node:child_process';
import { mkdir, readFile, stat, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { temporaryFolder } from '../../support/basics/folder.js';
import { packProject } from '../../support/documents/packed.js';
import { root } from '../../support/documents/sources.js';

const run = promisify(execFile);

describe('The package', () => {
  it('contains the program and its documents, no tests, decisions and source maps, and runs from its folder', async () => {
    await using folder = await temporaryFolder();
    const { filename, files } = await packProject(folder.path);
    const paths = files.map(({ path }) => path);
    expect(paths).toEqual(
      expect.arrayContaining([
        'LICENSE',
        'README.md',
        'package.json',
        'docs/openapi.yaml',
        'docs/command.md',
        'docs/configuration.md',
        'CHANGELOG.md',
        'CONTRIBUTING.md',
        'deploy/proxy/Caddyfile',
        'dist/src/command/main.js',
        'dist/src/primary/main.js',
        'dist/src/features/file/kit.d.ts',
        'dist/src/primary/cli/contract/adapter.d.ts',
        'dist/src/features/demo/program/main.js',
        'dist/src/worker/main.js',
        'dist/src/console/index.html',
        'dist/src/console/main.mjs',
        'dist/src/console/packages/preact.mjs',
        'dist/src/console/packages/preact.LICENSE',
      ]),
    );
    expect(
      paths.filter((path) => /\.map$|(?<!\.d)\.ts$|test|decisions|bench\/(?!RESULTS\.md|soak\.svg)/.test(path)),
    ).toEqual([]);

    await mkdir(join(folder.path, 'node_modules'));
    await run('tar', ['-xzf', filename, '-C', 'node_modules'], { cwd: folder.path });
    const home = join(folder.path, 'node_modules', 'package');
    await symlink(join(root, 'node_modules'), join(home, 'node_modules'));
    const { bin } = JSON.parse(await readFile(join(home, 'package.json'), 'utf8'));
    const program = join(home, bin['prompt-relay']);
    expect((await readFile(program, 'utf8')).split('\n')[0]).toBe('#!/usr/bin/env node');
    expect((await stat(program)).isFile()).toBe(true);
    const env = { PATH: process.env.PATH, MODEL_API_CLI: 'demo' };
    const { stdout } = await run(process.execPath, [program, 'check', '--json'], { env, cwd: folder.path });
    expect(JSON.parse(stdout)).toMatchObject({ model_cli: { adapter: 'demo', ready: true } });
  });
});
