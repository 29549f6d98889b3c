import type { ChatResult, ConversationBody } from '../../shared/api/chat.js';
import type { ConversationMessages } from '../../shared/api/conversations.js';
import type { ErrorBody } from '../../shared/api/error.js';
import type { Api, StreamEvent } from '../base/api.mjs';
import { ApiError, asError, isAbort, ServerGone } from '../base/failures.mjs';
import { DeltaBuffer, Observable } from '../base/observable.mjs';
import type { PageClock } from '../base/page-clock.mjs';
import type { TabMemory } from '../base/tab-memory.mjs';
import { pathOf } from '../conversations/entry.mjs';
import { ChatTurn, chatBodyOf, rememberTurns, turnsOf, type UserMessage, withRemembered } from './turn.mjs';

/** The conversation on the page. */
export interface ChatView {
  readonly turns: readonly ChatTurn[];
  /** null before the first answer. */
  readonly conversationId: string | null;
  /** Set by the first message; null if it has none. */
  readonly system: string | null;
  readonly state: 'ready' | 'reading' | { readonly failure: Error };
  /** The conversation that its first messages were copied from. */
  readonly origin: string | null;
}

const nothing: ChatView = { turns: [], conversationId: null, system: null, state: 'ready', origin: null };

/** An answer that goes on while another conversation is on the page. */
interface LeftAnswer {
  /** null if the conversation begins with it. */
  readonly conversationId: string | null;
  readonly turn: ChatTurn;
  readonly request: AbortController;
  /** The stored turns before it. */
  readonly storedBefore: number;
}

/** Owns the conversation on the page, the one request that may run for it, and one that may still run for the conversation before. */
export class Chat {
  readonly view = new Observable<ChatView>(nothing);
  /** Whether an answer is open. */
  readonly isBusy = new Observable(false);
  /** At most one, because a browser has few connections to one server. */
  readonly left = new Observable<LeftAnswer | null>(null);
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
    const { conversationId } = this.view.value;
    const request = new AbortController();
    this.#request = request;
    this.#show({ turns: [...this.view.value.turns, turn] });
    this.isBusy.set(true);
    try {
      const result = await this.#answerInTime(turn, conversationId, request.signal);
      turn.state.set({ kind: 'done', result });
      const system = conversationId === null && asked.system.trim() !== '' ? asked.system : null;
      if (this.#request === request) this.#show({ conversationId: result.conversation_id, ...(system && { system }) });
    } catch (error) {
      turn.state.set(isAbort(error) ? { kind: 'stopped' } : { kind: 'failed', error: asError(error) });
    }
    if (this.left.value?.turn === turn) this.left.set(null);
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

  /**
   * Asks this instead of a turn. The service changes no conversation that there is: a new one begins with the messages
   * before the turn, and the old one stays.
   */
  async askInstead(turn: ChatTurn, asked: UserMessage): Promise<void> {
    const { conversationId, turns, system, state } = this.view.value;
    if (this.isBusy.value || state === 'reading') return;
    if (!turn.isStored || conversationId === null) {
      this.#show({ turns: turns.filter((other) => other !== turn) });
      return this.ask(asked);
    }
    const before = turns.slice(0, turns.indexOf(turn)).filter(({ isStored }) => isStored);
    if (await this.#branch(before)) await this.ask(before.length === 0 ? { ...asked, system: system ?? '' } : asked);
  }

  /** Continues with a copy of the conversation up to this turn. */
  async branchAfter(turn: ChatTurn): Promise<void> {
    const { turns, state } = this.view.value;
    if (this.isBusy.value || state === 'reading') return;
    await this.#branch(turns.slice(0, turns.indexOf(turn) + 1).filter(({ isStored }) => isStored));
    this.remember();
  }

  /** Whether the page shows a new conversation with these turns now. */
  async #branch(turns: readonly ChatTurn[]): Promise<boolean> {
    const { value: old } = this.view;
    const { conversationId: origin, system } = old;
    const request = this.#begin({ ...nothing, turns, system, origin, state: 'reading' });
    try {
      const id = turns.length === 0 ? null : await this.#fork(origin ?? '', 2 * turns.length, request.signal);
      if (this.#request !== request) return false;
      this.#show({ conversationId: id, system: id === null ? null : system, state: 'ready' });
      return true;
    } catch (error) {
      if (this.#request === request) this.view.set({ ...old, state: { failure: asError(error) } });
      return false;
    }
  }

  async #fork(origin: string, from: number, signal: AbortSignal): Promise<string> {
    const path = `${pathOf(origin)}/fork`;
    const fork = await this.#api.json<ConversationBody>(path, { method: 'POST', body: { from }, signal });
    return fork.conversation_id;
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
    const left = this.#takeLeft(conversationId);
    const request = this.#begin({ ...nothing, conversationId, state: 'reading' });
    try {
      const path = `${pathOf(conversationId)}/messages`;
      const said = await this.#api.json<ConversationMessages>(path, { signal: request.signal });
      const stored = turnsOf(said, this.#takeId);
      const turns = this.#withRemembered(conversationId, stored);
      if (this.#request === request) this.#show({ turns, system: said.system, state: 'ready' });
      if (this.#request === request && stored.length === left?.storedBefore) this.#resume(left);
    } catch (error) {
      const failure = asError(error);
      // Where reading back is not allowed, the conversation can still be continued.
      const isThere = failure instanceof ApiError && failure.body?.error === 'forbidden';
      const id = isThere ? conversationId : null;
      const turns = this.#withRemembered(conversationId, []);
      if (this.#request === request) this.#show({ conversationId: id, turns, state: { failure } });
    }
    if (left?.turn.isOpen && this.#request !== left.request) this.#leave(left);
  }

  #leave(answer: LeftAnswer): void {
    this.left.value?.request.abort();
    this.left.set(answer);
  }

  /** The answer that goes on in this conversation, or null. The caller must show it, or leave it again: nothing else can stop it. */
  #takeLeft(conversationId: string): LeftAnswer | null {
    const { value: left } = this.left;
    if (left?.conversationId !== conversationId) return null;
    this.left.set(null);
    return left;
  }

  /** Shows it as the last turn, in place of what the tab remembers of it. */
  #resume({ turn, request }: LeftAnswer): void {
    const { turns } = this.view.value;
    const last = turns.at(-1);
    const isRemembered = last?.isStored === false && last.asked.text === turn.asked.text;
    this.#show({ turns: [...(isRemembered ? turns.slice(0, -1) : turns), turn] });
    this.#request = request;
    this.isBusy.set(turn.isOpen);
  }

  #withRemembered(conversationId: string | null, stored: readonly ChatTurn[]): readonly ChatTurn[] {
    return withRemembered(this.#memory, conversationId, stored, this.#takeId);
  }

  /** What is on the page stays in the memory of the tab. An answer goes on. */
  #begin(view: ChatView): AbortController {
    const { conversationId, turns } = this.view.value;
    if (conversationId !== null) this.remember();
    const open = turns.find(({ isOpen }) => isOpen);
    const storedBefore = turns.filter(({ isStored }) => isStored).length;
    if (open === undefined) this.stop();
    else this.#leave({ conversationId, turn: open, request: this.#request, storedBefore });
    this.#request = new AbortController();
    this.isBusy.set(false);
    this.view.set(view);
    return this.#request;
  }

  #show(change: Partial<ChatView>): void {
    this.view.set({ ...this.view.value, ...change });
  }

  /** Sends the message again and again while the queue is full, as often as the service says, until the user stops it. */
  async #answerInTime(turn: ChatTurn, conversationId: string | null, signal: AbortSignal): Promise<ChatResult> {
    for (;;) {
      try {
        return await this.#answer(turn, conversationId, signal);
      } catch (error) {
        const waitMs = retryMsOf(error);
        if (waitMs === null) throw error;
        turn.state.set({ kind: 'retrying', atMs: this.#clock.now() + waitMs, error: asError(error) });
        await this.#pause(waitMs, signal);
        turn.state.set({ kind: 'sent', sinceMs: this.#clock.now() });
      }
    }
  }

  /** Rejects with the reason of the signal. */
  #pause(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const stopTimer = this.#clock.after(ms, resolve);
      signal.addEventListener('abort', () => {
        stopTimer();
        reject(signal.reason);
      });
    });
  }

  /** Reads the stream of one answer to its end. */
  async #answer(turn: ChatTurn, conversationId: string | null, signal: AbortSignal): Promise<ChatResult> {
    const body = { ...chatBodyOf(turn.asked, conversationId), stream: true };
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

/** When a message that found no place in the queue is sent again; null for another failure. */
export function retryMsOf(error: unknown): number | null {
  const body = error instanceof ApiError && error.status === 429 ? error.body : null;
  if (body?.error !== 'concurrency_limited') return null;
  return 1000 * (body.retry_after_seconds ?? 5);
}

function sinceOf(state: ChatTurn['state']['value']): number {
  return 'sinceMs' in state ? state.sinceMs : 0;
}
