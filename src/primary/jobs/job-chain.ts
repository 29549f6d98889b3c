import { chained, chainId } from '../../shared/chain.js';
import type { JobRequest } from '../../shared/job.js';
import type { Launch } from '../cli/adapter.js';
import type { ConversationState } from '../cli/process/cli-state.js';

/** No process is kept under this name. */
const nowhere = '';

/**
 * Where a job goes on whose caller keeps the conversation himself: a process is kept under the chain of hashes over all
 * that was said in it, so that a request with exactly that history finds it.
 */
export class JobChain {
  /** What its process must have heard already; null for a first message. */
  readonly before: ConversationState | null;
  readonly isLive: boolean;
  readonly #request: JobRequest;
  readonly #asked: string;
  readonly #launch: Launch;

  /** `isKept`: whether a process waits for just this state, and for no other job. Null for a job without a chain. */
  static of(request: JobRequest, launch: Launch, isKept: (state: ConversationState) => boolean): JobChain | null {
    return request.chain === null ? null : new JobChain(request, request.chain, launch, isKept);
  }

  private constructor(
    request: JobRequest,
    { before, asked }: NonNullable<JobRequest['chain']>,
    launch: Launch,
    isKept: (state: ConversationState) => boolean,
  ) {
    this.#request = request;
    this.#asked = asked;
    this.#launch = launch;
    const { client, history } = request;
    const state = { id: chainId(before, client, launch.model), messageCount: history.length, launch };
    this.isLive = history.length > 0 && isKept(state);
    if (history.length === 0) this.before = null;
    else this.before = this.isLive ? state : { ...state, id: nowhere };
  }

  /** Where the conversation stands with this answer. */
  after(answer: string): ConversationState {
    const { client, history } = this.#request;
    const chain = chained(this.#asked, { role: 'assistant', text: answer });
    return {
      id: chainId(chain, client, this.#launch.model),
      messageCount: history.length + 2,
      isGuess: history.length === 0,
    };
  }
}
