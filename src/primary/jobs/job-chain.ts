import type { JobRequest } from '../../shared/job.js';
import { chained, chainId } from '../../shared/text/chain.js';
import type { LaunchOptions } from '../cli/contract/adapter.js';
import type { ConversationState } from '../cli/process/cli-process.js';
import type { Route } from '../cli/route.js';
import type { Arrival, RecentChains } from './recent-chains.js';

/** A job that is to be admitted. */
interface Routed {
  readonly request: JobRequest;
  readonly route: Pick<Route, 'publicModel'>;
  readonly launch: LaunchOptions;
}

/** No process is kept under this name. */
const nowhere = '';

/**
 * Where a job goes on whose caller keeps the conversation himself: a process is kept under the chain of hashes over all
 * that was said in it, so that a request with exactly that history finds it. It must be closed.
 */
export class JobChain {
  /** What its process must have heard already; null for a first message. */
  readonly before: ConversationState | null;
  readonly isLive: boolean;
  readonly #request: JobRequest;
  readonly #asked: string;
  readonly #model: string | null;
  readonly #recent: RecentChains;
  readonly #arrival: Arrival;
  /** Whether it goes on with a conversation that the service has answered, in its process or in another one. */
  readonly #goesOn: boolean;

  /** For a job that arrives now; null without a chain. `isKept`: whether a process waits for just this state, and for no other job. */
  static of(job: Routed, recent: RecentChains, isKept: (state: ConversationState) => boolean): JobChain | null {
    const { chain } = job.request;
    return chain === null ? null : new JobChain(job, chain, recent, isKept);
  }

  private constructor(
    { request, route, launch }: Routed,
    { before, asked }: NonNullable<JobRequest['chain']>,
    recent: RecentChains,
    isKept: (state: ConversationState) => boolean,
  ) {
    this.#request = request;
    this.#asked = asked;
    this.#model = route.publicModel;
    this.#recent = recent;
    const { client, history } = request;
    this.#arrival = recent.arrive(client);
    const state = { id: chainId(before, client, this.#model), messageCount: history.length, launch };
    this.isLive = history.length > 0 && isKept(state);
    this.#goesOn = this.isLive || recent.knows(state.id);
    if (history.length === 0) this.before = null;
    else this.before = this.isLive ? state : { ...state, id: nowhere };
  }

  /** Where the conversation stands with this answer. */
  after(answer: string): ConversationState {
    const { client, history } = this.#request;
    const chain = chained(this.#asked, { role: 'assistant', text: answer });
    const state = { id: chainId(chain, client, this.#model), messageCount: history.length + 2 };
    const kind = this.#recent.isBeside(this.#arrival) ? 'side' : 'question';
    this.#recent.answered(this.#arrival, state.id);
    return this.#goesOn ? state : { ...state, guess: { kind, client } };
  }

  close(): void {
    this.#recent.leave(this.#arrival);
  }
}
