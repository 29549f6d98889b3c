import type {
  ConversationChange,
  ForkChange,
  StoredConversation,
  StoredTurn,
  TurnChange,
} from '../../primary/store/contract/conversations.js';
import { bytesOf, type StoredText } from '../../primary/store/contract/stored-text.js';
import { type ClientText, rowsOfClients } from '../../shared/client.js';
import { NoSuchConversation } from './calls.js';
import type { SqlRow, SqlValue, Statements } from './node-sqlite.js';

/** Size and number of conversations per restored piece. The primary does other work between pieces. */
const pieceBytes = 256 * 1024;
const pieceCount = 250;
/** Texts from this size on are sent to the primary as bytes, the form in which memory stores them. */
const minBufferBytes = 4096;

/** Owns the conversations in the file. */
export class ConversationTable {
  readonly #sql: Statements;
  #activity: number;
  /** Keys of conversations to restore; the next one is last. */
  #toRestore: number[] = [];

  constructor(sql: Statements) {
    this.#sql = sql;
    this.#activity = Number(sql.get('SELECT coalesce(max(activity), 0) AS n FROM conversations')?.n);
  }

  /** Writes a change; `at` is wall-clock time in milliseconds. Throws `NoSuchConversation`. */
  commitChange(change: ConversationChange, at: number): void {
    if (change.type === 'fork') return this.#fork(change);
    if (change.type === 'title') return this.#rename(change.id, change.title);
    const { id, messageCount, user, assistant, images, figures, totalTokens } = change;
    const key = messageCount === 2 ? this.#create(change, at) : this.#touch(id, at);
    if (key === null) throw new NoSuchConversation();
    const shown = images.length === 0 ? null : JSON.stringify(images);
    this.#sql.run(
      `INSERT INTO turns (conversation, number, user, assistant, images, total_tokens, figures)
       VALUES (?, ?, ?, ?, ?, ?, ?)`,
      ...[
        key,
        messageCount / 2,
        Buffer.from(user),
        Buffer.from(assistant),
        shown,
        totalTokens,
        figures && bytesOf(figures),
      ],
    );
  }

  #create({ id, client, system, createdAt, version }: TurnChange, at: number): SqlValue {
    const { key = null } =
      this.#sql.get(
        `INSERT INTO conversations (id, client, system, created_at, last_activity_at, activity, title, origins)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING key`,
        ...[id, client, system && bytesOf(system), createdAt, at, ++this.#activity],
        ...[version?.title ?? null, version?.origins ?? null],
      ) ?? {};
    return key;
  }

  /**
   * Updates the last activity, and returns the row key; null if the conversation does not exist. A clock that was set
   * back makes no conversation older.
   */
  #touch(id: string, at: number): SqlValue {
    const update =
      'UPDATE conversations SET last_activity_at = max(last_activity_at, ?), activity = ? WHERE id = ? RETURNING key';
    return this.#sql.get(update, at, ++this.#activity, id)?.key ?? null;
  }

  #fork({ id, origin, origins, messageCount, createdAt }: ForkChange): void {
    const made = this.#sql.get(
      `INSERT INTO conversations (id, client, system, title, created_at, last_activity_at, activity, origins)
       SELECT ?, client, system, title, ?, max(last_activity_at, ?), ?, ? FROM conversations WHERE id = ? RETURNING key`,
      ...[id, createdAt, createdAt, ++this.#activity, origins, origin],
    );
    if (made === undefined) throw new NoSuchConversation();
    this.#sql.run(
      `INSERT INTO turns SELECT ?, number, user, assistant, images, total_tokens, figures FROM turns
       WHERE conversation = (SELECT key FROM conversations WHERE id = ?) AND number <= ?`,
      ...[made.key ?? null, origin, messageCount / 2],
    );
  }

  #rename(id: string, title: string | null): void {
    const renamed = this.#sql.get('UPDATE conversations SET title = ? WHERE id = ? RETURNING key', title, id);
    if (renamed === undefined) throw new NoSuchConversation();
  }

  /** Undoes a commit if it happened. The caller ensures that no later commit has followed. */
  undo(change: ConversationChange): void {
    if (change.type === 'title') {
      return void this.#sql.run('UPDATE conversations SET title = ? WHERE id = ?', change.previous, change.id);
    }
    if (change.type === 'fork' || change.messageCount === 2) return this.removeConversations([change.id]);
    this.#sql.run(
      'DELETE FROM turns WHERE conversation = (SELECT key FROM conversations WHERE id = ?) AND number = ?',
      ...[change.id, change.messageCount / 2],
    );
  }

  removeConversations(ids: readonly string[]): void {
    for (const id of ids) this.#sql.run('DELETE FROM conversations WHERE id = ?', id);
  }

  /** Starts a restore of the conversations that were active after time `after`. `expireConversations` removes the others. */
  beginRestore(after: number): void {
    const query = 'SELECT key FROM conversations WHERE last_activity_at > ? ORDER BY activity DESC';
    this.#toRestore = this.#sql.all(query, after).map(({ key }) => Number(key));
  }

  expireConversations(after: number): void {
    this.#sql.run('DELETE FROM conversations WHERE last_activity_at <= ?', after);
  }

  /** Returns the next piece of conversations; empty at the end. */
  restoreConversations(): StoredConversation[] {
    const piece: StoredConversation[] = [];
    for (let bytes = 0; bytes < pieceBytes && piece.length < pieceCount; ) {
      const key = this.#toRestore.pop();
      if (key === undefined) break;
      const turns = this.#sql.all('SELECT * FROM turns WHERE conversation = ? ORDER BY number', key);
      const [row] = rowsOfClients(this.#sql.all('SELECT * FROM conversations WHERE key = ?', key));
      if (row === undefined || turns.length === 0) continue;
      bytes += turns.reduce((sum, turn) => sum + lengthOf(turn), 0);
      piece.push(conversationOf(row, turns.map(turnOf)));
    }
    return piece;
  }
}

function conversationOf(row: SqlRow, turns: readonly StoredTurn[]): StoredConversation {
  return {
    id: String(row.id),
    client: row.client as ClientText,
    system: row.system === null ? null : storedOf(row.system),
    title: row.title === null ? null : String(row.title),
    origins: row.origins === null ? null : String(row.origins),
    createdAt: Number(row.created_at),
    lastActivityAt: Number(row.last_activity_at),
    turns,
  };
}

function turnOf({ user, assistant, images, figures, total_tokens: totalTokens }: SqlRow): StoredTurn {
  return {
    texts: [storedOf(user), storedOf(assistant)],
    images: images === null ? [] : (JSON.parse(String(images)) as StoredTurn['images']),
    figures: figures instanceof Uint8Array ? storedOf(figures) : null,
    totalTokens: Number(totalTokens),
  };
}

function lengthOf({ user, assistant, images, figures }: SqlRow): number {
  return [user, assistant, images, figures].reduce<number>(
    (sum, value) => sum + (value instanceof Uint8Array || typeof value === 'string' ? value.length : 0),
    0,
  );
}

/**
 * Converts bytes for the primary. Short texts are sent as strings, which are cheap there; a sent buffer arrives as a
 * Uint8Array.
 */
function storedOf(bytes: SqlValue | undefined): StoredText {
  const { buffer, byteOffset, length } = bytes as Uint8Array;
  const view = Buffer.from(buffer, byteOffset, length);
  return length < minBufferBytes ? view.toString('latin1') : view;
}
