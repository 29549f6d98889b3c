import { link, open, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Counts, Lifetimes } from '../../primary/store/contract/store.js';
import type { StoreTable } from '../../primary/store/contract/store-table.js';
import type { StoreBackup, StoreReport } from '../../shared/api/store.js';
import { inLine } from '../../shared/async.js';
import type { ClientText } from '../../shared/client.js';
import { invalid, RelayError, storeUnavailable } from '../../shared/errors.js';
import type { FullUpkeep } from '../stores/contract/full-store.js';
import { call } from './calls.js';
import type { SqliteClient } from './client.js';
import { bytesOfFile, copiesBeside, faultsOfFiles, makeEmptyFile } from './files.js';
import { expiryAt } from './whole-file.js';

/** Endings of file names that belong to the store itself: SQLite or the service removes such files. */
const ownEndings = ['-wal', '-shm', '-journal', '.pid'];

/** Backs up, checks and purges one file, one operation at a time: each reads the whole file. */
export class SqliteUpkeep implements FullUpkeep {
  readonly #path: string;
  readonly #client: SqliteClient;
  readonly #tables: readonly StoreTable[];
  readonly #line = inLine();

  /** `tables`: tables that features declare. */
  constructor(path: string, client: SqliteClient, tables: readonly StoreTable[] = []) {
    this.#path = path;
    this.#tables = tables;
    this.#client = client;
  }

  backup(name: string): Promise<StoreBackup> {
    return this.backupTo(join(dirname(this.#path), name));
  }

  /** Writes a backup under a temporary name and renames it when it is complete. */
  backupTo(path: string): Promise<StoreBackup> {
    return this.#line(async () => {
      const { clock } = this.#client;
      const begunMs = clock.monotonicMs();
      const part = `${path}.part`;
      if (ownEndings.some((ending) => path === this.#path + ending))
        throw invalid('name', 'is a name of the store itself');
      try {
        await rm(part, { force: true }); // left by a killed backup
        await makeEmptyFile(part);
        await this.#client.askAside(call('file', 'backup', part));
        await synced(part);
        await link(part, path);
      } catch (error) {
        throw asRefusal(error, path);
      } finally {
        await rm(part, { force: true }).catch(() => {});
      }
      await synced(dirname(path));
      const durationMs = Math.round(clock.monotonicMs() - begunMs);
      return { path, bytes: await bytesOfFile(path), duration_ms: durationMs };
    });
  }

  verify(lifetimes: Lifetimes): Promise<StoreReport> {
    return this.#line(async () => {
      const expiry = expiryAt(this.#client.clock.now(), lifetimes);
      const { version, faults, rows, expired } = await this.#client.askAside(call('file', 'verify', expiry));
      const all = [...faults, ...(await faultsOfFiles(this.#path))];
      const bytes = await bytesOfFile(this.#path);
      const copies = await this.copies();
      return { kind: 'sqlite', path: this.#path, version, bytes, faults: all, rows, expired, copies };
    });
  }

  clientsWith(owner: ClientText): Promise<readonly ClientText[]> {
    return this.#line(() => this.#client.askAside(call('file', 'clientsWith', owner)));
  }

  idsOf(client: ClientText, kind: 'response' | 'answer'): Promise<readonly string[]> {
    return this.#client.askAside(call('file', 'idsOf', client, kind));
  }

  purge(client: ClientText): Promise<Counts> {
    return this.#line(async () => {
      const counts = await this.#client.askAside(call('file', 'purge', client));
      await this.#client.tidyAll();
      return counts;
    });
  }

  async expireRows(now: number): Promise<void> {
    if (!this.#client.isUp) return;
    if (await this.#client.ask('file', call('declared', 'expireRows', this.#tables, now))) this.#client.tidySoon();
  }

  copies(): Promise<string[]> {
    return copiesBeside(this.#path);
  }
}

function asRefusal(error: unknown, path: string): unknown {
  const { code } = error as NodeJS.ErrnoException;
  if (error instanceof RelayError || code === undefined) return error;
  if (code === 'EEXIST') return invalid('name', `the file ${path} already exists`);
  return storeUnavailable(`${path} cannot be written (${code})`);
}

async function synced(path: string): Promise<void> {
  const file = await open(path, 'r');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}
