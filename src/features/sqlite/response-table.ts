import { type ClientText, rowsOfClients } from '../../shared/client.js';
import type { Message } from '../../shared/job.js';
import { pieceOf } from '../stores/contract/answers.js';
import {
  type BodyPiece,
  type PutVerdict,
  type ResponseCounts,
  type ResponseKey,
  type ResponseLimits,
  type ResponseNode,
  type ResponsePart,
  responsePieceBytes,
  written,
} from '../stores/contract/responses.js';
import { type ResponseHead, ResponseIndex } from '../stores/shares/response-index.js';
import type { SqlRow, Statements } from './node-sqlite.js';

/** The result of a change of the table, and the totals after it. */
export interface ResponseChange<R> {
  readonly result: R;
  /** Whether text was removed. */
  readonly hasRemoved: boolean;
  readonly counts: ResponseCounts;
}

/** Owns the responses in the file. */
export class ResponseTable {
  readonly #sql: Statements;
  /** Index of all responses; null until first needed. */
  #index: ResponseIndex | null = null;

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  /**
   * Makes the next call read the index from the file again. Called after a failed transaction, and after another table
   * has removed responses.
   */
  recount(): void {
    this.#index = null;
  }

  putResponse(node: ResponseNode, limits: ResponseLimits): ResponseChange<PutVerdict> {
    const { id, client, previous, createdAt, head } = node;
    const { messages, body, bytes, weight } = written(node, limits);
    const { verdict, evicted: gone } = this.#known.put({ id, client, previous, createdAt, bytes, weight }, limits);
    if (verdict === 'stored') {
      this.#sql.run(
        `INSERT INTO responses (id, client, previous, created_at, bytes, weight, body, messages, head)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        ...[id, client, previous, createdAt, bytes, weight, body, messages, head],
      );
    }
    return this.#changed(verdict, gone);
  }

  readPiece(key: ResponseKey, from: number, after: number, part: ResponsePart): BodyPiece | null {
    if (!this.#known.has(key, after)) return null;
    const query = `SELECT substr(${part}, ?, ?) AS piece, length(${part}) AS bytes FROM responses WHERE id = ?`;
    const row = this.#sql.get(query, from + 1, responsePieceBytes, key.id);
    return row === undefined ? null : { text: pieceOf(row.piece as Uint8Array), bytes: Number(row.bytes) };
  }

  readHead(key: ResponseKey, after: number): string | null {
    if (this.#known.chain(key, after).length === 0) return null;
    return String(this.#sql.get('SELECT head FROM responses WHERE id = ?', key.id)?.head ?? '');
  }

  readMessages(key: ResponseKey, after: number): Message[] | null {
    const chain = this.#known.chain(key, after).toReversed();
    if (chain.length === 0) return null;
    const rows = chain.map((id) => this.#sql.get('SELECT messages FROM responses WHERE id = ?', id));
    return rows.flatMap((row) => JSON.parse(textOf(row?.messages)) as Message[]);
  }

  removeResponse(key: ResponseKey): ResponseChange<boolean> {
    const removed = this.#known.removeHead(key);
    if (removed?.length === 0) this.#sql.run('UPDATE responses SET body = NULL WHERE id = ?', key.id);
    const change = this.#changed(removed !== null, removed ?? []);
    return { ...change, hasRemoved: change.result };
  }

  expireResponses(after: number): ResponseChange<null> {
    return this.#changed(null, this.#known.expireHeads(after));
  }

  #changed<R>(result: R, removedIds: readonly string[]): ResponseChange<R> {
    for (const id of removedIds) this.#sql.run('DELETE FROM responses WHERE id = ?', id);
    return { result, hasRemoved: removedIds.length > 0, counts: this.#known.counts };
  }

  get #known(): ResponseIndex {
    if (this.#index !== null) return this.#index;
    const query = `SELECT id, client, previous, created_at, bytes, weight, body IS NULL AS is_removed
                   FROM responses ORDER BY number`;
    this.#index = new ResponseIndex();
    this.#index.restoreHeads(rowsOfClients(this.#sql.all(query)).map(headOf));
    return this.#index;
  }
}

function headOf(row: SqlRow): ResponseHead {
  return {
    id: String(row.id),
    client: row.client as ClientText,
    previous: row.previous === null ? null : String(row.previous),
    createdAt: Number(row.created_at),
    bytes: Number(row.bytes),
    weight: Number(row.weight),
    isRemoved: row.is_removed === 1,
  };
}

function textOf(blob: unknown): string {
  const { buffer, byteOffset, length } = blob as Uint8Array;
  return Buffer.from(buffer, byteOffset, length).toString();
}
