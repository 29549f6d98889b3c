import type { ClientText } from '../../shared/client.js';
import type { FilePurpose, PageOrder } from '../../shared/files.js';
import type {
  Appended,
  BatchApi,
  BatchState,
  CompletedFile,
  FileStore,
  FileUsage,
  StoredBatch,
  StoredFile,
  StoredPage,
} from '../stores/contract/files.js';
import { call, type TableCall } from './calls.js';
import type { SqliteClient } from './client.js';

/**
 * Files and batches in the database. After a write with an unknown outcome, the file may have the bytes: an upload
 * fails and is removed, and a batch reads its stored progress again.
 */
export class SqliteFiles implements FileStore {
  readonly isDurable = true;
  readonly #client: SqliteClient;

  constructor(client: SqliteClient) {
    this.#client = client;
  }

  usageOf(holder: ClientText): Promise<FileUsage> {
    return this.#ask(call('files', 'usageOf', holder));
  }

  createFile(file: StoredFile): Promise<void> {
    return this.#ask(call('files', 'createFile', file));
  }

  appendPieces(pieces: readonly Appended[]): Promise<void> {
    return this.#ask(call('files', 'appendPieces', pieces));
  }

  completeFile(id: string, whole: CompletedFile): Promise<boolean> {
    return this.#ask(call('files', 'completeFile', id, whole));
  }

  findFile(id: string, client: ClientText): Promise<StoredFile | null> {
    return this.#ask(call('files', 'findFile', id, client));
  }

  async readPiece(id: string, from: number): Promise<Buffer> {
    const { buffer, byteOffset, length } = await this.#ask(call('files', 'readPiece', id, from));
    return Buffer.from(buffer, byteOffset, length);
  }

  listFiles(order: PageOrder, purposes: readonly FilePurpose[]): Promise<StoredPage<StoredFile>> {
    return this.#ask(call('files', 'listFiles', order, purposes));
  }

  async removeFile(id: string): Promise<void> {
    await this.#ask(call('files', 'removeFile', id));
    this.#client.tidySoon();
  }

  async expireFiles(now: number, brokenBefore: number): Promise<void> {
    if (!this.#client.isUp) return;
    if (await this.#ask(call('files', 'expireFiles', now, brokenBefore))) this.#client.tidySoon();
  }

  addBatch(batch: StoredBatch): Promise<void> {
    return this.#ask(call('files', 'addBatch', batch));
  }

  findBatch(id: string, client: ClientText): Promise<StoredBatch | null> {
    return this.#ask(call('files', 'findBatch', id, client));
  }

  listBatches(order: PageOrder, apis: readonly BatchApi[] | null): Promise<StoredPage<StoredBatch>> {
    return this.#ask(call('files', 'listBatches', order, apis));
  }

  openBatches(holder: ClientText): Promise<readonly StoredBatch[]> {
    return this.#ask(call('files', 'openBatches', holder));
  }

  endedBeyond(holder: ClientText, count: number): Promise<readonly StoredBatch[]> {
    return this.#ask(call('files', 'endedBeyond', holder, count));
  }

  cancelBatch(id: string, at: number): Promise<void> {
    return this.#ask(call('files', 'cancelBatch', id, at));
  }

  async removeBatch(id: string): Promise<void> {
    await this.#ask(call('files', 'removeBatch', id));
    this.#client.tidySoon();
  }

  /** Lists all open batches: no other host has this file. */
  leaseBatches(): Promise<readonly StoredBatch[]> {
    return this.#ask(call('files', 'openBatches', null));
  }

  advance(id: string, progress: BatchState, results: readonly Appended[]): Promise<number | null | 'lost'> {
    return this.#ask(call('files', 'advance', id, progress, results));
  }

  #ask<R>(tableCall: TableCall<R>): Promise<R> {
    return this.#client.ask('file', tableCall);
  }
}
