import { orAborted, withResolvers } from '../../shared/async.js';
import type { ClientText } from '../../shared/client.js';
import type { AddedMessage, Attachment, JobRequest } from '../../shared/job.js';
import type { TurnFigures } from '../../shared/turn-figures.js';
import type { Turn } from '../cli/contract/adapter.js';
import type { ConversationState } from '../cli/process/cli-process.js';
import type { ConversationJournal, TurnChange } from '../store/contract/conversations.js';
import type { StoredText } from '../store/contract/stored-text.js';
import type { Conversation, TurnInLine } from './conversation.js';
import type { ConversationStore } from './conversation-store.js';
import { noLock, type TurnGate, type TurnLock } from './turn-gate.js';

/** Data that a turn adds to its conversation. */
type Added = [
  user: string,
  assistant: string,
  tokens: number,
  images?: readonly Attachment[],
  figures?: StoredText | null,
];

type TurnKeeper = Pick<ConversationStore, 'openTurn' | 'commit' | 'closeTurn' | 'fits'>;

/** A turn on a conversation. The conversation changes only if `commit` is called. */
export class ConversationTurn implements TurnInLine, Disposable {
  readonly bytes: number;
  /** Lock between the hosts that share the conversation. */
  lock: TurnLock = noLock;
  readonly #conversation: Conversation;
  readonly #keeper: TurnKeeper;
  readonly #gate: TurnGate;
  /** Whether the turn probably replaces a message of another conversation. */
  readonly #replaces: boolean;
  #isBegun = false;
  #state: 'new' | 'in-line' | 'left' = 'new';
  readonly #woken = withResolvers();

  constructor(conversation: Conversation, bytes: number, keeper: TurnKeeper, gate: TurnGate, replaces = false) {
    this.#conversation = conversation;
    this.bytes = bytes;
    this.#keeper = keeper;
    this.#gate = gate;
    this.#replaces = replaces;
  }

  /** Whether the turn may run: all earlier turns have ended, on all hosts. */
  get isReady(): boolean {
    return !this.mustWait && (this.#isBegun || this.#gate.mayBegin(this));
  }

  /** Whether an earlier turn on this host must end first. */
  get mustWait(): boolean {
    return this.#conversation.turns !== null && this.#conversation.turns[0] !== this;
  }

  get id(): string {
    return this.#conversation.id;
  }

  get client(): ClientText {
    return this.#conversation.client;
  }

  /** Whether this is the first turn of its conversation. */
  get isFirst(): boolean {
    return this.#conversation.texts.length === 0;
  }

  get system(): string | null {
    return this.#conversation.system;
  }

  /** State of the conversation; null before its first turn has ended, and after its removal. */
  get state(): ConversationState | null {
    const { id, texts, isRemoved } = this.#conversation;
    if (texts.length === 0 || isRemoved) return null;
    const beginnings = this.#replaces ? { beginnings: this.#conversation.beginnings.slice(0, 1) } : {};
    return { id, messageCount: texts.length, client: this.client, ...beginnings };
  }

  /**
   * Returns the state after this number of messages; null if the conversation was removed, or has another number of
   * messages now.
   */
  stateAt(messageCount: number | undefined): ConversationState | null {
    const { state, client } = this;
    if (state === null || state.messageCount !== messageCount) return null;
    const after = { ...state, beginnings: this.#conversation.beginnings.slice(1) };
    return messageCount > 2 ? after : { ...after, guess: { kind: 'question', client } };
  }

  /** Messages of the finished turns. */
  get history(): Turn['history'] {
    return this.#conversation.history;
  }

  /** Whether the conversation may have this turn with this many more bytes of messages. */
  fits(bytes: number): boolean {
    return this.#keeper.fits(this.#conversation, bytes);
  }

  /** Queues the turn behind the earlier turns of its conversation. */
  openTurn(): void {
    this.#isBegun = this.isReady;
    this.#state = 'in-line';
    this.#keeper.openTurn(this.#conversation, this);
    if (!this.mustWait) this.#gate.beginTurn(this);
  }

  /**
   * Waits until the turn may run. Rejects with the reason of the signal, or with the errors of an admission if the
   * conversation cannot be used any more. `onLost` is called if another host may run a turn at the same time.
   */
  async ready(signal: AbortSignal, onLost: (reason: Error) => void): Promise<void> {
    signal.throwIfAborted();
    if (this.mustWait) await orAborted(this.#woken.promise, signal);
    await this.#gate.begun(this, signal);
    void this.lock.lost?.then(onLost);
    this.#isBegun = true;
  }

  /** Ends the wait for earlier turns. Called by the store. */
  wake(): void {
    this.#woken.resolve();
  }

  /** Builds the change for the journal; null if the conversation was removed. */
  change(...[user, assistant, tokens, images = [], figures = null]: Added): TurnChange | null {
    const { id, client, texts, storedSystem, createdAt, tokens: before, isRemoved } = this.#conversation;
    if (isRemoved) return null;
    const { title, origins } = this.#conversation;
    const system = this.isFirst ? storedSystem : null;
    const version = this.isFirst && origins !== null ? { version: { title, origins } } : {};
    const counts = { messageCount: texts.length + 2, totalTokens: before + tokens };
    const turnTexts = { user, assistant, images, figures };
    return { type: 'turn', id, client, system, createdAt, ...version, ...turnTexts, token: this.lock.token, ...counts };
  }

  commit(...[user, assistant, tokens, images = [], figures = null]: Added) {
    this.lock.spent();
    return this.#keeper.commit(this.#conversation, [user, assistant], tokens, images, figures);
  }

  [Symbol.dispose](): void {
    if (this.#state === 'in-line') this.#keeper.closeTurn(this.#conversation, this);
    this.#state = 'left';
    this.lock.release();
  }
}

/** Counts the tokens of all texts of a client together; never rejects. */
export type CountTokens = (texts: readonly string[], client: ClientText) => Promise<number>;

export interface TurnResources {
  readonly countTokens: CountTokens;
  readonly journal: Pick<ConversationJournal, 'commitChange'>;
}

/**
 * UTF-16 units of a question that is counted together with its answer: a separate call to the thread would cost more.
 */
const maxShortLength = 4096;

/** Fields of a job that its conversation stores. */
type RecordedRequest = Pick<JobRequest, 'system' | 'text' | 'images' | 'client'>;

/** Collects what a turn will add to its conversation, until the turn is committed or dropped. */
export class TurnRecord {
  readonly #turn: ConversationTurn;
  readonly #request: RecordedRequest;
  readonly #resources: TurnResources;
  readonly #questionTexts: readonly string[];
  /** Tokens of a long question; null if the question is short enough to be counted with its answer. */
  readonly #questionTokens: Promise<number> | null;
  readonly #answerTexts: string[] = [];
  #answerLength = 0;
  readonly #additions: AddedMessage[] = [];

  constructor(turn: ConversationTurn, request: RecordedRequest, resources: TurnResources) {
    this.#turn = turn;
    this.#request = request;
    this.#resources = resources;
    this.#questionTexts = [(turn.isFirst && request.system) || '', request.text];
    const isLong = this.#questionTexts.join('').length > maxShortLength;
    this.#questionTokens = isLong ? this.#countTokens(this.#questionTexts) : null; // counted while the model runs
  }

  addText(text: string): void {
    this.#answerTexts.push(text);
    this.#answerLength += text.length;
  }

  /** Adds a message that the model has received after the answer so far. */
  addMessage(text: string): void {
    this.#additions.push({ at: this.#answerLength, text });
  }

  /**
   * Returns the marks to store with the answer. `answer`: as for `commit`. The places in a text that was corrected are
   * unknown.
   */
  marksFor(answer: string | null): Pick<TurnFigures, 'additions'> {
    if (this.#additions.length === 0) return {};
    return { additions: answer === null ? this.#additions : this.#additions.map((each) => ({ ...each, at: 0 })) };
  }

  /**
   * Commits the turn; `answer` replaces the collected text if it is not null. No other code runs between the commit and
   * the return. An abort does not cancel a change that was sent to the journal: otherwise a restart could restore a
   * turn that the caller never saw.
   */
  async commit(answer: string | null, signal: AbortSignal, figures: StoredText | null = null) {
    const whole = answer ?? this.#answerTexts.join('');
    const { text, images } = this.#request;
    const added: Added = [text, whole, await orAborted(this.#count(whole), signal), images, figures];
    const change = this.#turn.change(...added);
    if (change !== null) await this.#resources.journal.commitChange(change);
    return this.#turn.commit(...added);
  }

  async #count(answer: string): Promise<number> {
    const texts = [...this.#additions.map(({ text }) => text), answer];
    if (this.#questionTokens === null) return this.#countTokens([...this.#questionTexts, ...texts]);
    const [questionTokens, answerTokens] = await Promise.all([this.#questionTokens, this.#countTokens(texts)]);
    return questionTokens + answerTokens;
  }

  #countTokens(texts: readonly string[]): Promise<number> {
    return this.#resources.countTokens(texts, this.#request.client);
  }
}
