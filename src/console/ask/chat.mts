import type { ChatResult } from '../../shared/api/chat.js';
import type { ConversationMessages } from '../../shared/api/conversations.js';
import type { ErrorBody } from '../../shared/api/error.js';
import type { Api, StreamEvent } from '../base/api.mjs';
import { ApiError, asError, isAbort, ServerGone } from '../base/failures.mjs';
import { DeltaBuffer, Observable } from '../base/observable.mjs';
import type { PageClock } from '../base/page-clock.mjs';
import type { TabMemory } from '../base/tab-memory.mjs';
import { ChatTurn, chatBodyOf, rememberTurns, turnsOf, type UserMessage, withRemembered } from './turn.mjs';

/** The conversation on the page. */
export interface ChatView {
  readonly turns: readonly ChatTurn[];
  /** null before the first answer. */
  readonly conversationId: string | null;
  /** Set by the first message; null if it has none. */
  readonly system: string | null;
  readonly state: 'ready' | 'reading' | { readonly unreadable: Error };
}

const nothing: ChatView = { turns: [], conversationId: null, system: null, state: 'ready' };

/** Owns the conversation on the page, and the one request that may run for it. */
export class Chat {
  readonly view = new Observable<ChatView>(nothing);
  /** Whether an answer is open. */
  readonly isBusy = new Observable(false);
  readonly #api: Api;
  readonly #clock: PageClock;
  readonly #memory: TabMemory;
  #request = new AbortController();
  #nextId = 1;
  readonly #takeId = () => this.#nextId++;

  constructor(api: Api, clock: PageClock, memory: TabMemory) {
    this.#api = api;
    this.#clock = clock;
    this.#memory = memory;
  }

  /** Does nothing while an answer is open. */
  async ask(asked: UserMessage): Promise<void> {
    if (this.isBusy.value || this.view.value.state === 'reading') return;
    const turn = new ChatTurn(this.#nextId++, asked, { kind: 'sent', sinceMs: this.#clock.now() });
    const isFirst = this.view.value.conversationId === null;
    const request = new AbortController();
    this.#request = request;
    this.#show({ turns: [...this.view.value.turns, turn] });
    this.isBusy.set(true);
    try {
      const result = await this.#answer(turn, request.signal);
      turn.state.set({ kind: 'done', result });
      const system = isFirst && asked.system.trim() !== '' ? asked.system : null;
      if (this.#request === request) this.#show({ conversationId: result.conversation_id, ...(system && { system }) });
    } catch (error) {
      turn.state.set(isAbort(error) ? { kind: 'stopped' } : { kind: 'failed', error: asError(error) });
    }
    if (this.#request !== request) return;
    this.isBusy.set(false);
    this.remember();
  }

  stop(): void {
    this.#request.abort();
  }

  /** Sends the message of a turn again. The new turn replaces the old one. */
  async askAgain(turn: ChatTurn): Promise<void> {
    if (this.isBusy.value || turn.isStored) return;
    this.#show({ turns: this.view.value.turns.filter((other) => other !== turn) });
    await this.ask(turn.asked);
  }

  /** Sends the message of a turn in a new conversation. */
  async askAnew(turn: ChatTurn): Promise<void> {
    this.reset();
    await this.ask(turn.asked);
  }

  reset(): void {
    this.#begin(nothing);
    this.remember();
  }

  /** Shows what this tab remembers of a conversation without an answer. */
  recall(): void {
    this.#show({ turns: this.#withRemembered(null, []) });
  }

  /** Saves the turns that the service does not store, for a reload of the page. */
  remember(): void {
    const { conversationId, turns, state } = this.view.value;
    if (state === 'reading') return; // what it remembers is not on the page yet
    rememberTurns(this.#memory, conversationId, turns);
  }

  /** Shows a stored conversation, so that the reader can continue it. */
  async read(conversationId: string): Promise<void> {
    if (conversationId === this.view.value.conversationId) return;
    const request = this.#begin({ ...nothing, conversationId, state: 'reading' });
    try {
      const path = `/chat/${encodeURIComponent(conversationId)}/messages`;
      const said = await this.#api.json<ConversationMessages>(path, { signal: request.signal });
      const turns = this.#withRemembered(conversationId, turnsOf(said, this.#takeId));
      if (this.#request === request) this.#show({ turns, system: said.system, state: 'ready' });
    } catch (error) {
      const unreadable = asError(error);
      // Where reading back is not allowed, the conversation can still be continued.
      const isThere = unreadable instanceof ApiError && unreadable.body?.error === 'forbidden';
      const id = isThere ? conversationId : null;
      const turns = this.#withRemembered(conversationId, []);
      if (this.#request === request) this.#show({ conversationId: id, turns, state: { unreadable } });
    }
  }

  #withRemembered(conversationId: string | null, stored: readonly ChatTurn[]): readonly ChatTurn[] {
    return withRemembered(this.#memory, conversationId, stored, this.#takeId);
  }

  #begin(view: ChatView): AbortController {
    this.stop();
    this.#request = new AbortController();
    this.isBusy.set(false);
    this.view.set(view);
    return this.#request;
  }

  #show(change: Partial<ChatView>): void {
    this.view.set({ ...this.view.value, ...change });
  }

  /** Reads the stream of one answer to its end. */
  async #answer(turn: ChatTurn, signal: AbortSignal): Promise<ChatResult> {
    const body = { ...chatBodyOf(turn.asked, this.view.value.conversationId), stream: true };
    const text = new DeltaBuffer(turn.text, this.#clock);
    try {
      for await (const event of this.#api.events('/chat', { method: 'POST', body, signal })) {
        const result = this.#take(turn, text, event);
        if (result !== null) return result;
      }
      throw new ServerGone(); // a stream ends with `done` or `error`
    } finally {
      text.close();
    }
  }

  #take(turn: ChatTurn, text: DeltaBuffer, { event, data }: StreamEvent): ChatResult | null {
    const content = JSON.parse(data) as never;
    const { value: state } = turn.state;
    if (event === 'delta') text.add((content as { text: string }).text);
    if (event === 'queued')
      turn.state.set({ kind: 'queued', sinceMs: sinceOf(state), ...(content as { position: number }) });
    if (event === 'started') turn.state.set({ kind: 'running', sinceMs: this.#clock.now() });
    if (event === 'error') throw new ApiError(200, content as ErrorBody);
    if (event !== 'done') return null;
    const result = content as ChatResult;
    text.settle(result.response); // a model may correct itself at the end
    return result;
  }
}

function sinceOf(state: ChatTurn['state']['value']): number {
  return 'sinceMs' in state ? state.sinceMs : 0;
}
