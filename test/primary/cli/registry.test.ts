import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { chooseKind } from '../../../src/primary/cli/registry.js';
import { loadConfig } from '../../../src/shared/config/config.js';
import { type TemporaryFolder, temporaryFolder } from '../../support/folder.js';

let folder: TemporaryFolder;

beforeAll(async () => {
  folder = await temporaryFolder();
  await writeFile(join(folder.path, 'claude'), '', { mode: 0o755 });
});

afterAll(() => folder[Symbol.asyncDispose]());

async function kindFor(env: Readonly<Record<string, string>>, searchPath: string): Promise<string> {
  return chooseKind(await loadConfig(env, () => Promise.reject(new Error('there is no file'))), searchPath);
}

describe('The model CLI that is chosen by itself', () => {
  it('is claude where it is on PATH, else the demo', async () => {
    expect(await kindFor({}, folder.path)).toBe('claude');
    expect(await kindFor({}, '/nowhere')).toBe('demo');
  });

  it.each([
    ['on a production host', { NODE_ENV: 'production' }],
    ['where its program is named', { MODEL_API_CLI_COMMAND: '/opt/nowhere/claude' }],
  ])('is never the demo %s', async (_, env) => {
    expect(await kindFor(env, '/nowhere')).toBe('claude');
  });
});
