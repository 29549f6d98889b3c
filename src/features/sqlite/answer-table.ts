import { type ClientText, rowsOfClients } from '../../shared/client.js';
import {
  type AnswerOfKey,
  answerTtlMs,
  type ClientKey,
  maxAnswerBytes,
  pieceOf,
  type RecordedBegin,
  type RecordedHead,
  recordedPieceBytes,
} from '../stores/contract/answers.js';
import { AnswerShares } from '../stores/shares/answer-shares.js';
import type { SqlRow, Statements } from './node-sqlite.js';

/** A recorded answer with only the first piece of its body. */
export interface FoundAnswer {
  readonly digest: string;
  readonly answer: RecordedBegin;
}

/** Owns the recorded answers in the file, and their eviction. */
export class AnswerTable {
  readonly #sql: Statements;
  readonly #maxBytes: number;
  /**
   * Shares of the clients; null until first needed. After a failed transaction they may lack a stored answer, which
   * still expires.
   */
  #shares: AnswerShares | null = null;

  constructor(sql: Statements, maxBytes = maxAnswerBytes) {
    this.#sql = sql;
    this.#maxBytes = maxBytes;
  }

  /** Makes the next call read the shares from the file again. Called after another table has removed answers. */
  recount(): void {
    this.#shares = null;
  }

  findAnswer({ client, key }: ClientKey, at: number): FoundAnswer | null {
    const row = this.#sql.get(
      `SELECT digest, answer, length(body) AS bytes, substr(body, 1, ${recordedPieceBytes}) AS piece
       FROM idempotency WHERE client = ? AND name = ? AND created_at > ?`,
      ...[client, key, at - answerTtlMs],
    );
    return row === undefined ? null : answerOf(row);
  }

  /** Reads a piece of the recorded body. */
  readAnswer({ client, key }: ClientKey, digest: string, from: number): string {
    const row = this.#sql.get(
      `SELECT substr(body, ?, ${recordedPieceBytes}) AS piece FROM idempotency
       WHERE client = ? AND name = ? AND digest = ?`,
      ...[from + 1, client, key, digest],
    );
    return row === undefined ? '' : pieceOf(row.piece as Uint8Array);
  }

  readById(client: ClientText, id: string, from: number): RecordedBegin | null {
    const row = this.#sql.get(
      `SELECT digest, answer, length(body) AS bytes, substr(body, ?, ${recordedPieceBytes}) AS piece
       FROM idempotency WHERE client = ? AND name = ?`,
      ...[from + 1, client, id],
    );
    return row === undefined ? null : answerOf(row).answer;
  }

  /** Stores an answer. Returns whether others were evicted for it. */
  addAnswer({ client, key }: ClientKey, { digest, answer }: AnswerOfKey, at: number): boolean {
    const { body: text, ...head } = answer;
    const body = Buffer.from(text);
    this.#sql.run(
      `INSERT OR REPLACE INTO idempotency (client, name, digest, created_at, answer, body) VALUES (?, ?, ?, ?, ?, ?)`,
      ...[client, key, digest, at, JSON.stringify(head), body],
    );
    const evicted = this.#known().addEntry({ client, key, bodyBytes: body.length, recordedAt: at });
    for (const each of evicted) {
      this.#sql.run('DELETE FROM idempotency WHERE client = ? AND name = ?', each.client, each.key);
    }
    return evicted.length > 0;
  }

  /** Removes expired answers. Returns whether there were any. */
  expireAnswers(at: number): boolean {
    this.#known().expireEntries(at);
    const query = 'DELETE FROM idempotency WHERE created_at <= ? RETURNING 1 AS one';
    return this.#sql.all(query, at - answerTtlMs).length > 0;
  }

  #known(): AnswerShares {
    if (this.#shares !== null) return this.#shares;
    this.#shares = new AnswerShares(this.#maxBytes);
    const query = 'SELECT client, name, created_at, length(body) AS bytes FROM idempotency ORDER BY created_at';
    for (const { client, name, created_at: recordedAt, bytes } of rowsOfClients(this.#sql.all(query))) {
      const entry = { client: client as ClientText, key: String(name), bodyBytes: Number(bytes) };
      this.#shares.addEntry({ ...entry, recordedAt: Number(recordedAt) });
    }
    return this.#shares;
  }
}

function answerOf({ digest, answer, bytes, piece }: SqlRow): FoundAnswer {
  const head = JSON.parse(String(answer)) as RecordedHead;
  return { digest: String(digest), answer: { ...head, begin: pieceOf(piece as Uint8Array), bytes: Number(bytes) } };
}
