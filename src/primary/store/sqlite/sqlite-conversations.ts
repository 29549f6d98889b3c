import { endOfLoopTurn } from '../../../shared/clock.js';
import { RelayError, storeUnavailable } from '../../../shared/errors.js';
import type { ConversationChange, ConversationJournal, StoredConversation } from '../contract/conversations.js';
import type { StoredText } from '../contract/stored-text.js';
import { call, type TableCall } from './calls.js';
import type { SqliteClient } from './client.js';

/** How many conversations one call removes when nobody waits for it. */
const maxForgotten = 500;

/** Owns which conversations are still to be removed from the file. */
export class SqliteConversations implements ConversationJournal {
  readonly #client: SqliteClient;
  /** Their removal is under way: a turn that comes too late for the file is no fault. */
  readonly #removing = new Set<string>();
  readonly #toForget = new Set<string>();
  /** Conversations that were last active by then expired before the start; null: the file no longer has them. */
  #expired: number | null = null;
  #forgetting: Promise<void> | null = null;

  constructor(client: SqliteClient) {
    this.#client = client;
  }

  async *restore(after: number): AsyncGenerator<StoredConversation> {
    const readNext = () => this.#client.read(call('conversations', 'restore'));
    await this.#client.read(call('conversations', 'beginRestore', after));
    let next = readNext();
    for (;;) {
      const piece = await next;
      if (piece.length === 0) break;
      next = readNext(); // the thread reads on while the caller takes this piece
      yield* piece.map(received);
    }
    this.#expired = after;
    void this.forgetAll();
  }

  async commit(change: ConversationChange): Promise<void> {
    const isBeingRemoved = this.#removing.has(change.id);
    const undo = { call: call('conversations', 'undo', change), settled: () => this.#client.tidySoon() };
    try {
      await this.#client.ask('commit', call('conversations', 'commit', change, this.#client.clock.now()), undo);
    } catch (error) {
      if (change.type === 'fork' || !isGone(error)) throw error;
      if (isBeingRemoved) return;
      this.#client.fails('the file lacks a conversation that it should have'); // it is another file, or was changed
      throw storeUnavailable();
    }
  }

  async remove(id: string, late: () => void = () => {}): Promise<void> {
    const removal = call('conversations', 'remove', [id]);
    const settled = () => {
      late();
      this.#client.tidySoon();
    };
    this.#removing.add(id);
    try {
      await this.#client.ask('remove', removal, { call: removal, settled });
      this.#client.tidySoon();
    } finally {
      void endOfLoopTurn().then(() => this.#removing.delete(id)); // by then memory has removed it too
    }
  }

  forget(id: string): void {
    this.#toForget.add(id);
    void this.forgetAll();
  }

  /** Resolves when everything is removed that the file lets go now. */
  forgetAll(): Promise<void> {
    this.#forgetting ??= this.#forgetInPieces().finally(() => {
      this.#forgetting = null;
    });
    return this.#forgetting;
  }

  /** After a failure the rest is removed once the store is back. */
  async #forgetInPieces(): Promise<void> {
    if (this.#expired !== null && (await this.#isRemoved(call('conversations', 'expire', this.#expired)))) {
      this.#expired = null;
    }
    while (this.#toForget.size > 0 && this.#client.isUp) {
      const ids = [...this.#toForget].slice(0, maxForgotten);
      if (!(await this.#isRemoved(call('conversations', 'remove', ids)))) return;
      for (const id of ids) this.#toForget.delete(id);
    }
  }

  async #isRemoved(removal: TableCall): Promise<boolean> {
    try {
      await this.#client.ask('remove', removal);
      this.#client.tidySoon();
      return true;
    } catch {
      return false;
    }
  }
}

function isGone(error: unknown): boolean {
  return error instanceof RelayError && error.code === 'not_found';
}

/** A buffer has crossed from the thread as bare bytes. */
function received(conversation: StoredConversation): StoredConversation {
  const turns = conversation.turns.map((turn) => {
    const [user, assistant] = turn.texts;
    return { ...turn, texts: [asStored(user), asStored(assistant)] as const };
  });
  return { ...conversation, system: conversation.system && asStored(conversation.system), turns };
}

function asStored(text: string | Uint8Array): StoredText {
  return typeof text === 'string' ? text : Buffer.from(text.buffer, text.byteOffset, text.length);
}
