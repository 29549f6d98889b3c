import { orAborted, withResolvers } from '../../shared/async.js';
import type { Image, JobRequest } from '../../shared/job.js';
import type { Turn } from '../cli/contract/adapter.js';
import type { ConversationState } from '../cli/process/cli-process.js';
import type { ConversationJournal, TurnChange } from '../store/contract/conversations.js';
import type { StoredText } from '../store/contract/stored-text.js';
import type { Conversation, TurnInLine } from './conversation.js';
import type { ConversationStore } from './conversation-store.js';
import { noLock, type TurnGate, type TurnLock } from './turn-gate.js';

/** What a turn adds to its conversation. */
type Added = [user: string, assistant: string, tokens: number, images?: readonly Image[], figures?: StoredText | null];

type TurnKeeper = Pick<ConversationStore, 'open' | 'commit' | 'close'>;

/** The right to one turn on a conversation. Nothing changes in the conversation unless `commit` is called. */
export class ConversationTurn implements TurnInLine, Disposable {
  readonly bytes: number;
  /** The right to change the conversation, among hosts that share it. */
  lock: TurnLock = noLock;
  readonly #conversation: Conversation;
  readonly #keeper: TurnKeeper;
  readonly #gate: TurnGate;
  #isBegun = false;
  #state: 'new' | 'in-line' | 'left' = 'new';
  readonly #woken = withResolvers();

  constructor(conversation: Conversation, bytes: number, keeper: TurnKeeper, gate: TurnGate) {
    this.#conversation = conversation;
    this.bytes = bytes;
    this.#keeper = keeper;
    this.#gate = gate;
  }

  /** Whether it may run: those before it have ended, here and on all other hosts. */
  get isReady(): boolean {
    return !this.mustWait && (this.#isBegun || this.#gate.mayBegin(this));
  }

  /** Whether another turn on the same conversation must end first. */
  get mustWait(): boolean {
    return this.#conversation.turns !== null && this.#conversation.turns[0] !== this;
  }

  get id(): string {
    return this.#conversation.id;
  }

  get client(): string {
    return this.#conversation.client;
  }

  /** Whether its conversation comes to be with it. */
  get isFirst(): boolean {
    return this.#conversation.texts.length === 0;
  }

  get system(): string | null {
    return this.#conversation.system;
  }

  /** Where the conversation stands; null before its first turn has ended, and once it is deleted. */
  get state(): ConversationState | null {
    const { id, texts, isRemoved } = this.#conversation;
    return texts.length === 0 || isRemoved ? null : { id, messageCount: texts.length, client: this.client };
  }

  /** Where it stands after so many messages; null where it has been deleted or continued since. */
  stateAt(messageCount: number | undefined): ConversationState | null {
    const { state, client } = this;
    if (state === null || state.messageCount !== messageCount) return null;
    return messageCount > 2 ? state : { ...state, guess: { kind: 'question', client } };
  }

  /** The finished turns before this one. */
  get history(): Turn['history'] {
    return this.#conversation.history;
  }

  /** Lines up behind the turns that came before. */
  open(): void {
    this.#isBegun = this.isReady;
    this.#state = 'in-line';
    this.#keeper.open(this.#conversation, this);
    if (!this.mustWait) this.#gate.begin(this);
  }

  /**
   * Resolves when it is ready. Rejects with the signal's reason, and as an admission where the conversation can no longer
   * be used. `onLost` is called with the reason where another host may have a turn too.
   */
  async ready(signal: AbortSignal, onLost: (reason: Error) => void): Promise<void> {
    signal.throwIfAborted();
    if (this.mustWait) await orAborted(this.#woken.promise, signal);
    await this.#gate.begun(this, signal);
    void this.lock.lost?.then(onLost);
    this.#isBegun = true;
  }

  /** Called by the store when it is this turn's time. */
  wake(): void {
    this.#woken.resolve();
  }

  /** What a commit will change, for the journal; null where the conversation has been deleted. */
  change(...[user, assistant, tokens, images = [], figures = null]: Added): TurnChange | null {
    const { id, client, texts, storedSystem, createdAt, tokens: before, isRemoved } = this.#conversation;
    if (isRemoved) return null;
    const system = texts.length === 0 ? storedSystem : null;
    const counts = { messageCount: texts.length + 2, totalTokens: before + tokens };
    const said = { user, assistant, images, figures };
    return { type: 'turn', id, client, system, createdAt, ...said, token: this.lock.token, ...counts };
  }

  commit(...[user, assistant, tokens, images = [], figures = null]: Added) {
    this.lock.spent();
    return this.#keeper.commit(this.#conversation, [user, assistant], tokens, images, figures);
  }

  [Symbol.dispose](): void {
    if (this.#state === 'in-line') this.#keeper.close(this.#conversation, this);
    this.#state = 'left';
    this.lock.release();
  }
}

/** Resolves with the tokens of all texts of this client together; never rejects. */
export type CountTokens = (texts: readonly string[], client: string) => Promise<number>;

export interface TurnResources {
  readonly countTokens: CountTokens;
  readonly journal: Pick<ConversationJournal, 'commit'>;
}

/** UTF-16 units that are counted in no time; a trip to the thread costs more. */
const maxShortLength = 4096;

/** What a turn will add to its conversation, from its start until it is committed or forgotten. */
export class TurnRecord {
  readonly #turn: ConversationTurn;
  readonly #request: JobRequest;
  readonly #resources: TurnResources;
  readonly #asked: readonly string[];
  /** null where the question is short enough to be counted with its answer. */
  readonly #askedTokens: Promise<number> | null;
  readonly #said: string[] = [];

  constructor(turn: ConversationTurn, request: JobRequest, resources: TurnResources) {
    this.#turn = turn;
    this.#request = request;
    this.#resources = resources;
    this.#asked = [request.system ?? '', request.text];
    const isLong = this.#asked.join('').length > maxShortLength;
    this.#askedTokens = isLong ? this.#countTokens(this.#asked) : null; // while the model thinks
  }

  add(text: string): void {
    this.#said.push(text);
  }

  /**
   * `answer` stands for what was added, where it differs. Nothing can come between the commit and its return. What has
   * gone to the journal is not cut any more: else a restart would bring back a turn that was never there.
   */
  async commit(answer: string | null, signal: AbortSignal, figures: StoredText | null = null) {
    const whole = answer ?? this.#said.join('');
    const { text, images } = this.#request;
    const said: Added = [text, whole, await orAborted(this.#count(whole), signal), images, figures];
    const change = this.#turn.change(...said);
    if (change !== null) await this.#resources.journal.commit(change);
    return this.#turn.commit(...said);
  }

  async #count(said: string): Promise<number> {
    if (this.#askedTokens === null) return this.#countTokens([...this.#asked, said]);
    const [asked, answered] = await Promise.all([this.#askedTokens, this.#countTokens([said])]);
    return asked + answered;
  }

  #countTokens(texts: readonly string[]): Promise<number> {
    return this.#resources.countTokens(texts, this.#request.client);
  }
}
