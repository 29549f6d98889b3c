import type { ConversationSnapshot } from '../../shared/conversation.js';
import type { JobRequest } from '../../shared/job.js';
import { orAborted } from '../../shared/or-aborted.js';
import type { ConversationTurn } from './conversation-turn.js';

/** Resolves with the tokens of all texts together; never rejects. */
export type CountTokens = (texts: readonly string[]) => Promise<number>;

/** UTF-16 units that are counted in no time; a trip to the thread costs more. */
const maxShortLength = 4096;

/** What a turn will add to its conversation, from its start until it is committed or forgotten. */
export class TurnRecord {
  readonly #turn: ConversationTurn;
  readonly #request: JobRequest;
  readonly #countTokens: CountTokens;
  readonly #asked: readonly string[];
  /** null where the question is short enough to be counted with its answer. */
  readonly #askedTokens: Promise<number> | null;
  readonly #said: string[] = [];

  constructor(turn: ConversationTurn, request: JobRequest, countTokens: CountTokens) {
    this.#turn = turn;
    this.#request = request;
    this.#countTokens = countTokens;
    this.#asked = [request.system ?? '', request.text];
    const isLong = this.#asked.join('').length > maxShortLength;
    this.#askedTokens = isLong ? countTokens(this.#asked) : null; // while the model thinks
  }

  add(text: string): void {
    this.#said.push(text);
  }

  /** `answer` stands for what was added, where it differs. Nothing can come between the commit and its return. */
  async commit(answer: string | null, signal: AbortSignal): Promise<ConversationSnapshot> {
    const said = answer ?? this.#said.join('');
    const tokens = await orAborted(this.#count(said), signal);
    const { text, images } = this.#request;
    return this.#turn.commit(text, said, tokens, images);
  }

  async #count(said: string): Promise<number> {
    if (this.#askedTokens === null) return this.#countTokens([...this.#asked, said]);
    const [asked, answered] = await Promise.all([this.#askedTokens, this.#countTokens([said])]);
    return asked + answered;
  }
}
