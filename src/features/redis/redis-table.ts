import type { StoreTable } from '../../primary/store/contract/store-table.js';
import { holderOf } from '../../shared/client.js';
import {
  type AddedRow,
  isByClient,
  type TableRow,
  type TableStore,
  undeclaredKeepMs,
} from '../stores/contract/tables.js';
import type { RedisConnection } from './redis-connection.js';

/** Rows of a declared table in Redis. Each due row goes to only one of the hosts until its lease ends. */
export class RedisTable<R extends TableRow> implements TableStore<R> {
  readonly #redis: RedisConnection;
  readonly #table: StoreTable;

  constructor(redis: RedisConnection, table: StoreTable) {
    this.#redis = redis;
    this.#table = table;
  }

  async addRow(row: R): Promise<AddedRow> {
    const { keepMs, byClients, maxOthers } = this.#table;
    const { id, client, createdAt, nextAt } = row;
    const isOfClient = isByClient(this.#table, row);
    const [share, max] = isOfClient ? [holderOf(client), byClients.max] : ['', maxOthers];
    const limits = { before: createdAt - keepMs, max, maxOfHolder: byClients.maxOfHolder };
    const args = { id, client, share, createdAt, nextAt: nextAt ?? '', record: JSON.stringify(row), ...limits };
    const [isNew, dropped = 0] = (await this.#run('addRow', args)).map(Number);
    return { isNew: isNew === 1, dropped };
  }

  async take(now: number, until: number, limit: number): Promise<readonly R[]> {
    return rowsIn<R>(await this.#run('takeRows', { at: now, untilTime: until, limit }));
  }

  async updateRow(row: R): Promise<void> {
    await this.#run('updateRow', { id: row.id, nextAt: row.nextAt ?? '', record: JSON.stringify(row) });
  }

  async listRows(limit: number): Promise<readonly R[]> {
    return rowsIn<R>(await this.#run('listRows', { limit }));
  }

  async #run(script: string, args: Readonly<Record<string, string | number>>): Promise<readonly unknown[]> {
    const { name: table, rowName: row, keepMs } = this.#table;
    const lifetime = { ttlMs: keepMs + undeclaredKeepMs };
    const { remaining } = await this.#redis.run(row, `tables.${script}`, { table, row, ...lifetime, ...args });
    return remaining;
  }
}

function rowsIn<R>([records]: readonly unknown[]): R[] {
  return (records as readonly unknown[]).map((record) => JSON.parse(String(record)) as R);
}
