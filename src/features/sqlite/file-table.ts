import type { ClientText } from '../../shared/client.js';
import type { FilePurpose, PageOrder } from '../../shared/files.js';
import {
  type Appended,
  type BatchApi,
  type BatchState,
  type CompletedFile,
  endedAtOnce,
  type FileUsage,
  filePieceBytes,
  type StoredBatch,
  type StoredFile,
  type StoredPage,
} from '../stores/contract/files.js';
import type { SqlRow, SqlValue, Statements } from './node-sqlite.js';

/** Pieces of a file that are joined by one read. */
const piecesAtOnce = 200;

const fileColumns = 'record, purpose, bytes, lines, is_whole, expires_at';
const batchColumns = 'record, progress, cancel_at';
const isOpen = "status IN ('waiting', 'running')";

/** Bytes to add to a file, as the thread gets them. */
interface ReceivedPiece extends Omit<Appended, 'data'> {
  readonly data: Uint8Array;
}

/** Owns the files and batches in the database. */
export class FileTable {
  readonly #sql: Statements;

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  usageOf(holder: ClientText): FileUsage {
    const row = this.#sql.get(
      'SELECT count(*) AS files, coalesce(sum(bytes), 0) AS bytes FROM files WHERE holder = ?',
      holder,
    );
    return { files: Number(row?.files), bytes: Number(row?.bytes) };
  }

  createFile(file: StoredFile): void {
    const { id, client, holder, purpose, createdAt, expiresAt } = file;
    this.#sql.run(
      `INSERT INTO files (id, client, holder, purpose, record, bytes, lines, is_whole, created_at, expires_at)
       VALUES (?, ?, ?, ?, ?, 0, 0, 0, ?, ?)`,
      ...[id, client, holder, purpose, JSON.stringify(file), createdAt, expiresAt],
    );
  }

  appendPieces(pieces: readonly ReceivedPiece[]): void {
    for (const { id, data } of pieces) {
      const row = this.#sql.get('SELECT number, bytes FROM files WHERE id = ?', id);
      if (row === undefined || data.length === 0) continue;
      const { number = null, bytes } = row;
      for (let from = 0; from < data.length; from += filePieceBytes) {
        const piece = data.subarray(from, from + filePieceBytes);
        const insert = 'INSERT INTO file_pieces (file, start, data) VALUES (?, ?, ?)';
        this.#sql.run(insert, number, Number(bytes) + from, piece);
      }
      this.#sql.run('UPDATE files SET bytes = ? WHERE number = ?', Number(bytes) + data.length, number);
    }
  }

  completeFile(id: string, { purpose, lines, expiresAt }: CompletedFile): boolean {
    const done = this.#sql.get(
      'UPDATE files SET is_whole = 1, purpose = ?, lines = ?, expires_at = ? WHERE id = ? RETURNING number',
      ...[purpose, lines, expiresAt, id],
    );
    return done !== undefined;
  }

  findFile(id: string, client: ClientText): StoredFile | null {
    const row = this.#sql.get(`SELECT ${fileColumns} FROM files WHERE id = ? AND client = ?`, id, client);
    return row === undefined ? null : fileOf(row);
  }

  readPiece(id: string, from: number): Uint8Array {
    const file = '(SELECT number FROM files WHERE id = ?)';
    const rows = this.#sql.all(
      `SELECT start, data FROM file_pieces WHERE file = ${file} AND start >= coalesce((
         SELECT max(start) FROM file_pieces WHERE file = ${file} AND start <= ?), 0)
       ORDER BY start LIMIT ${piecesAtOnce}`,
      ...[id, id, from],
    );
    const pieces: Uint8Array[] = [];
    let room = filePieceBytes;
    for (const { start, data } of rows) {
      const piece = (data as Uint8Array).subarray(Math.max(0, from - Number(start))).subarray(0, room);
      pieces.push(piece);
      room -= piece.length;
      if (room === 0) break;
    }
    return Buffer.concat(pieces);
  }

  listFiles(order: PageOrder, purposes: readonly FilePurpose[]): StoredPage<StoredFile> {
    const more = `is_whole = 1 AND purpose IN (${purposes.map(() => '?').join()})`;
    return this.#page('files', fileColumns, order, more, purposes, fileOf);
  }

  removeFile(id: string): void {
    this.#sql.run('DELETE FROM files WHERE id = ?', id);
  }

  /** Returns whether anything was removed. */
  expireFiles(now: number, brokenBefore: number): boolean {
    const removed = [
      ...this.#sql.all(
        `DELETE FROM files WHERE (expires_at <= ? OR (is_whole = 0 AND created_at < ?)) AND NOT EXISTS (
           SELECT 1 FROM batches WHERE ${isOpen} AND files.id IN (input_file, output_file, error_file))
         RETURNING number`,
        ...[now, brokenBefore],
      ),
      ...this.#sql.all(`DELETE FROM batches WHERE remove_at <= ? AND NOT (${isOpen}) RETURNING number`, now),
    ];
    return removed.length > 0;
  }

  addBatch(batch: StoredBatch): void {
    const { id, client, holder, api, inputFile, outputFile, errorFile, removeAt, progress } = batch;
    this.#sql.run(
      `INSERT INTO batches
         (id, client, holder, api, input_file, output_file, error_file, status, record, progress, remove_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      ...[id, client, holder, api, inputFile, outputFile, errorFile, progress.status],
      ...[JSON.stringify(batch), JSON.stringify(progress), removeAt],
    );
  }

  findBatch(id: string, client: ClientText): StoredBatch | null {
    const row = this.#sql.get(`SELECT ${batchColumns} FROM batches WHERE id = ? AND client = ?`, id, client);
    return row === undefined ? null : batchOf(row);
  }

  listBatches(order: PageOrder, apis: readonly BatchApi[] | null): StoredPage<StoredBatch> {
    const more = apis === null ? '1' : `api IN (${apis.map(() => '?').join()})`;
    return this.#page('batches', batchColumns, order, more, apis ?? [], batchOf);
  }

  /** `holder`: null for all. */
  openBatches(holder: ClientText | null): StoredBatch[] {
    return this.#sql
      .all(
        `SELECT ${batchColumns} FROM batches WHERE ${isOpen} AND (? IS NULL OR holder = ?) ORDER BY number`,
        ...[holder, holder],
      )
      .map(batchOf);
  }

  endedBeyond(holder: ClientText, count: number): StoredBatch[] {
    return this.#sql
      .all(
        `SELECT ${batchColumns} FROM batches WHERE holder = ? AND NOT (${isOpen}) AND number <=
           (SELECT number FROM batches WHERE holder = ? ORDER BY number DESC LIMIT 1 OFFSET ?)
         ORDER BY number LIMIT ?`,
        ...[holder, holder, count, endedAtOnce],
      )
      .map(batchOf);
  }

  cancelBatch(id: string, at: number): void {
    this.#sql.run(`UPDATE batches SET cancel_at = coalesce(cancel_at, ?) WHERE id = ? AND ${isOpen}`, at, id);
  }

  removeBatch(id: string): void {
    this.#sql.run('DELETE FROM batches WHERE id = ?', id);
  }

  advance(id: string, progress: BatchState, results: readonly ReceivedPiece[]): number | null | 'lost' {
    const row = this.#sql.get(
      `UPDATE batches SET progress = ?, status = ?, remove_at = coalesce(?, remove_at) WHERE id = ?
       RETURNING cancel_at`,
      ...[JSON.stringify(progress), progress.status, progress.removeAt ?? null, id],
    );
    if (row === undefined) return 'lost';
    this.appendPieces(results);
    return row.cancel_at === null ? null : Number(row.cancel_at);
  }

  #page<T>(
    table: 'files' | 'batches',
    columns: string,
    { client, after, limit, isAscending }: PageOrder,
    more: string,
    values: readonly SqlValue[],
    entryOf: (row: SqlRow) => T,
  ): StoredPage<T> {
    const last = `(SELECT number FROM ${table} WHERE id = ?)`;
    const [sign, direction] = isAscending ? ['>', 'ASC'] : ['<', 'DESC'];
    const rows = this.#sql.all(
      `SELECT ${columns} FROM ${table} WHERE client = ? AND ${more} AND (? IS NULL OR number ${sign} ${last})
       ORDER BY number ${direction} LIMIT ?`,
      ...[client, ...values, after, after, limit + 1],
    );
    return { items: rows.slice(0, limit).map(entryOf), hasMore: rows.length > limit };
  }
}

function fileOf(row: SqlRow): StoredFile {
  return {
    ...(JSON.parse(String(row.record)) as StoredFile),
    purpose: String(row.purpose) as FilePurpose,
    bytes: Number(row.bytes),
    lines: Number(row.lines),
    isWhole: row.is_whole === 1,
    expiresAt: Number(row.expires_at),
  };
}

function batchOf(row: SqlRow): StoredBatch {
  const progress = JSON.parse(String(row.progress)) as BatchState;
  const cancelAt = row.cancel_at === null ? null : Number(row.cancel_at);
  return { ...(JSON.parse(String(row.record)) as StoredBatch), progress, cancelAt };
}
