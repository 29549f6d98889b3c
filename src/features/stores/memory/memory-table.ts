import type { StoreTable } from '../../../primary/store/contract/store-table.js';
import { type ClientText, holderOf, noClient } from '../../../shared/client.js';
import { type AddedRow, isByClient, type TableRow, type TableStore } from '../contract/tables.js';

/** Owns the rows of a declared table of a service without a durable store. */
export class MemoryTable<R extends TableRow> implements TableStore<R> {
  readonly #table: StoreTable;
  /** Rows, oldest first. */
  readonly #byId = new Map<string, R>();

  constructor(table: StoreTable) {
    this.#table = table;
  }

  async addRow(row: R): Promise<AddedRow> {
    const { id, client, createdAt } = row;
    this.expireRows(createdAt);
    if (this.#byId.has(id)) return { isNew: false, dropped: 0 };
    const dropped = isByClient(this.#table, row) ? this.#makeRoomForClient(client) : this.#makeRoomForOther();
    this.#byId.set(id, row);
    return { isNew: true, dropped };
  }

  /** Removes the ended rows whose time has passed. */
  expireRows(now: number): void {
    for (const { id, createdAt, nextAt } of this.#byId.values()) {
      if (createdAt >= now - this.#table.keepMs) break;
      if (nextAt === null) this.#byId.delete(id);
    }
  }

  #makeRoomForClient(client: ClientText): number {
    const { max, maxOfHolder } = this.#table.byClients;
    const holder = holderOf(client);
    const holderRows = this.#rows(true).filter((row) => holderOf(row.client) === holder);
    const dropped = holderRows.length >= maxOfHolder ? this.#dropOne(holderRows) : 0;
    const clientRows = this.#rows(true);
    return clientRows.length >= max ? dropped + this.#dropOne(clientRows) : dropped;
  }

  #makeRoomForOther(): number {
    const others = this.#rows(false);
    return others.length >= this.#table.maxOthers ? this.#dropOne(others) : 0;
  }

  /** Returns the rows that clients cause, or all others. */
  #rows(areByClients: boolean): R[] {
    return [...this.#byId.values()].filter((row) => isByClient(this.#table, row) === areByClients);
  }

  async take(now: number, until: number, limit: number): Promise<readonly R[]> {
    const due = [...this.#byId.values()].filter(({ nextAt }) => nextAt !== null && nextAt <= now);
    const taken = due.sort((a, b) => (a.nextAt ?? 0) - (b.nextAt ?? 0)).slice(0, limit);
    for (const row of taken) this.#byId.set(row.id, { ...row, nextAt: until });
    return taken;
  }

  async updateRow(row: R): Promise<void> {
    if (this.#byId.has(row.id)) this.#byId.set(row.id, row);
  }

  async listRows(limit: number): Promise<readonly R[]> {
    return [...this.#byId.values()].slice(-limit).toReversed();
  }

  get clients(): ClientText[] {
    return [...this.#byId.values()].map(({ client }) => client);
  }

  /** Removes the rows of a client. Returns their number. */
  removeOf(client: ClientText): number {
    const found = [...this.#byId.values()].filter((row) => row.client === client);
    for (const { id } of found) this.#byId.delete(id);
    return found.length;
  }

  /** Removes the first one that has ended, else the first one about a client. Returns 1 if it had not ended. */
  #dropOne(oldestFirst: readonly R[]): number {
    const victim =
      oldestFirst.find(({ nextAt }) => nextAt === null) ??
      oldestFirst.find(({ client }) => client !== noClient) ??
      oldestFirst[0];
    if (victim === undefined) return 0;
    this.#byId.delete(victim.id);
    return victim.nextAt === null ? 0 : 1;
  }
}
