import { execFile } from 'node:child_process';
import { appendFile, copyFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { TemporaryFolder } from '../../support/basics/folder.js';
import { root } from '../../support/documents/sources.js';
import { copyOf, lists, names, removeFeatures, restoreFeatures, withDependents } from './without.js';

const run = promisify(execFile);
const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
const options = ['-p', 'tsconfig.service.json', '--noEmit', '--singleThreaded', '--incremental', '--tsBuildInfoFile'];
let folder: TemporaryFolder;

/** Checks the types of the copy. What the compiler has noted in `notes` about files that have not changed is not checked again. */
async function check(notes: string): Promise<void> {
  await run(process.execPath, [compiler, ...options, notes], { cwd: folder.path }).catch((error) => {
    throw new Error(`the copy does not compile:\n${error.stdout}`);
  });
}

beforeAll(async () => {
  folder = await copyOf(['src', 'tools/browser-files.ts', 'package.json', 'tsconfig.json', 'tsconfig.service.json']);
  await check('all.json');
  // The compiler notes what a file exports when the file has changed; without this note, it checks all files that import the list.
  await appendFile(join(folder.path, lists.source.path), '\n');
  await check('all.json');
});
afterAll(() => folder[Symbol.asyncDispose]());

it.each([...names.map((name) => [name, withDependents(name)] as const), ['all of them', names] as const])(
  'The service compiles without a feature and those that need it: %s',
  async (_, removed) => {
    await copyFile(join(folder.path, 'all.json'), join(folder.path, 'case.json'));
    try {
      await removeFeatures(folder.path, lists.source, removed);
      await check('case.json');
    } finally {
      await restoreFeatures(folder.path, lists.source, removed);
    }
  },
);

it('A copy whose core uses a feature does not compile without it', async () => {
  const file = join(folder.path, 'src', 'primary', 'uses-a-feature.ts');
  await copyFile(join(folder.path, 'all.json'), join(folder.path, 'case.json'));
  await appendFile(file, `export type { webhooks } from '../features/webhooks/feature.js';\n`);
  try {
    await check('case.json');
    await removeFeatures(folder.path, lists.source, ['webhooks']);
    await expect(check('case.json')).rejects.toThrow('uses-a-feature.ts');
  } finally {
    await rm(file);
    await restoreFeatures(folder.path, lists.source, ['webhooks']);
  }
});
