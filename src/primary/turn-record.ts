import type { ConversationSnapshot } from '../shared/conversation.js';
import type { JobRequest } from '../shared/job.js';
import { orAborted } from './cli/cli-program.js';
import type { ConversationTurn } from './conversation-turn.js';

/** Resolves with the tokens of all texts together; never rejects. */
export type CountTokens = (texts: readonly string[]) => Promise<number>;

/** What a turn will add to its conversation, from its start until it is committed or forgotten. */
export class TurnRecord {
  readonly #turn: ConversationTurn;
  readonly #request: JobRequest;
  readonly #countTokens: CountTokens;
  readonly #asked: Promise<number>;
  readonly #said: string[] = [];

  constructor(turn: ConversationTurn, request: JobRequest, countTokens: CountTokens) {
    this.#turn = turn;
    this.#request = request;
    this.#countTokens = countTokens;
    this.#asked = countTokens([request.system ?? '', request.text]); // while the model thinks
  }

  add(text: string): void {
    this.#said.push(text);
  }

  /** `answer` stands for what was added, where it differs. Nothing can come between the commit and its return. */
  async commit(answer: string | null, signal: AbortSignal): Promise<ConversationSnapshot> {
    const said = answer ?? this.#said.join('');
    const counts = Promise.all([this.#asked, this.#countTokens([said])]);
    const [asked, answered] = await orAborted(counts, signal);
    return this.#turn.commit(this.#request.text, said, asked + answered);
  }
}
