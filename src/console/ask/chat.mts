import type { ChatResult, ConversationBody } from '../../shared/api/chat.js';
import type { ConversationMessages } from '../../shared/api/conversations.js';
import type { Api } from '../base/api.mjs';
import { ApiError, asError, isAbort } from '../base/failures.mjs';
import { Observable } from '../base/observable.mjs';
import { delay, type PageClock } from '../base/page-clock.mjs';
import type { TabMemory } from '../base/tab-memory.mjs';
import { pathOf } from '../conversations/entry.mjs';
import { AnswerCancelled, AnswerLost, Asking } from './asking.mjs';
import type { Reached } from './steering.mjs';
import {
  ChatTurn,
  chatBodyOf,
  rememberTurns,
  type TurnElsewhere,
  type TurnState,
  turnFromElsewhere,
  turnsOf,
  type UserMessage,
  withRemembered,
} from './turn.mjs';

/** Conversation as the page shows it. */
export interface ChatView {
  readonly turns: readonly ChatTurn[];
  /** ID of the conversation; null before the first answer. */
  readonly conversationId: string | null;
  /** Local name of a conversation that began on this page, for its address; null for one read from the service. */
  readonly local: string | null;
  /** System text that the first message sets; null if it sets none. */
  readonly system: string | null;
  readonly state: 'ready' | 'reading' | { readonly failure: Error };
  /** ID of the conversation of which this one is a version; null for one that was not made on this page. */
  readonly origin: string | null;
  /** Whether the page must not scroll to the end, because it shows another version in place, or a found message. */
  readonly isInPlace: boolean;
  /** Stored message that a search has found, by its index. Each click on it is another object. */
  readonly found: { readonly message: number } | null;
}

const nothing: ChatView = {
  turns: [],
  conversationId: null,
  local: null,
  system: null,
  state: 'ready',
  origin: null,
  isInPlace: false,
  found: null,
};

/** Conversation and its only request. */
interface Talk {
  view: ChatView;
  request: AbortController;
}

const talkOf = (view: Partial<ChatView>): Talk => ({ view: { ...nothing, ...view }, request: new AbortController() });
/** Whether the conversation is new and has no message. */
export const isEmptyView = ({ turns, conversationId, state }: ChatView) =>
  turns.length === 0 && conversationId === null && state === 'ready';

/** Whether the service is still sending an answer in this conversation. */
export function isAnswering({ turns }: ChatView): boolean {
  return turns.some(({ isOpen }) => isOpen);
}

/** Time between two questions whether a job of another page or program has ended. */
const betweenLooksMs = 2000;
/** Maximum number of answers streamed at once. A browser opens six connections to a server: two stay for requests. */
const maxOpenAnswers = 4;

/** Owns the conversation on the page, and each one that was left while an answer was open. Each has one request. */
export class Chat {
  readonly view = new Observable<ChatView>(nothing);
  /** Whether the service is still sending an answer in the conversation on the page. */
  readonly isBusy = new Observable(false);
  /**
   * Conversations that the service may not list, or not with their last turn: an answer is open, or they began here.
   */
  readonly talks = new Observable<readonly ChatView[]>([]);
  /** Expiry of each conversation that was answered on this page, by ID: milliseconds since the epoch. */
  readonly expiry = new Map<string, number>();
  readonly #api: Api;
  readonly #clock: PageClock;
  readonly #memory: TabMemory;
  readonly #asking: Asking;
  /** Conversation on the page. */
  #current = talkOf({});
  /** Conversations that the user left before their answers were stored. */
  #leftTalks: readonly Talk[] = [];
  /** IDs of conversations that began on this page, by local name. */
  readonly #ids = new Map<string, string>();
  /** IDs of conversations that the service no longer has. */
  readonly #goneIds = new Set<string>();
  /** Jobs that this page has ended or stopped: the service may still list them for a moment. */
  readonly #leftJobs = new Set<string>();
  #nextId = 1;
  readonly #takeId = () => this.#nextId++;

  constructor(api: Api, clock: PageClock, memory: TabMemory) {
    this.#api = api;
    this.#clock = clock;
    this.#memory = memory;
    this.#asking = new Asking(api, clock, { onChange: () => this.#update(), onAccepted: () => this.remember() });
  }

  /** Sends a message. Does nothing while an answer is open in this conversation. */
  async ask(asked: UserMessage): Promise<void> {
    const talk = this.#current;
    const { conversationId, local, origin, state, turns } = talk.view;
    if (this.isBusy.value || state === 'reading') return;
    const turn = new ChatTurn(this.#nextId++, asked, { kind: 'sent', sinceMs: this.#clock.now() });
    talk.request = new AbortController();
    const { signal } = talk.request;
    const name = conversationId === null ? (local ?? `${this.#clock.now().toString(36)}-${turn.id}`) : local;
    const hasRoom = this.#leftTalks.filter(({ view }) => isAnswering(view)).length < maxOpenAnswers;
    this.#show(talk, { turns: [...turns, turn], local: name, isInPlace: false, found: null });
    await this.#settle(talk, turn, async () => {
      if (!hasRoom) throw new Error(`${maxOpenAnswers} other answers are still open: wait for one, or stop it`);
      const version = conversationId === null && origin !== null ? { version_of: origin } : {};
      const body = { ...chatBodyOf(asked, conversationId), ...version, thoughts: true };
      return this.#asking.ask(turn, body, signal);
    });
  }

  /** Continues with the open answer of a conversation that the tab has restored. */
  async #resume(talk: Talk): Promise<void> {
    const turn = talk.view.turns.find(({ isOpen }) => isOpen);
    const job = turn?.job ?? null;
    if (turn === undefined || job === null) return;
    turn.state.set({ kind: 'sent', sinceMs: this.#clock.now() });
    talk.request = new AbortController();
    await this.#settle(talk, turn, () => this.#asking.follow(turn, job, talk.request.signal));
  }

  /** Waits for the answer of a turn, and shows its end. */
  async #settle(talk: Talk, turn: ChatTurn, answer: () => Promise<ChatResult>): Promise<void> {
    const { conversationId, local } = talk.view;
    const { system: asked } = turn.question;
    try {
      const result = await answer();
      turn.state.set({ kind: 'done', result });
      const system = conversationId === null && asked.trim() !== '' ? asked : null;
      const { conversation_id: id, expires_at: expiresAt } = result;
      rememberTurns(this.#memory, local, []); // the ID replaces the local name
      if (local !== null) this.#ids.set(local, id);
      this.expiry.set(id, Date.parse(expiresAt));
      this.#show(talk, { conversationId: id, ...(system && { system }) });
    } catch (error) {
      turn.state.set(stateAfter(error));
    }
    if (turn.job !== null) this.#removeJob(turn.job); // the conversation has the answer, or the user wants none
    turn.job = null;
    this.#remember(talk.view);
    if (turn.isStored) this.#leftTalks = this.#leftTalks.filter((other) => other !== talk);
    this.#update();
  }

  #removeJob(job: string): void {
    this.#leftJobs.add(job);
    this.#asking.remove(job);
  }

  /**
   * Shows what other pages and programs of the same client have asked in the open conversation: the turn that runs, and
   * turns that were stored since. Does nothing while an answer is open. Called regularly, so a failure is ignored.
   */
  async lookElsewhere(): Promise<void> {
    const talk = this.#current;
    const { conversationId: id, state } = talk.view;
    if (id === null || state !== 'ready' || this.isBusy.value || this.#goneIds.has(id)) return;
    const found = await this.#conversation(id).catch((error) => {
      if (error instanceof ApiError && error.status === 404) this.#goneIds.add(id);
      return null;
    });
    if (found === null || this.#current !== talk || this.isBusy.value) return;
    const { open_turn: open, message_count: count } = found;
    if (open !== null && !this.#leftJobs.has(open.job_id)) return this.#followElsewhere(talk, id, open);
    const stored = talk.view.turns.filter(({ isStored }) => isStored).length;
    if (count > 2 * stored) await this.#readOn(talk, id);
  }

  #conversation(id: string, signal?: AbortSignal): Promise<ConversationBody> {
    return this.#api.json<ConversationBody>(pathOf(id), { asksForKey: false, ...(signal && { signal }) });
  }

  /** Shows the turn to its end. If the user stops it, its job is cancelled. */
  async #followElsewhere(talk: Talk, id: string, open: TurnElsewhere): Promise<void> {
    const turn = turnFromElsewhere(this.#takeId(), open, this.#clock.now());
    talk.request = new AbortController();
    const { signal } = talk.request;
    this.#show(talk, { turns: [...talk.view.turns, turn], isInPlace: false });
    try {
      if (open.background) await this.#asking.follow(turn, open.job_id, signal);
      else await this.#untilEnded(id, open.job_id, signal);
    } catch {
      // the conversation has no such turn then: the page that asked shows why
      if (signal.aborted) this.#removeJob(open.job_id);
    }
    await this.#readOn(talk, id);
    this.#leftTalks = this.#leftTalks.filter((other) => other !== talk);
    this.#update();
  }

  /** Waits until the job of a plain request has ended: only that request receives the answer. */
  async #untilEnded(id: string, job: string, signal: AbortSignal): Promise<void> {
    for (;;) {
      await delay(this.#clock, betweenLooksMs, signal);
      const { open_turn: open } = await this.#conversation(id, signal);
      if (open?.job_id !== job) return;
    }
  }

  /** Replaces the turn of another page by the turns that were stored since. */
  async #readOn(talk: Talk, id: string): Promise<void> {
    const path = `${pathOf(id)}/messages`;
    const messages = await this.#api.json<ConversationMessages>(path, { asksForKey: false }).catch(() => null);
    const own = talk.view.turns.filter(({ isFromElsewhere }) => !isFromElsewhere);
    const stored = messages === null ? [] : turnsOf(messages, this.#takeId);
    const added = stored.slice(own.filter(({ isStored }) => isStored).length);
    this.#show(talk, { turns: [...own, ...added] });
  }

  stop(): void {
    this.#current.request.abort();
  }

  /** Sends a message to the open answer. Resolves with where it has arrived. */
  async steer(text: string): Promise<Reached> {
    const { conversationId, turns } = this.view.value;
    const job = turns.find(({ isOpen }) => isOpen)?.job ?? null;
    if (job === null && conversationId === null) throw new Error('the answer has not begun: try again in a moment');
    const path = job === null ? pathOf(conversationId ?? '') : `/jobs/${encodeURIComponent(job)}`;
    const request = { method: 'POST', body: { text } } as const;
    return (await this.#api.json<{ readonly reached: Reached }>(`${path}/steer`, request)).reached;
  }

  /** Sends the message of a turn again. The new turn replaces the old one. */
  async askAgain(turn: ChatTurn): Promise<void> {
    if (this.isBusy.value || turn.isStored) return;
    this.#show(this.#current, { turns: this.view.value.turns.filter((other) => other !== turn) });
    await this.ask(turn.question);
  }

  /**
   * Replaces the message of a turn. The service does not change stored turns: a new version of the conversation begins
   * with the messages before the turn, and the old one is unchanged. A turn that is not stored is replaced in place.
   */
  async askInstead(turn: ChatTurn, asked: UserMessage): Promise<void> {
    const { conversationId, turns, system, state } = this.view.value;
    if (this.isBusy.value || state === 'reading') return;
    if (!turn.isStored || conversationId === null) {
      this.#show(this.#current, { turns: turns.filter((other) => other !== turn) });
      return this.ask(asked);
    }
    const before = turns.slice(0, turns.indexOf(turn)).filter(({ isStored }) => isStored);
    if (await this.#branch(before)) await this.ask(before.length === 0 ? { ...asked, system: system ?? '' } : asked);
  }

  /** Continues with a new version of the conversation up to this turn. */
  async branchAfter(turn: ChatTurn): Promise<void> {
    const { turns, state } = this.view.value;
    if (this.isBusy.value || state === 'reading') return;
    await this.#branch(turns.slice(0, turns.indexOf(turn) + 1).filter(({ isStored }) => isStored));
    this.remember();
  }

  /** Opens a conversation that begins with these turns. Resolves with whether the page shows it. */
  async #branch(turns: readonly ChatTurn[]): Promise<boolean> {
    const old = this.#current;
    const { conversationId: origin, system } = old.view;
    const talk = this.#open(talkOf({ turns, system, origin, state: 'reading' }));
    try {
      const { signal } = talk.request;
      const id = turns.length === 0 ? null : await this.#fork(origin ?? '', 2 * turns.length, signal);
      this.#show(talk, { conversationId: id, system: id === null ? null : system, state: 'ready' });
      return this.#current === talk;
    } catch (error) {
      if (this.#current === talk) this.#show(this.#open(old), { state: { failure: asError(error) } });
      return false;
    }
  }

  async #fork(origin: string, from: number, signal: AbortSignal): Promise<string> {
    const path = `${pathOf(origin)}/fork`;
    const fork = await this.#api.json<ConversationBody>(path, { method: 'POST', body: { from }, signal });
    return fork.conversation_id;
  }

  /**
   * Shows another version of the conversation, which has the first `shared` turns in common. The page changes when the
   * version is read.
   */
  async openVersion(id: string, shared: number): Promise<void> {
    const left = this.#current;
    const known = this.#leftTalks.find(({ view }) => view.conversationId === id);
    if (known !== undefined) return this.#show(this.#open(known), { isInPlace: true });
    try {
      const messages = await this.#api.json<ConversationMessages>(`${pathOf(id)}/messages`);
      if (this.#current !== left) return;
      const same = left.view.turns.filter(({ isStored }) => isStored).slice(0, shared);
      const stored = [...same, ...turnsOf(messages, this.#takeId).slice(shared)];
      const turns = this.#withRemembered(id, stored);
      void this.#resume(this.#open(talkOf({ conversationId: id, turns, system: messages.system, isInPlace: true })));
    } catch (error) {
      if (this.#current === left) this.#show(left, { state: { failure: withoutVersion(asError(error)) } });
    }
  }

  /** Sends the message of a turn in a new conversation. */
  async askAnew(turn: ChatTurn): Promise<void> {
    this.reset();
    await this.ask(turn.question);
  }

  reset(): void {
    if (!isEmptyView(this.view.value)) this.#open(talkOf({}));
  }

  /** Removes a conversation that the user has deleted. */
  forget(conversationId: string): void {
    if (this.view.value.conversationId === conversationId) this.reset();
    const removedTalks = this.#leftTalks.filter(({ view }) => view.conversationId === conversationId);
    this.#leftTalks = this.#leftTalks.filter((talk) => !removedTalks.includes(talk));
    for (const { request } of removedTalks) request.abort();
    this.#update();
  }

  /** Shows a conversation that began on this page, or the turns of it that the tab restored after a reload. */
  async recall(local: string): Promise<void> {
    if (this.view.value.local === local) return;
    const known = this.#leftTalks.find(({ view }) => view.local === local);
    if (known !== undefined) return void this.#open(known);
    const id = this.#ids.get(local);
    if (id !== undefined) return await this.read(id);
    const turns = this.#withRemembered(local, []);
    void this.#resume(this.#open(talkOf({ turns, local: turns.length === 0 ? null : local })));
  }

  /** Saves the turns that the service does not store, to be restored after a reload. */
  remember(): void {
    for (const { view } of [...this.#leftTalks, this.#current]) this.#remember(view);
  }

  #remember({ conversationId, local, turns, state }: ChatView): void {
    if (state === 'reading' || (conversationId ?? local) === null) return; // its saved turns are not on the page yet
    rememberTurns(this.#memory, conversationId ?? local, turns);
  }

  /** Shows a stored conversation, so that the reader can continue it. Scrolls to the message that a search has found. */
  async read(conversationId: string, foundMessage: number | null = null): Promise<void> {
    const place = foundMessage === null ? {} : { found: { message: foundMessage }, isInPlace: true };
    const isShown = conversationId === this.view.value.conversationId;
    if (isShown) return foundMessage === null ? undefined : this.#show(this.#current, place);
    const known = this.#leftTalks.find(({ view }) => view.conversationId === conversationId);
    if (known !== undefined) return this.#show(this.#open(known), place);
    const talk = this.#open(talkOf({ conversationId, state: 'reading' }));
    const { signal } = talk.request;
    try {
      const stored = await this.#api.json<ConversationMessages>(`${pathOf(conversationId)}/messages`, { signal });
      const turns = this.#withRemembered(conversationId, turnsOf(stored, this.#takeId));
      this.#show(talk, { turns, system: stored.system, state: 'ready', ...place });
    } catch (error) {
      const failure = asError(error);
      // If reading back is not allowed, the conversation can still be continued.
      const isThere = failure instanceof ApiError && failure.body?.error === 'forbidden';
      const id = isThere ? conversationId : null;
      this.#show(talk, { conversationId: id, turns: this.#withRemembered(conversationId, []), state: { failure } });
    }
    if (this.#current !== talk) return;
    void this.#resume(talk);
    await this.lookElsewhere();
  }

  #withRemembered(conversationId: string, stored: readonly ChatTurn[]): readonly ChatTurn[] {
    return withRemembered(this.#memory, conversationId, stored, this.#takeId);
  }

  /**
   * Shows another conversation, and saves the turns of the previous one. If an answer is being streamed in the previous
   * one, the stream continues.
   */
  #open(talk: Talk): Talk {
    const left = this.#current;
    this.#remember(left.view);
    if (!isAnswering(left.view)) left.request.abort();
    this.#leftTalks = [...this.#leftTalks, ...(isAnswering(left.view) ? [left] : [])].filter((other) => other !== talk);
    this.#current = talk;
    this.#update();
    return talk;
  }

  #show(talk: Talk, change: Partial<ChatView>): void {
    talk.view = { ...talk.view, ...change };
    this.#update();
  }

  #update(): void {
    const { view } = this.#current;
    const isShownToo = view.local !== null && view.turns.length > 0;
    this.isBusy.set(isAnswering(view));
    this.talks.set([...(isShownToo || isAnswering(view) ? [view] : []), ...this.#leftTalks.map((other) => other.view)]);
    this.view.set(view);
  }
}

function stateAfter(error: unknown): TurnState {
  if (isAbort(error) || error instanceof AnswerCancelled) return { kind: 'stopped' };
  return error instanceof AnswerLost ? { kind: 'unfinished' } : { kind: 'failed', error: asError(error) };
}

/** Explains that a version was not found. The conversation on the page may still exist. */
function withoutVersion(error: Error): Error {
  const isGone = error instanceof ApiError && error.status === 404;
  return isGone ? new Error('this version has expired, or was deleted') : error;
}
