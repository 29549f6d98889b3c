import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { root } from '../../support/documents/sources.js';

/** The compiler takes long on a busy machine. */
const limitMs = 300_000;
jest.setTimeout(limitMs);

const path = join('docs', 'examples', 'jay-adapter.cjs');

describe('The example adapter', () => {
  it('is shorter than 120 lines, and imports nothing', async () => {
    const text = await readFile(join(root, path), 'utf8');
    expect(text.split('\n').length).toBeLessThan(120);
    expect(text).not.toMatch(/\brequire\(|^import /m);
  });

  it('matches the types that the package publishes', async () => {
    const flags = '--ignoreConfig --noEmit --allowJs --checkJs --strict --module nodenext --target es2023 --types node';
    const tsc = join(root, 'node_modules', '.bin', 'tsc');
    const { stdout } = await promisify(execFile)(tsc, [...flags.split(' '), path], { cwd: root });
    expect(stdout).toBe('');
  });
});
