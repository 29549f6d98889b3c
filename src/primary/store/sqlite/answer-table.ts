import { type RecordedBegin, type RecordedHead, recordedPieceBytes } from '../../../shared/ipc/idempotency.js';
import { AnswerShares, maxAnswerBytes } from '../../idempotency/answer-shares.js';
import { type AnswerOfKey, answerTtlMs, type ClientKey, pieceOf } from '../contract/answers.js';
import type { SqlRow, Statements } from './node-sqlite.js';

/** An answer without most of its body. */
export interface FoundAnswer {
  readonly digest: string;
  readonly answer: RecordedBegin;
}

/** Owns the answers in the file that can be replayed, and which of them have to go. */
export class AnswerTable {
  readonly #sql: Statements;
  readonly #maxBytes: number;
  /** null until it is needed. After a failed transaction it may lack an answer of the file, which expires all the same. */
  #shares: AnswerShares | null = null;

  constructor(sql: Statements, maxBytes = maxAnswerBytes) {
    this.#sql = sql;
    this.#maxBytes = maxBytes;
  }

  /** To be called after another table has removed answers. */
  recount(): void {
    this.#shares = null;
  }

  find({ client, key }: ClientKey, at: number): FoundAnswer | null {
    const row = this.#sql.get(
      `SELECT digest, answer, length(body) AS bytes, substr(body, 1, ${recordedPieceBytes}) AS piece
       FROM idempotency WHERE client = ? AND name = ? AND created_at > ?`,
      ...[client, key, at - answerTtlMs],
    );
    return row === undefined ? null : answerOf(row);
  }

  /** A piece of its body. */
  read({ client, key }: ClientKey, digest: string, from: number): string {
    const row = this.#sql.get(
      `SELECT substr(body, ?, ${recordedPieceBytes}) AS piece FROM idempotency
       WHERE client = ? AND name = ? AND digest = ?`,
      ...[from + 1, client, key, digest],
    );
    return row === undefined ? '' : pieceOf(row.piece as Uint8Array);
  }

  /** Whether it removed any others. */
  add({ client, key }: ClientKey, { digest, answer }: AnswerOfKey, at: number): boolean {
    const { body: text, ...head } = answer;
    const body = Buffer.from(text);
    this.#sql.run(
      `INSERT OR REPLACE INTO idempotency (client, name, digest, created_at, answer, body) VALUES (?, ?, ?, ?, ?, ?)`,
      ...[client, key, digest, at, JSON.stringify(head), body],
    );
    const gone = this.#known().add({ client, key, bodyBytes: body.length, recordedAt: at });
    for (const each of gone) {
      this.#sql.run('DELETE FROM idempotency WHERE client = ? AND name = ?', each.client, each.key);
    }
    return gone.length > 0;
  }

  /** Whether it removed any. */
  expire(at: number): boolean {
    this.#known().expire(at);
    const query = 'DELETE FROM idempotency WHERE created_at <= ? RETURNING 1 AS one';
    return this.#sql.all(query, at - answerTtlMs).length > 0;
  }

  #known(): AnswerShares {
    if (this.#shares !== null) return this.#shares;
    this.#shares = new AnswerShares(this.#maxBytes);
    const query = 'SELECT client, name, created_at, length(body) AS bytes FROM idempotency ORDER BY created_at';
    for (const { client, name, created_at: recordedAt, bytes } of this.#sql.all(query)) {
      const entry = { client: String(client), key: String(name), bodyBytes: Number(bytes) };
      this.#shares.add({ ...entry, recordedAt: Number(recordedAt) });
    }
    return this.#shares;
  }
}

function answerOf({ digest, answer, bytes, piece }: SqlRow): FoundAnswer {
  const head = JSON.parse(String(answer)) as RecordedHead;
  return { digest: String(digest), answer: { ...head, begin: pieceOf(piece as Uint8Array), bytes: Number(bytes) } };
}
