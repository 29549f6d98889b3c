import type { ForkChange, KeptConversation, KeptTurn, TurnChange } from '../../conversations/conversation-journal.js';
import type { StoredText } from '../../conversations/stored-text.js';
import type { SqliteOrder, SqliteValue } from './messages.js';
import type { SqlConnection, SqlRow, SqlStatement, SqlValue } from './node-sqlite.js';

/** A piece of what is restored: so much, and then the primary sees to other things. */
const pieceBytes = 256 * 1024;
const pieceCount = 250;
/** Of pages that are given back at a time. */
const tidyPages = 2000;
/** A text of so many bytes is held as bytes, as in memory. */
const minBufferBytes = 4096;

/** What an order is about is no longer there. */
export class Gone extends Error {}

/** Owns what the orders mean in SQL. It knows nothing of transactions: whoever gives the orders does. */
export class Database {
  readonly #sql: SqlConnection;
  readonly #prepared = new Map<string, SqlStatement>();
  #activity: number;
  /** Of those that are still to be restored: the next one comes last. */
  #toRestore: number[] = [];

  constructor(sql: SqlConnection) {
    this.#sql = sql;
    this.#activity = Number(this.#get('SELECT coalesce(max(activity), 0) AS n FROM conversations')?.n);
  }

  /** Throws `Gone`, and what SQLite throws. */
  perform(order: SqliteOrder): SqliteValue {
    if (order.type === 'commit') this.#commit(order.change, order.at);
    else if (order.type === 'remove') for (const id of order.ids) this.#remove(id);
    else if (order.type === 'begin-restore') this.#beginRestore(order.after);
    else if (order.type === 'restore') return this.#restore();
    else if (order.type === 'expire') this.#expire(order.after);
    else if (order.type === 'probe') this.#run('UPDATE probes SET count = count + 1');
    return null;
  }

  /** Outside of any transaction. Returns whether there is more to do. */
  tidy(): boolean {
    this.#sql.exec(`PRAGMA incremental_vacuum(${tidyPages})`);
    this.#sql.exec('PRAGMA wal_checkpoint(TRUNCATE)'); // else the log holds what the file no longer does
    return Number(this.#get('PRAGMA freelist_count')?.freelist_count) > 0;
  }

  #commit(change: TurnChange | ForkChange, at: number): void {
    if (change.type === 'fork') return this.#fork(change);
    const { id, messageCount, user, assistant, images, totalTokens } = change;
    const key = messageCount === 2 ? this.#create(change, at) : this.#touch(id, at);
    if (key === null) return;
    const shown = images.length === 0 ? null : JSON.stringify(images);
    this.#run(
      'INSERT INTO turns (conversation, number, user, assistant, images, total_tokens) VALUES (?, ?, ?, ?, ?, ?)',
      ...[key, messageCount / 2, Buffer.from(user), Buffer.from(assistant), shown, totalTokens],
    );
  }

  #create({ id, client, system, createdAt }: TurnChange, at: number): SqlValue {
    const { key = null } =
      this.#get(
        `INSERT INTO conversations (id, client, system, created_at, last_activity_at, activity)
         VALUES (?, ?, ?, ?, ?, ?) RETURNING key`,
        ...[id, client, system === null ? null : bytesOf(system), createdAt, at, ++this.#activity],
      ) ?? {};
    return key;
  }

  /** null for one that is gone. */
  #touch(id: string, at: number): SqlValue {
    const update = 'UPDATE conversations SET last_activity_at = ?, activity = ? WHERE id = ? RETURNING key';
    return this.#get(update, at, ++this.#activity, id)?.key ?? null;
  }

  #fork({ id, origin, messageCount, createdAt }: ForkChange): void {
    const made = this.#get(
      `INSERT INTO conversations (id, client, system, created_at, last_activity_at, activity)
       SELECT ?, client, system, ?, ?, ? FROM conversations WHERE id = ? RETURNING key`,
      ...[id, createdAt, createdAt, ++this.#activity, origin],
    );
    if (made === undefined) throw new Gone();
    this.#run(
      `INSERT INTO turns SELECT ?, number, user, assistant, images, total_tokens FROM turns
       WHERE conversation = (SELECT key FROM conversations WHERE id = ?) AND number <= ?`,
      ...[made.key ?? null, origin, messageCount / 2],
    );
  }

  #remove(id: string): void {
    const gone = this.#get('DELETE FROM conversations WHERE id = ? RETURNING key', id);
    if (gone !== undefined) this.#run('DELETE FROM turns WHERE conversation = ?', gone.key ?? null);
  }

  #beginRestore(after: number): void {
    const query = 'SELECT key FROM conversations WHERE last_activity_at > ? ORDER BY activity DESC';
    this.#toRestore = this.#statement(query)
      .all(after)
      .map(({ key }) => Number(key));
  }

  #expire(after: number): void {
    const expired = 'SELECT key FROM conversations WHERE last_activity_at <= ?';
    this.#run(`DELETE FROM turns WHERE conversation IN (${expired})`, after);
    this.#run('DELETE FROM conversations WHERE last_activity_at <= ?', after);
  }

  #restore(): KeptConversation[] {
    const piece: KeptConversation[] = [];
    for (let bytes = 0; bytes < pieceBytes && piece.length < pieceCount; ) {
      const key = this.#toRestore.pop();
      if (key === undefined) break;
      const turns = this.#statement('SELECT * FROM turns WHERE conversation = ? ORDER BY number').all(key);
      const row = this.#get('SELECT * FROM conversations WHERE key = ?', key);
      if (row === undefined || turns.length === 0) continue;
      bytes += turns.reduce((sum, turn) => sum + lengthOf(turn), 0);
      piece.push(conversationOf(row, turns.map(turnOf)));
    }
    return piece;
  }

  #get(sql: string, ...values: SqlValue[]): SqlRow | undefined {
    return this.#statement(sql).get(...values);
  }

  #run(sql: string, ...values: SqlValue[]): void {
    this.#statement(sql).run(...values);
  }

  #statement(sql: string): SqlStatement {
    const known = this.#prepared.get(sql);
    if (known !== undefined) return known;
    const statement = this.#sql.prepare(sql);
    this.#prepared.set(sql, statement);
    return statement;
  }
}

function conversationOf(row: SqlRow, turns: readonly KeptTurn[]): KeptConversation {
  return {
    id: String(row.id),
    client: String(row.client),
    system: row.system === null ? null : storedOf(row.system),
    createdAt: Number(row.created_at),
    lastActivityAt: Number(row.last_activity_at),
    turns,
  };
}

function turnOf({ user, assistant, images, total_tokens: totalTokens }: SqlRow): KeptTurn {
  return {
    texts: [storedOf(user), storedOf(assistant)],
    images: images === null ? [] : (JSON.parse(String(images)) as KeptTurn['images']),
    totalTokens: Number(totalTokens),
  };
}

function lengthOf({ user, assistant, images }: SqlRow): number {
  return [user, assistant, images].reduce<number>(
    (sum, value) => sum + (value instanceof Uint8Array || typeof value === 'string' ? value.length : 0),
    0,
  );
}

function bytesOf(text: StoredText): Uint8Array {
  return typeof text === 'string' ? Buffer.from(text, 'latin1') : text;
}

/** What crosses to the primary as a string is cheap there, and what is a buffer arrives as bare bytes. */
function storedOf(bytes: SqlValue | undefined): StoredText {
  const { buffer, byteOffset, length } = bytes as Uint8Array;
  const view = Buffer.from(buffer, byteOffset, length);
  return length < minBufferBytes ? view.toString('latin1') : view;
}
