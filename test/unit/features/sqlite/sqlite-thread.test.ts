import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { call } from '../../../../src/features/sqlite/calls.js';
import { SqliteThread } from '../../../../src/features/sqlite/sqlite-thread.js';
import { temporaryFolder } from '../../../support/basics/folder.js';
import { root } from '../../../support/documents/sources.js';

const file = join(root, 'test', 'support', 'fixtures', 'threads', 'store.js');

describe('The store thread', () => {
  it('is restarted by the next call after it has died, and fails the current calls', async () => {
    await using folder = await temporaryFolder();
    const thread = new SqliteThread(join(folder.path, 'store.db'), [], [], file);
    await thread.startThread();
    const doomed = [thread.ask(call('file', 'tidy')), thread.ask(call('file', 'probe', 0))];
    expect((await Promise.allSettled(doomed)).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(await Promise.all([1, 2, 3].map((bytes) => thread.ask(call('file', 'probe', bytes))))).toEqual([
      [1],
      [2],
      [3],
    ]);
    await thread.closeThread();
  });

  it('accepts no call once it is closed, and leaves no file', async () => {
    await using folder = await temporaryFolder();
    const thread = new SqliteThread(join(folder.path, 'store.db'), [], [], file);
    await thread.startThread();
    expect(await readdir(folder.path)).toEqual(['store.db.pid']);
    await thread.closeThread();
    expect(await readdir(folder.path)).toEqual([]);
    await expect(thread.ask(call('file', 'probe', 0))).rejects.toThrow('the store is closed');
    await thread.closeThread();
  });

  it.each([
    ['held', 'store.db is in use by another process'],
    ['broken', 'it is broken'],
  ])('reports why it cannot open the file: %s', async (state, sentence) => {
    await using folder = await temporaryFolder();
    const thread = new SqliteThread(join(folder.path, 'store.db'), [], [state], file);
    await expect(thread.startThread()).rejects.toThrow(sentence);
    await thread.closeThread();
  });

  it('fails to start if its program is missing', async () => {
    const thread = new SqliteThread('/store.db', [], [], '/no/such/thread.js');
    await expect(thread.startThread()).rejects.toThrow();
  });
});
