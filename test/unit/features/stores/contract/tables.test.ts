import { isByClient, openTable } from '../../../../../src/features/stores/contract/tables.js';
import { MemoryTable } from '../../../../../src/features/stores/memory/memory-table.js';
import type { StoreTable } from '../../../../../src/primary/store/contract/store-table.js';

const notes: StoreTable = {
  ...{ name: 'notes', rowName: 'note', keepMs: 1000, maxOthers: 2 },
  byClients: { field: 'cause', value: 'job', max: 4, maxOfHolder: 2 },
};
const row = { id: 'a', client: 'key ada' as const, createdAt: 1, nextAt: 1 };

describe('A declared table', () => {
  it('is found by its name, and only if it is declared', async () => {
    const tables = new Map([[notes.name, new MemoryTable(notes)]]);
    expect(await openTable(tables, notes).addRow(row)).toEqual({ isNew: true, dropped: 0 });
    expect(() => openTable(tables, { ...notes, name: 'others' })).toThrow('the table others is not declared');
  });

  it('counts a row for its client if the declared field says that a client causes it', () => {
    const causes = ['job', 'other', undefined].map((cause) => ({ ...row, cause }));
    expect(causes.map((each) => isByClient(notes, each))).toEqual([true, false, false]);
  });

  it('has places for rows without the field, too', async () => {
    const table = new MemoryTable<typeof row & { readonly cause?: string }>(notes);
    for (const id of ['a', 'b', 'c']) await table.addRow({ ...row, id });
    for (const id of ['d', 'e', 'f']) await table.addRow({ ...row, id, cause: 'job' });
    expect((await table.listRows(9)).map(({ id }) => id)).toEqual(['f', 'e', 'c', 'b']);
  });
});
