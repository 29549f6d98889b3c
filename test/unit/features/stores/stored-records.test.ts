import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { StoringCore } from '../../../../src/features/stores/contract/full-store.js';
import { recordsPlace, StoredRecords } from '../../../../src/features/stores/stored-records.js';
import { type TemporaryFolder, temporaryFolder } from '../../../support/basics/folder.js';

let folder: TemporaryFolder;
beforeEach(async () => {
  folder = await temporaryFolder();
});
afterEach(() => folder[Symbol.asyncDispose]());

function open(path: string | null) {
  const activated: (readonly string[])[] = [];
  let damages = 0;
  const records = new StoredRecords<string>({
    ...{ shared: null, path },
    readRecord: (stored) => (typeof stored === 'string' ? stored : null),
    clientOf: (name) => `key ${name}`,
    activate: (all) => void activated.push(all),
    onDamaged: () => damages++,
  });
  return { records, activated, damages: () => damages };
}

function placeIn(stateFolder: string | null) {
  const core = { store: { openText: () => null }, config: { stateFolder, store: {} } } as unknown as StoringCore;
  return recordsPlace(core, 'names');
}

const adding = (name: string) => (all: readonly string[]) => ({ records: [...all, name], answer: name });

describe('Stored records', () => {
  it('are used after they have been stored, and read by the next service', async () => {
    const { path, place } = placeIn(join(folder.path, 'state'));
    expect(place).toBe('file');
    const { records, activated } = open(path);
    expect(await Promise.all(['a', 'b'].map((name) => records.update(adding(name))))).toEqual(['a', 'b']);
    expect([activated, records.all]).toEqual([
      [['a'], ['a', 'b']],
      ['a', 'b'],
    ]);
    const next = open(path);
    await next.records.readRecords();
    expect(next.records.all).toEqual(['a', 'b']);
  });

  it('stay as they were if they cannot be stored, or if what must come before fails', async () => {
    await writeFile(join(folder.path, 'file'), '');
    const { records } = open(join(folder.path, 'file', 'names.json'));
    await expect(records.update(adding('a'))).rejects.toMatchObject({ code: 'store_unavailable' });
    const before = async () => {
      throw new Error('no audit');
    };
    await expect(records.update((all) => ({ ...adding('b')(all), before }))).rejects.toThrow('no audit');
    expect(records.all).toEqual([]);
  });

  it('are not replaced while their file cannot be read', async () => {
    const path = join(folder.path, 'names.json');
    await mkdir(path);
    const { records } = open(path);
    await records.readRecords();
    await expect(records.update(adding('a'))).rejects.toMatchObject({ code: 'store_unavailable' });
  });

  it.each(['', '{"version":1}', '{"version":2,"records":[]}', '{"version":1,"records":["a"'])(
    'are empty if their text is damaged, which is reported: %j',
    async (text) => {
      const path = join(folder.path, 'names.json');
      await writeFile(path, text);
      const { records, damages } = open(path);
      await records.readRecords();
      expect([records.all, damages()]).toEqual([[], 1]);
    },
  );

  it('lose only those without the right form', async () => {
    const path = join(folder.path, 'names.json');
    await writeFile(path, '{"version":1,"records":["a",7,"b"]}');
    const { records } = open(path);
    await records.update(adding('c'));
    expect(JSON.parse(await readFile(path, 'utf8'))).toEqual({ version: 1, records: ['a', 'b', 'c'] });
  });

  it('end with the service if there is no place for them', async () => {
    const { records } = open(placeIn(null).path);
    await records.update(adding('a'));
    expect(records.all).toEqual(['a']);
  });
});

it('Stored records of a client are in its export, and go with its purge', async () => {
  const { records } = open(join(folder.path, 'state', 'names.json'));
  for (const name of ['a', 'b', 'a']) await records.update(adding(name));
  expect(records.findRecords('key a')).toEqual(['a', 'a']);
  expect(await records.removeOf((client) => client === 'key a')).toBe(2);
  expect(await records.removeOf((client) => client === 'key a')).toBe(0);
  expect([records.all, records.findRecords('key a')]).toEqual([['b'], []]);
});
