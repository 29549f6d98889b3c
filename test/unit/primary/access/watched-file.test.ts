import { mkdir, rename, rm, stat, unlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { WatchedFile } from '../../../../src/primary/access/watched-file.js';
import { systemClock } from '../../../../src/shared/clock.js';
import { type TemporaryFolder, temporaryFolder } from '../../../support/basics/folder.js';
import { until } from '../../../support/basics/until.js';

let folder: TemporaryFolder;

beforeEach(async () => {
  folder = await temporaryFolder();
});

afterEach(() => folder[Symbol.asyncDispose]());

function open(name = 'keys') {
  const path = join(folder.path, name);
  const seen: string[] = [];
  const file = new WatchedFile(
    path,
    {
      read: async (text) => seen.push(text) > 0,
      unreadable: (error) => seen.push(`unreadable: ${(error as NodeJS.ErrnoException).code}`),
    },
    systemClock,
  );
  file.startWatching();
  const sees = (...texts: string[]) => until(() => seen.join('|') === texts.join('|'), `${texts.join('|')} to be seen`);
  return { path, file, seen, sees, [Symbol.dispose]: () => file.stopWatching() };
}

describe('A watched file', () => {
  it('is read at the start, and when it is written, replaced, removed and created again', async () => {
    await writeFile(join(folder.path, 'keys'), 'one');
    using watched = open();
    await watched.sees('one');
    await writeFile(watched.path, 'two');
    await watched.sees('one', 'two');
    await writeFile(`${watched.path}.new`, 'six');
    await rename(`${watched.path}.new`, watched.path);
    await watched.sees('one', 'two', 'six');
    await unlink(watched.path);
    await watched.sees('one', 'two', 'six', 'unreadable: ENOENT');
    await writeFile(watched.path, 'ten');
    await watched.sees('one', 'two', 'six', 'unreadable: ENOENT', 'ten');
  });

  it('comes with the time of its last change, which a copy does not keep', async () => {
    const path = join(folder.path, 'keys');
    await writeFile(path, 'one');
    await utimes(path, 5, 5);
    const times: unknown[] = [];
    const read = async (_: string, modifiedAt?: number | null) => times.push(modifiedAt) > 0;
    const file = new WatchedFile(path, { read, unreadable: () => {} }, systemClock);
    file.startWatching();
    await until(() => times.length > 0, 'the file to be read');
    file.stopWatching();
    expect(times[0]).toBe(Number((await stat(path, { bigint: true })).ctimeMs));
  });

  it('is read within a second if its folder is replaced, which a watch on the folder does not report', async () => {
    await mkdir(join(folder.path, 'a'));
    await writeFile(join(folder.path, 'a', 'keys'), 'one');
    using watched = open('a/keys');
    await watched.sees('one');
    const startedMs = performance.now();
    await mkdir(join(folder.path, 'b'));
    await writeFile(join(folder.path, 'b', 'keys'), 'two');
    await rename(join(folder.path, 'a'), join(folder.path, 'old'));
    await rename(join(folder.path, 'b'), join(folder.path, 'a'));
    await until(() => watched.seen.at(-1) === 'two', 'the new file to be seen');
    expect(performance.now() - startedMs).toBeLessThan(1000);
  });

  it('is reported as unreadable if its listener fails', async () => {
    const path = join(folder.path, 'keys');
    await writeFile(path, 'one');
    const failures: string[] = [];
    const listener = {
      read: () => Promise.reject(new Error('a defect')),
      unreadable: ({ message }: Error) => failures.push(message),
    };
    await new WatchedFile(path, listener, systemClock).look();
    expect(failures).toEqual(['a defect']);
  });

  it('is read again on demand, changed or not', async () => {
    await writeFile(join(folder.path, 'keys'), 'one');
    using watched = open();
    await watched.sees('one');
    await watched.file.look();
    expect(watched.seen).toEqual(['one']);
    await watched.file.reread();
    expect(watched.seen).toEqual(['one', 'one']);
  });

  it('does not require that its folder exists', async () => {
    await rm(folder.path, { recursive: true });
    using watched = open();
    await watched.sees('unreadable: ENOENT');
  });
});
