import { randomUUID } from 'node:crypto';
import { timestamp } from '../../../shared/clock.js';
import { maxDays } from '../../usage/usage-ledger.js';
import type { UsageDelta, UsageStore } from '../contract/usage.js';
import type { SqliteAccess } from './sqlite-access.js';

const dayMs = 86_400_000;

/** Owns the names by which the file knows a batch that it is given twice. */
export class SqliteUsage implements UsageStore {
  readonly report = null;
  readonly #access: SqliteAccess;
  readonly #batches = new WeakMap<readonly UsageDelta[], string>();

  constructor(access: SqliteAccess) {
    this.#access = access;
  }

  async *restore(since: string): AsyncGenerator<UsageDelta> {
    yield* (await this.#access.read({ type: 'read-usage', since })) as readonly UsageDelta[];
  }

  async add(rows: readonly UsageDelta[]): Promise<void> {
    const batch = this.#batches.get(rows) ?? randomUUID();
    this.#batches.set(rows, batch);
    const since = timestamp(this.#access.clock.now() - maxDays * dayMs).slice(0, 10);
    await this.#access.ask('usage', { type: 'add-usage', batch, rows, since });
  }
}
