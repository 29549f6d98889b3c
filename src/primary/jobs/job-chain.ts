import type { Clock } from '../../shared/clock.js';
import type { JobRequest, ToolCall } from '../../shared/job.js';
import { callIdAt, chained, chainId } from '../../shared/text/chain.js';
import { messagesBefore } from '../../shared/text/turns.js';
import type { LaunchOptions } from '../cli/contract/adapter.js';
import type { ConversationState } from '../cli/process/cli-process.js';
import type { Route } from '../cli/route.js';

/** A job that is to be admitted. */
interface Routed {
  readonly request: JobRequest;
  readonly route: Pick<Route, 'publicModel'>;
  readonly launch: LaunchOptions;
  /** Whether a program that waits for the results of its calls would get them as such. */
  readonly takesResults: boolean;
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
    { request, route, launch, takesResults }: Routed,
    { before, asked }: NonNullable<JobRequest['chain']>,
    recent: RecentChains,
    isKept: (state: ConversationState) => boolean,
  ) {
    this.#request = request;
    this.#asked = asked;
    this.#model = route.publicModel;
    this.#recent = recent;
    const { client } = request;
    this.#arrival = recent.arrive(client);
    const messageCount = messagesBefore(request);
    const place = { id: chainId(before, client, this.#model), messageCount, launch };
    const hasResults = request.results !== undefined;
    const state = hasResults ? { ...place, openCalls: takesResults ? answeredCalls(request) : [] } : place;
    this.isLive = messageCount > 0 && isKept(state);
    this.#goesOn = this.isLive || recent.knows(state.id);
    if (messageCount === 0) this.before = null;
    else this.before = this.isLive || hasResults ? state : { ...state, id: nowhere }; // what waits for these results in vain ends
  }

  /** Where the conversation stands with this answer. `isWaiting`: its process waits for the results of the calls. */
  after(answer: string, made: readonly ToolCall[] = [], isWaiting = false): ConversationState {
    const { client } = this.#request;
    const calls = this.#asClientKnows(made);
    const chain = chained(this.#asked, { role: 'assistant', text: answer, ...(calls.length > 0 && { calls }) });
    const place = { id: chainId(chain, client, this.#model), messageCount: messagesBefore(this.#request) + 2, client };
    const renamed = calls !== made && { callIds: new Map(calls.map(({ id }, index) => [id, made[index]?.id ?? id])) };
    const state = isWaiting ? { ...place, openCalls: idsOf(calls), ...renamed } : place;
    const isForced = isWaiting && this.#request.offer?.choice !== 'auto'; // then the call itself is the answer, most often
    const other = this.#recent.isBeside(this.#arrival) ? 'side' : 'question';
    const kind = isForced ? 'call' : other;
    this.#recent.answered(this.#arrival, state.id);
    return this.#goesOn ? state : { ...state, guess: { kind, client } };
  }

  /** A client that drops the ids of calls sends their places instead. */
  #asClientKnows(calls: readonly ToolCall[]): readonly ToolCall[] {
    const { hasCallIds = true, history } = this.#request;
    if (hasCallIds) return calls;
    const before = history.reduce((sum, message) => sum + (message.calls?.length ?? 0), 0);
    return calls.map((call, index) => ({ ...call, id: callIdAt(before + index) }));
  }

  close(): void {
    this.#recent.leave(this.#arrival);
  }
}

/** A process may cut a longer result: it is replayed whole. */
const maxResultLength = 500_000;

/** The calls that a process which waits for them gets the results of; none where it must be replayed. */
function answeredCalls({ results = [], text, images }: JobRequest): readonly string[] {
  const isLong = results.some((result) => result.text.length > maxResultLength);
  return text !== '' || images.length > 0 || isLong ? [] : idsOf(results);
}

function idsOf(calls: readonly { readonly id: string }[]): readonly string[] {
  return calls.map(({ id }) => id).toSorted();
}

/** A request of a caller that keeps its conversation itself, until it is answered. */
export interface Arrival {
  readonly client: string;
  readonly atMs: number;
  /** Whether it came at once after an answer to its client. */
  readonly isAfterAnswer: boolean;
}

/** How long after an answer side requests come: those of qwen 0.04 s. */
const afterMs = 1000;
/** How long before the request for an answer: opencode asks for a title 0.5 to 1.7 s before. */
const beforeMs = 2500;
/** The oldest beyond these are forgotten. */
const maxPlaces = 4096;
const maxClients = 1024;

/** Owns what is known of the conversations that callers keep themselves: hashes and times, no text. */
export class RecentChains {
  readonly #clock: Clock;
  readonly #open = new Set<Arrival>();
  /** Where answered conversations stood. */
  readonly #places = new Map<string, true>();
  /** When each client got its last answer, monotonic. */
  readonly #answeredMs = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A request arrives. It must leave. */
  arrive(client: string): Arrival {
    const atMs = this.#clock.monotonicMs();
    const answeredMs = this.#answeredMs.get(client) ?? Number.NEGATIVE_INFINITY;
    const arrival = { client, atMs, isAfterAnswer: atMs - answeredMs <= afterMs };
    this.#open.add(arrival);
    return arrival;
  }

  leave(arrival: Arrival): void {
    this.#open.delete(arrival);
  }

  /** The request is answered, and its conversation stands at this place. */
  answered({ client }: Arrival, place: string): void {
    remember(this.#places, place, true, maxPlaces);
    remember(this.#answeredMs, client, this.#clock.monotonicMs(), maxClients);
  }

  /** Whether the service has answered a conversation that stood there. */
  knows(place: string): boolean {
    return this.#places.has(place);
  }

  /** Whether it came at once after an answer, or together with another request that takes longer. */
  isBeside(arrival: Arrival): boolean {
    const { client, atMs, isAfterAnswer } = arrival;
    const isOther = (open: Arrival) => open !== arrival && open.client === client;
    return isAfterAnswer || [...this.#open].some((open) => isOther(open) && Math.abs(open.atMs - atMs) <= beforeMs);
  }
}

/** The map is in order of the last use. */
function remember<V>(map: Map<string, V>, key: string, value: V, max: number): void {
  map.delete(key);
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size > max && oldest !== undefined) map.delete(oldest);
}
