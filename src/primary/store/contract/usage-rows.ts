import { holderOf, isGroupUsage } from '../../../shared/client.js';
import { addUsage, monthOf, type UsageDelta } from './usage.js';

const maxClients = 1000;
/**
 * Smaller limit for sub-clients: a key holder can create any number of them, and the rest must remain for other
 * clients.
 */
const maxClientsWithSubClients = 500;
/** Maximum number of models of one client: some model CLIs accept any name of a model. */
const maxModels = 20;
/** Maximum number of rows beyond the first one of each client, without those for `otherModels`. */
const maxMoreRows = 1000;
const maxMoreRowsWithSubClients = 500;
const maxNameLength = 128;
/** Name under which clients beyond the limit are counted. */
const theRest = 'other other';
/** Name under which models beyond the limit are counted. */
const otherModels = 'other';

/** Owns the usage of one day or month by client, model and account. */
export class UsageRows {
  readonly #clients = new Map<string, Map<string, UsageDelta>>();
  #size = 0;
  /** Number of rows for `otherModels`: without them, clients with many models would leave no room for the rest. */
  #otherRows = 0;

  get size(): number {
    return this.#size;
  }

  /** Yields the rows of one client, or of all clients (null). */
  *of(client: string | null = null): Generator<UsageDelta> {
    if (client !== null) return yield* this.#clients.get(client)?.values() ?? [];
    for (const rows of this.#clients.values()) yield* rows.values();
  }

  /** Adds usage under its own names, without a limit. */
  add(more: UsageDelta): void {
    const rows = this.#clients.get(more.client) ?? new Map<string, UsageDelta>();
    this.#clients.set(more.client, rows);
    const key = keyOf(more);
    const before = rows.get(key);
    rows.set(key, before === undefined ? more : addUsage(before, more));
    if (before !== undefined) return;
    this.#size++;
    if (more.model === otherModels) this.#otherRows++;
  }

  /**
   * Returns usage with the names under which it has to be added, to limit the number of rows. Sub-clients beyond the limit
   * count for their key, so that it cannot exceed its budget with new names.
   */
  named(more: UsageDelta): UsageDelta {
    if (isGroupUsage(more.client)) return more; // one row for each group with a budget
    const isHolder = holderOf(more.client) === more.client;
    const hasRoom = this.#clients.size < (isHolder ? maxClients : maxClientsWithSubClients);
    const isNamed = hasRoom || this.#clients.has(more.client);
    if (!isNamed && !isHolder) return this.named({ ...more, client: holderOf(more.client) });
    const client = isNamed ? more.client : theRest;
    const model = more.model.length > maxNameLength ? otherModels : more.model;
    const named = { ...more, client, model };
    const rows = this.#clients.get(client);
    if (rows === undefined || rows.has(keyOf(named))) return named;
    const further = this.#size - this.#otherRows - this.#clients.size;
    const isFull = rows.size >= maxModels || further >= (isHolder ? maxMoreRows : maxMoreRowsWithSubClients);
    return isFull ? { ...named, model: otherModels } : named;
  }

  /** Removes a client. Returns the number of removed rows. */
  remove(client: string): number {
    const rows = [...this.of(client)];
    this.#clients.delete(client);
    this.#size -= rows.length;
    this.#otherRows -= rows.filter(({ model }) => model === otherModels).length;
    return rows.length;
  }
}

function keyOf({ model, account }: UsageDelta): string {
  return JSON.stringify([model, account]);
}

/** Returns the usage that days of a month add to the month. `stored`: the rows that the month has already. */
export function foldDays(month: string, stored: Iterable<UsageDelta>, days: Iterable<UsageDelta>): UsageDelta[] {
  const rows = new UsageRows();
  for (const row of stored) rows.add(row);
  const growth = new UsageRows();
  for (const row of days) {
    const named = rows.named({ ...row, day: month });
    rows.add(named);
    growth.add(named);
  }
  return [...growth.of()];
}

/** Groups rows of days by their month. */
export function byMonth(days: Iterable<UsageDelta>): Map<string, UsageDelta[]> {
  const months = new Map<string, UsageDelta[]>();
  for (const row of days) {
    const rows = months.get(monthOf(row.day)) ?? [];
    months.set(monthOf(row.day), rows);
    rows.push(row);
  }
  return months;
}
