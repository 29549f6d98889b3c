import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { FirstStart } from '../../../../src/primary/lifecycle/first-start.js';
import { temporaryFolder } from '../../../support/basics/folder.js';

describe('The first start', () => {
  it('is the same for all later starts with the same state folder', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'first-start');
    const first = new FirstStart(path, 1000);
    await first.load();
    const second = new FirstStart(path, 2000);
    await second.load();
    expect([first.ms, second.ms]).toEqual([1000, 1000]);
  });

  it('is this start without a state folder, which is not created, and if the file cannot be written', async () => {
    await using folder = await temporaryFolder();
    for (const path of [null, join(folder.path, 'state', 'first-start'), '/proc/first-start']) {
      const start = new FirstStart(path, 1000);
      await start.load();
      expect(start.ms).toBe(1000);
    }
    expect(await readdir(folder.path)).toEqual([]);
  });
});
