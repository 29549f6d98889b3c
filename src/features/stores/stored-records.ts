import { join } from 'node:path';
import { inLine } from '../../shared/async.js';
import type { ClientText } from '../../shared/client.js';
import { readSmallFile } from '../../shared/config/small-file.js';
import { ignoreFailure, RelayError, storeUnavailable } from '../../shared/errors.js';
import { replaceFile } from '../../shared/replace-file.js';
import type { StoringCore } from './contract/full-store.js';
import type { SharedText } from './contract/shared-text.js';

/** Largest file of records. */
const maxBytes = 16 * 1024 * 1024;
/** Attempts of one change while other hosts change records, too. */
const maxAttempts = 10;

export interface StoredRecordsParts<R> {
  /** Returns a stored record; null for one without the right form, which the next change removes. */
  readonly readRecord: (stored: unknown) => R | null;
  /**
   * Returns the client that has made a record: its export has the record, and its purge removes it. null if no record
   * has data of a person.
   */
  readonly clientOf: ((record: R) => ClientText) | null;
  /** Text that hosts share; null for a single host. */
  readonly shared: SharedText | null;
  /** File of a single host; null if the records end with the service. */
  readonly path: string | null;
  /** Called with all records when they have changed here or at another host. */
  readonly activate: (records: readonly R[]) => Promise<void> | void;
  /** Called when the stored text has been found to be damaged. It counts as empty. */
  readonly onDamaged: () => void;
}

/** New records, the answer to the request that has changed them, and what must succeed before they are stored. */
export interface RecordsChange<R, T> {
  readonly records: readonly R[];
  readonly answer: T;
  readonly before?: () => Promise<void>;
}

/** Where the records with a name are stored. */
export interface RecordsPlace extends Pick<StoredRecordsParts<never>, 'shared' | 'path'> {
  /**
   * Where the records are stored, in the words of reports about stored data: `file`, `memory`, or the kind of the
   * store.
   */
  readonly place: string;
}

/** Returns the place of records: a text that hosts share, else a file in the state folder, else memory. */
export function recordsPlace({ store, config }: Pick<StoringCore, 'store' | 'config'>, name: string): RecordsPlace {
  const shared = store.openText(name);
  const { stateFolder, store: settings } = config;
  if (shared !== null) return { shared, path: null, place: settings.dataPlace };
  if (stateFolder === null) return { shared, path: null, place: 'memory' };
  return { shared, path: join(stateFolder, `${name}.json`), place: 'file' };
}

/** Owns a few records of a feature, which are stored as one text, and used only after they have been stored. */
export class StoredRecords<R> {
  readonly #parts: StoredRecordsParts<R>;
  #records: readonly R[] = [];
  #hasRead = false;
  /** Changes run one after the other, so that each sees the records of the one before it. */
  readonly #inLine = inLine();

  constructor(parts: StoredRecordsParts<R>) {
    this.#parts = parts;
  }

  get all(): readonly R[] {
    return this.#records;
  }

  /** Returns the records of a client, for its export. */
  findRecords(client: ClientText): R[] {
    return this.#records.filter((record) => this.#parts.clientOf?.(record) === client);
  }

  /** Removes the records of these clients. Resolves with their number. */
  removeOf(isAmong: (client: ClientText) => boolean): Promise<number> {
    const { clientOf } = this.#parts;
    return this.update((all) => {
      const left = all.filter((record) => clientOf === null || !isAmong(clientOf(record)));
      const count = all.length - left.length;
      return { records: count === 0 ? all : left, answer: count };
    });
  }

  /** Reads the records of the previous service, or those that other hosts have changed. Rejects only with a defect. */
  readRecords(): Promise<void> {
    return this.#inLine(() => this.#read()).catch(ignoreFailure);
  }

  /**
   * Stores the records of a change. If another host has changed them in between, the change is made again from the new
   * records. Rejects with the error of the change, or with `store_unavailable`.
   */
  update<T>(change: (records: readonly R[]) => RecordsChange<R, T>): Promise<T> {
    return this.#inLine(async () => {
      for (let attempt = 1; attempt <= maxAttempts; attempt++) {
        await this.#read();
        const { records, answer, before } = change(this.#records);
        if (records === this.#records) return answer;
        if (attempt === 1) await before?.();
        if (!(await this.#write(textOf(records)))) continue;
        await this.#replace(records);
        return answer;
      }
      throw storeUnavailable('other hosts are changing the same records');
    });
  }

  async #read(): Promise<void> {
    const records = await this.#readChanged();
    this.#hasRead = true;
    if (records !== null) await this.#replace(records);
  }

  /** Returns the stored records; null if they are those in use. */
  async #readChanged(): Promise<readonly R[] | null> {
    const { shared, path } = this.#parts;
    if (shared !== null) return shared.readText((text) => (text === null ? [] : this.#recordsIn(text)));
    if (path === null || this.#hasRead) return null;
    const text = await readSmallFile(path, maxBytes).catch(({ code }: NodeJS.ErrnoException) => {
      if (code === 'ENOENT' || code === 'ENOTDIR') return null;
      throw storeUnavailable(`a file in the state folder cannot be read (${code ?? 'too large'})`);
    });
    return text === null ? null : this.#recordsIn(text);
  }

  #recordsIn(text: string): R[] {
    const { readRecord, onDamaged } = this.#parts;
    const { version, records } = Object(parseJson(text)) as { version?: unknown; records?: unknown };
    if (version === 1 && Array.isArray(records)) return records.flatMap((each) => readRecord(each) ?? []);
    onDamaged();
    return [];
  }

  async #write(text: string): Promise<boolean> {
    const { shared, path } = this.#parts;
    if (shared !== null) return shared.writeText(text);
    if (path === null) return true;
    try {
      await replaceFile(path, text);
    } catch (error) {
      const { code = 'unknown' } = error as NodeJS.ErrnoException;
      throw error instanceof RelayError ? error : storeUnavailable(`the state folder cannot be written (${code})`);
    }
    return true;
  }

  async #replace(records: readonly R[]): Promise<void> {
    this.#records = records;
    await this.#parts.activate(records);
  }
}

function textOf(records: readonly unknown[]): string {
  return `${JSON.stringify({ version: 1, records }, null, 1)}\n`;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
