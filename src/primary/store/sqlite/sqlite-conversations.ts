import { endOfLoopTurn } from '../../../shared/clock.js';
import { RelayError, storeUnavailable } from '../../../shared/errors.js';
import type { ConversationChange, ConversationJournal, StoredConversation } from '../contract/conversations.js';
import type { StoredText } from '../contract/stored-text.js';
import type { SqliteOrder } from './messages.js';
import type { SqliteAccess } from './sqlite-access.js';

/** Conversations that are removed at once, where nobody waits for it. */
const maxForgotten = 500;

/** Owns what is to be removed from the file when it takes that again. */
export class SqliteConversations implements ConversationJournal {
  readonly #access: SqliteAccess;
  /** Their removal is under way: a turn that comes too late for the file is no fault. */
  readonly #removing = new Set<string>();
  readonly #toForget = new Set<string>();
  /** What was last active by then had expired before the service was started; null: it is gone. */
  #expired: number | null = null;
  #forgetting: Promise<void> | null = null;

  constructor(access: SqliteAccess) {
    this.#access = access;
  }

  async *restore(after: number): AsyncGenerator<StoredConversation> {
    await this.#access.read({ type: 'begin-restore', after });
    let next = this.#access.read({ type: 'restore' });
    for (;;) {
      const piece = (await next) as readonly StoredConversation[];
      if (piece.length === 0) break;
      next = this.#access.read({ type: 'restore' }); // the thread reads on while this one is taken over
      yield* piece.map(received);
    }
    this.#expired = after;
    void this.forgetAll();
  }

  async commit(change: ConversationChange): Promise<void> {
    const isBeingRemoved = this.#removing.has(change.id);
    const order: SqliteOrder = { type: 'commit', change, at: this.#access.clock.now() };
    try {
      await this.#access.ask('commit', order, {
        order: { type: 'undo', change },
        settled: () => this.#access.tidySoon(),
      });
    } catch (error) {
      if (change.type === 'fork' || !isGone(error)) throw error;
      if (!isBeingRemoved) this.#missing();
    }
  }

  async remove(id: string, late?: () => void): Promise<void> {
    const order: SqliteOrder = { type: 'remove', ids: [id] };
    this.#removing.add(id);
    try {
      await this.#access.ask('remove', order, { order, settled: () => this.#removedLate(late) });
      this.#access.tidySoon();
    } finally {
      void endOfLoopTurn().then(() => this.#removing.delete(id)); // by then it is gone from memory too
    }
  }

  #removedLate(late: () => void = () => {}): void {
    late();
    this.#access.tidySoon();
  }

  forget(id: string): void {
    this.#toForget.add(id);
    void this.forgetAll();
  }

  /** Resolves when everything is forgotten, as far as the file takes that now. */
  forgetAll(): Promise<void> {
    this.#forgetting ??= this.#forgetInPieces().finally(() => {
      this.#forgetting = null;
    });
    return this.#forgetting;
  }

  /** What is left where it fails is removed once the store is back. */
  async #forgetInPieces(): Promise<void> {
    if (this.#expired !== null && (await this.#isRemoved({ type: 'expire', after: this.#expired }))) {
      this.#expired = null;
    }
    while (this.#toForget.size > 0 && this.#access.isUp) {
      const ids = [...this.#toForget].slice(0, maxForgotten);
      if (!(await this.#isRemoved({ type: 'remove', ids }))) return;
      for (const id of ids) this.#toForget.delete(id);
    }
  }

  async #isRemoved(order: SqliteOrder): Promise<boolean> {
    try {
      await this.#access.ask('remove', order);
      this.#access.tidySoon();
      return true;
    } catch {
      return false;
    }
  }

  /** The file is another one than it was, or somebody has been in it. */
  #missing(): never {
    this.#access.fails('the file lacks a conversation that it should have');
    throw storeUnavailable();
  }
}

function isGone(error: unknown): boolean {
  return error instanceof RelayError && error.code === 'not_found';
}

/** A buffer has crossed from the thread as bare bytes. */
function received(kept: StoredConversation): StoredConversation {
  const turns = kept.turns.map((turn) => {
    const [user, assistant] = turn.texts;
    return { ...turn, texts: [asStored(user), asStored(assistant)] as const };
  });
  return { ...kept, system: kept.system && asStored(kept.system), turns };
}

function asStored(text: string | Uint8Array): StoredText {
  return typeof text === 'string' ? text : Buffer.from(text.buffer, text.byteOffset, text.length);
}
