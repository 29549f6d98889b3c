import { holderOf, isAddedUsage, optionHolder, readClientId, type UsageName } from '../../../shared/client.js';
import { addUsage, monthOf, type UsageDelta } from './usage.js';

/** Limit of addresses and local users, which have no limits of their own. Keys and people are always counted by name. */
const maxOthers = 1000;
/** Limit of sub-clients: a key holder can create any number of them. */
const maxSubClients = 500;
/** Limit of keys of one person: a person can make and delete any number of them. */
const maxKeysOfPerson = 100;
/** Maximum number of models of one client: some model CLIs accept any name of a model. */
const maxModels = 20;
/** Maximum number of rows beyond the first one of each client, without those for `otherModels`. */
const maxMoreRows = 1000;
const maxMoreRowsWithSubClients = 500;
const maxNameLength = 128;
/** Name under which clients beyond the limit are counted. */
const theRest: UsageName = 'other other';
/** Name under which models beyond the limit are counted. */
const otherModels = 'other';

/** Owns the usage of one day or month by client, model and account. */
export class UsageRows {
  readonly #clients = new Map<string, Map<string, UsageDelta>>();
  /** Number of clients with a common limit, by its name. */
  readonly #crowds = new Map<string, number>();
  #size = 0;
  /** Number of rows for `otherModels`: without them, clients with many models would leave no room for the rest. */
  #otherRows = 0;

  get size(): number {
    return this.#size;
  }

  /** Yields the rows of one client, or of all clients (null). */
  *of(client: UsageName | null = null): Generator<UsageDelta> {
    if (client !== null) return yield* this.#clients.get(client)?.values() ?? [];
    for (const rows of this.#clients.values()) yield* rows.values();
  }

  /** Adds usage under its own names, without a limit. */
  addUsage(more: UsageDelta): void {
    if (!this.#clients.has(more.client)) this.#countClient(more.client, 1);
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
   * Returns usage with the names under which it has to be added, to limit the number of rows. Keys of people and
   * sub-clients beyond their limits count for their holder, so that it cannot exceed its limits with new names.
   */
  named(more: UsageDelta): UsageDelta {
    if (isAddedUsage(more.client)) return more; // few rows for each line of the keys file
    const client = this.#nameFor(more.client);
    const model = more.model.length > maxNameLength ? otherModels : more.model;
    const named = { ...more, client, model };
    const rows = this.#clients.get(client);
    if (rows === undefined || rows.has(keyOf(named))) return named;
    const further = this.#size - this.#otherRows - this.#clients.size;
    const maxFurther = holderOf(client) === client ? maxMoreRows : maxMoreRowsWithSubClients;
    const isFull = rows.size >= maxModels || further >= maxFurther;
    return isFull ? { ...named, model: otherModels } : named;
  }

  /** Returns the client for which usage is counted: this one if there is room, else its key, its holder or the rest. */
  #nameFor(client: UsageName): UsageName {
    const crowd = crowdOf(client);
    const hasRoom = crowd === null || (this.#crowds.get(crowd.name) ?? 0) < crowd.limit;
    if (hasRoom || this.#clients.has(client)) return client;
    const [key, holder] = [optionHolder(client), holderOf(client)];
    if (key !== client) return this.#nameFor(key);
    return holder === client ? theRest : holder;
  }

  #countClient(client: UsageName, change: 1 | -1): void {
    const { name } = crowdOf(client) ?? {};
    if (name !== undefined) this.#crowds.set(name, (this.#crowds.get(name) ?? 0) + change);
  }

  /** Removes a client. Returns the number of removed rows. */
  removeClient(client: UsageName): number {
    const rows = [...this.of(client)];
    if (this.#clients.has(client)) this.#countClient(client, -1);
    this.#clients.delete(client);
    this.#size -= rows.length;
    this.#otherRows -= rows.filter(({ model }) => model === otherModels).length;
    return rows.length;
  }
}

/** Returns the limit that a client shares with others, and its name; null for a key or a person, which have no limit. */
function crowdOf(client: UsageName): { readonly name: string; readonly limit: number } | null {
  if (isAddedUsage(client)) return null;
  const { kind } = readClientId(client);
  const holder = holderOf(client);
  if (optionHolder(client) !== client) return { name: 'sub-clients', limit: maxSubClients };
  if (holder !== client) return { name: `keys of ${holder}`, limit: maxKeysOfPerson };
  return kind === 'user' || kind === 'address' ? { name: 'others', limit: maxOthers } : null;
}

function keyOf({ model, account }: UsageDelta): string {
  return JSON.stringify([model, account]);
}

/** Returns the usage that days of a month add to the month. `stored`: the rows that the month has already. */
export function foldDays(month: string, stored: Iterable<UsageDelta>, days: Iterable<UsageDelta>): UsageDelta[] {
  const rows = new UsageRows();
  for (const row of stored) rows.addUsage(row);
  const growth = new UsageRows();
  for (const row of days) {
    const named = rows.named({ ...row, day: month });
    rows.addUsage(named);
    growth.addUsage(named);
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
