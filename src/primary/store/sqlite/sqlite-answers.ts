import type { AnswerOfKey, ClientKey, IdempotencyStore, KnownKey } from '../contract/answers.js';
import type { FoundAnswer } from './answer-table.js';
import type { SqliteAccess } from './sqlite-access.js';

/** Answers in the file that may be sent again. Nothing of them is held here. */
export class SqliteAnswers implements IdempotencyStore {
  readonly #access: SqliteAccess;

  constructor(access: SqliteAccess) {
    this.#access = access;
  }

  /** Also while the file takes nothing: it may still tell what it has. */
  async take(key: ClientKey, _digest: string, at: number): Promise<KnownKey> {
    const kept = (await this.#access.ask('answer', { type: 'find-answer', key, at })) as FoundAnswer | null;
    return kept === null ? { type: 'free' } : { type: 'answered', ...kept };
  }

  async read(key: ClientKey, digest: string, from: number): Promise<string> {
    return (await this.#access.ask('answer', { type: 'read-answer', key, digest, from })) as string;
  }

  /** Where nobody knows in time whether it was kept, it may be: it is the answer that was sent. */
  async keep(key: ClientKey, kept: AnswerOfKey, at: number): Promise<void> {
    if (!this.#access.isUp) throw new Error('the store takes nothing');
    if ((await this.#access.ask('answer', { type: 'keep-answer', key, kept, at })) === true) this.#access.tidySoon();
  }

  release(): void {}

  expire(at: number): void {
    if (this.#access.isUp) void this.#expire(at);
  }

  /** What fails is done the next time. */
  async #expire(at: number): Promise<void> {
    const isRemoved = await this.#access.ask('answer', { type: 'expire-answers', at }).catch(() => false);
    if (isRemoved === true) this.#access.tidySoon();
  }
}
