import type { ConversationList } from '../../shared/api/conversations.js';
import type { Api } from '../api.mjs';
import { asError } from '../failures.mjs';
import { Observable } from '../observable.mjs';

export type ListedConversation = ConversationList['conversations'][number];

/** The list as far as it is read. */
export interface ConversationsView {
  /** null: not even the first page is there. */
  readonly conversations: readonly ListedConversation[] | null;
  /** Of the page after it; null where this is all. */
  readonly next: string | null;
  readonly state: 'reading' | 'ready' | { readonly failure: Error };
}

const pageSize = 30;

/** Owns the list of conversations, page after page. */
export class ConversationPages {
  readonly view = new Observable<ConversationsView>({ conversations: null, next: null, state: 'reading' });
  readonly #api: Pick<Api, 'json'>;
  #rounds = 0;

  constructor(api: Pick<Api, 'json'>) {
    this.#api = api;
  }

  /** Reads the first page anew: what was active since then stands there. */
  async readFirst(): Promise<void> {
    await this.#read(null);
  }

  async readMore(): Promise<void> {
    const { next, state } = this.view.value;
    if (next !== null && state !== 'reading') await this.#read(next);
  }

  forget(id: string): void {
    const { conversations } = this.view.value;
    const left = conversations?.filter(({ conversation_id: other }) => other !== id) ?? null;
    this.view.set({ ...this.view.value, conversations: left });
  }

  /** An answer that another request has overtaken is not shown. */
  async #read(cursor: string | null): Promise<void> {
    const round = ++this.#rounds;
    this.view.set({ ...this.view.value, state: 'reading' });
    const before = cursor === null ? [] : (this.view.value.conversations ?? []);
    const query = cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`;
    try {
      const page = await this.#api.json<ConversationList>(`/chat?limit=${pageSize}${query}`);
      if (round !== this.#rounds) return;
      const conversations = joined(before, page.conversations);
      this.view.set({ conversations, next: page.next_cursor, state: 'ready' });
    } catch (error) {
      if (round === this.#rounds) this.view.set({ ...this.view.value, state: { failure: asError(error) } });
    }
  }
}

/** Each once: one that was active between two pages can be on both. */
function joined(
  before: readonly ListedConversation[],
  page: readonly ListedConversation[],
): readonly ListedConversation[] {
  const known = new Set(before.map(({ conversation_id: id }) => id));
  return [...before, ...page.filter(({ conversation_id: id }) => !known.has(id))];
}
