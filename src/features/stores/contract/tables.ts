import type { StoreTable } from '../../../primary/store/contract/store-table.js';
import type { ClientText } from '../../../shared/client.js';

/** Row of a declared table, as JSON. Times are in milliseconds since the epoch. */
export interface TableRow {
  /** Id of the row. A row with the same id is stored once, whichever host adds it. */
  readonly id: string;
  /** Client that the row is about; empty if it is about none. */
  readonly client: ClientText;
  readonly createdAt: number;
  /** Time from which a host may take the row; null when the row has ended. */
  readonly nextAt: number | null;
}

/** Age since its creation from which a row is removed if no feature declares its table any more, in milliseconds. */
export const undeclaredKeepMs = 40 * 86_400_000;

/** Whether an added row was new, and the number of rows that were removed for it before they had ended. */
export interface AddedRow {
  readonly isNew: boolean;
  readonly dropped: number;
}

/** Stores the rows of one table until they have ended, and a while longer. All methods reject with `store_unavailable`. */
export interface TableStore<R extends TableRow = TableRow> {
  /**
   * Adds a row that has not ended, unless one with its id is known. At each limit that it reaches, it
   * removes one row: one that has ended, else one about a client, else any; the oldest in each case.
   */
  addRow(row: R): Promise<AddedRow>;
  /**
   * Returns rows that are due, the longest due first. No host gets them again until the time `until`, so that the work of
   * a host that dies is done again.
   */
  take(now: number, until: number, limit: number): Promise<readonly R[]>;
  /** Replaces a row. Has no effect if it was removed. */
  updateRow(row: R): Promise<void>;
  /** Returns the newest rows, the newest first. */
  listRows(limit: number): Promise<readonly R[]>;
}

/** Tables of a store by name. */
export type StoreTables = ReadonlyMap<string, TableStore>;

/** Returns a table that a feature has declared. The declaration says which rows the table has. */
export function openTable<R extends TableRow>(tables: StoreTables, { name }: StoreTable): TableStore<R> {
  const table = tables.get(name);
  if (table === undefined) throw new Error(`the table ${name} is not declared`);
  return table as TableStore as TableStore<R>;
}

/** Whether a row counts for its client. */
export function isByClient({ byClients: { field, value } }: StoreTable, row: TableRow): boolean {
  return (row as TableRow & Readonly<Record<string, unknown>>)[field] === value;
}
