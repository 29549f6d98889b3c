import type { Clock, StopTimer } from '../../../shared/clock.js';
import { RelayError, storeUnavailable } from '../../../shared/errors.js';
import { withResolvers } from '../../../shared/resolvers.js';
import type {
  ConversationChange,
  ConversationJournal,
  KeptConversation,
} from '../../conversations/conversation-journal.js';
import type { StoredText } from '../../conversations/stored-text.js';
import type { Store, StoreObserver, StoreOperation } from '../store.js';
import { StoreFault } from '../store-fault.js';
import type { SqliteOrder, SqliteValue } from './messages.js';
import { NoSuchConversation, type SqliteThread } from './sqlite-thread.js';

/** While it takes nothing, it is asked again at this pace. */
const probeMs = 1000;
/** What was removed is gone from the files as well after this time. */
const tidyMs = 1000;
/** A disk that does not answer does not keep the service from its end. */
const closeLimitMs = 5000;
/** Conversations that are removed at once, where nobody waits for it. */
const maxForgotten = 500;

const silentObserver: StoreObserver = { done: () => {}, down: () => {}, back: () => {} };

/** Owns whether the file takes what it is asked to keep, and what is to be removed from it when it does again. */
export class SqliteStore implements Store, ConversationJournal {
  readonly kind = 'sqlite';
  readonly conversations: ConversationJournal = this;
  readonly #thread: Pick<SqliteThread, 'ask' | 'close'>;
  readonly #clock: Clock;
  #observer = silentObserver;
  #state: 'up' | 'down' | 'closed' = 'up';
  readonly #toForget = new Set<string>();
  /** What was last active by then had expired before the service was started; null: it is gone. */
  #expired: number | null = null;
  #forgetting: Promise<void> | null = null;
  #stopProbe: StopTimer = () => {};
  #stopTidy: StopTimer | null = null;

  constructor(thread: Pick<SqliteThread, 'ask' | 'close'>, clock: Clock) {
    this.#thread = thread;
    this.#clock = clock;
  }

  get isUp(): boolean {
    return this.#state === 'up';
  }

  observe(observer: StoreObserver): void {
    this.#observer = observer;
  }

  async *restore(after: number): AsyncGenerator<KeptConversation> {
    await this.#read({ type: 'begin-restore', after });
    let next = this.#read({ type: 'restore' });
    for (;;) {
      const piece = (await next) as readonly KeptConversation[];
      if (piece.length === 0) break;
      next = this.#read({ type: 'restore' }); // the thread reads on while this one is taken over
      yield* piece.map(received);
    }
    this.#expired = after;
    void this.#forgetAll();
  }

  /** Rejects with a StoreFault: without what it has kept the service does not start. */
  async #read(order: SqliteOrder): Promise<SqliteValue> {
    const begunMs = this.#clock.monotonicMs();
    try {
      return await this.#thread.ask(order);
    } catch (error) {
      throw new StoreFault(`what was kept cannot be read: ${messageOf(error)}`);
    } finally {
      this.#observer.done('restore', this.#clock.monotonicMs() - begunMs);
    }
  }

  async commit(change: ConversationChange): Promise<void> {
    await this.#ask('commit', { type: 'commit', change, at: this.#clock.now() });
  }

  async remove(id: string): Promise<void> {
    await this.#ask('remove', { type: 'remove', ids: [id] });
    this.#tidySoon();
  }

  forget(id: string): void {
    this.#toForget.add(id);
    void this.#forgetAll();
  }

  /** Removes first what is still to be forgotten, where that is possible. */
  async close(): Promise<void> {
    if (this.#state === 'closed') return;
    if (this.#state === 'up') await this.#forgetAll();
    this.#state = 'closed';
    this.#stopProbe();
    this.#stopTidy?.();
    const { promise: tooLong, resolve } = withResolvers();
    const stopTimer = this.#clock.after(closeLimitMs, resolve);
    await Promise.race([this.#thread.close(), tooLong]);
    stopTimer();
  }

  #forgetAll(): Promise<void> {
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
    while (this.#toForget.size > 0 && this.#state === 'up') {
      const ids = [...this.#toForget].slice(0, maxForgotten);
      if (!(await this.#isRemoved({ type: 'remove', ids }))) return;
      for (const id of ids) this.#toForget.delete(id);
    }
  }

  async #isRemoved(order: SqliteOrder): Promise<boolean> {
    try {
      await this.#ask('remove', order);
      this.#tidySoon();
      return true;
    } catch {
      return false;
    }
  }

  #tidySoon(): void {
    this.#stopTidy ??= this.#clock.after(tidyMs, () => void this.#tidy());
  }

  async #tidy(): Promise<void> {
    const begunMs = this.#clock.monotonicMs();
    // A disk may have room for a turn and none for this, so it says nothing about the store.
    const isMore = await this.#thread.ask({ type: 'tidy' }).catch(() => true);
    this.#observer.done('tidy', this.#clock.monotonicMs() - begunMs);
    this.#stopTidy = null;
    if (isMore === true && this.#state !== 'closed') this.#tidySoon();
  }

  /** Rejects as the port says. */
  async #ask(operation: StoreOperation, order: SqliteOrder): Promise<SqliteValue> {
    const begunMs = this.#clock.monotonicMs();
    try {
      const value = await this.#thread.ask(order);
      this.#works();
      return value;
    } catch (error) {
      if (error instanceof NoSuchConversation) throw new RelayError('not_found', 'no such conversation');
      this.#fails(error);
      throw storeUnavailable();
    } finally {
      this.#observer.done(operation, this.#clock.monotonicMs() - begunMs);
    }
  }

  #works(): void {
    if (this.#state !== 'down') return;
    this.#state = 'up';
    this.#stopProbe();
    this.#observer.back();
    void this.#forgetAll();
  }

  #fails(error: unknown): void {
    if (this.#state !== 'up') return;
    this.#state = 'down';
    this.#stopProbe = this.#clock.every(probeMs, () => void this.#probe());
    this.#observer.down(messageOf(error));
  }

  async #probe(): Promise<void> {
    await this.#thread.ask({ type: 'probe' }).then(
      () => this.#works(),
      () => {},
    );
  }
}

/** A buffer has crossed from the thread as bare bytes. */
function received(kept: KeptConversation): KeptConversation {
  const turns = kept.turns.map((turn) => {
    const [user, assistant] = turn.texts;
    return { ...turn, texts: [asStored(user), asStored(assistant)] as const };
  });
  return { ...kept, system: kept.system && asStored(kept.system), turns };
}

function asStored(text: string | Uint8Array): StoredText {
  return typeof text === 'string' ? text : Buffer.from(text.buffer, text.byteOffset, text.length);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
