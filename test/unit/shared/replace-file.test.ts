import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceFile } from '../../../src/shared/replace-file.js';
import { temporaryFolder } from '../../support/basics/folder.js';

it('A file of the state folder is replaced as a whole, also after a service was killed meanwhile', async () => {
  await using folder = await temporaryFolder();
  const path = join(folder.path, 'a', 'b', 'state.json');
  await replaceFile(path, 'first');
  await writeFile(`${path}.new`, 'half');
  await replaceFile(path, 'second');
  expect(await readFile(path, 'utf8')).toBe('second');
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  expect(await readdir(join(folder.path, 'a', 'b'))).toEqual(['state.json']);
});
