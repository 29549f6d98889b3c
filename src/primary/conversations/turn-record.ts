import { orAborted } from '../../shared/async/promises.js';
import type { ConversationSnapshot } from '../../shared/conversation.js';
import type { JobRequest } from '../../shared/job.js';
import type { ConversationJournal } from '../store/contract/conversations.js';
import type { ConversationTurn } from './conversation-turn.js';

/** Resolves with the tokens of all texts together; never rejects. */
export type CountTokens = (texts: readonly string[]) => Promise<number>;

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
    this.#askedTokens = isLong ? resources.countTokens(this.#asked) : null; // while the model thinks
  }

  add(text: string): void {
    this.#said.push(text);
  }

  /**
   * `answer` stands for what was added, where it differs. Nothing can come between the commit and its return. What has
   * gone to the journal is not cut any more: else a restart would bring back a turn that was never there.
   */
  async commit(answer: string | null, signal: AbortSignal): Promise<ConversationSnapshot> {
    const said = answer ?? this.#said.join('');
    const tokens = await orAborted(this.#count(said), signal);
    const { text, images } = this.#request;
    const change = this.#turn.change(text, said, tokens, images);
    if (change !== null) await this.#resources.journal.commit(change);
    return this.#turn.commit(text, said, tokens, images);
  }

  async #count(said: string): Promise<number> {
    if (this.#askedTokens === null) return this.#resources.countTokens([...this.#asked, said]);
    const [asked, answered] = await Promise.all([this.#askedTokens, this.#resources.countTokens([said])]);
    return asked + answered;
  }
}
