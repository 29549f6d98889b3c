import { setNewest } from '../../shared/bounded-map.js';
import type { ClientText } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import type { Beginning } from '../../shared/conversation.js';
import type { JobRequest, ToolCall } from '../../shared/job.js';
import { callIdAt, chained, chainId } from '../../shared/text/chain.js';
import { messagesBefore } from '../../shared/text/turns.js';
import type { LaunchOptions } from '../cli/contract/adapter.js';
import type { ConversationState } from '../cli/process/cli-process.js';
import type { Route } from '../cli/route.js';

/** Job about to be admitted. */
interface Routed {
  readonly request: JobRequest;
  readonly route: Pick<Route, 'publicModel'>;
  readonly launch: LaunchOptions;
  /** Whether a program that waits for tool results accepts them as results, instead of as text. */
  readonly takesResults: boolean;
}

/** Id under which no process is ever stored. */
const unusedId = '';

/**
 * Finds the process for a client that resends the whole history. A process is stored under a hash chain over its whole
 * conversation, so that a request with exactly this history finds it. A chain must be closed.
 */
export class JobChain {
  /** State that the process must have before this message; null for a first message. */
  readonly before: ConversationState | null;
  readonly isLive: boolean;
  readonly #request: JobRequest;
  readonly #questionChain: string;
  readonly #model: string | null;
  readonly #recent: RecentChains;
  readonly #arrival: Arrival;
  /** Whether the conversation was answered by this service before, in its current process or in another one. */
  readonly #isContinued: boolean;
  /** Beginnings of the conversation before this message. */
  readonly #beginnings: readonly Beginning[];

  /**
   * Returns the chain of an arriving job; null if the request has no chain. `hasProcess` returns whether a process waits
   * for exactly this state, and for no other job.
   */
  static of(job: Routed, recent: RecentChains, hasProcess: (state: ConversationState) => boolean): JobChain | null {
    const { chain } = job.request;
    return chain === null ? null : new JobChain(job, chain, recent, hasProcess);
  }

  private constructor(
    { request, route, launch, takesResults }: Routed,
    { before, asked: questionChain, beginnings = [] }: NonNullable<JobRequest['chain']>,
    recent: RecentChains,
    hasProcess: (state: ConversationState) => boolean,
  ) {
    this.#request = request;
    this.#questionChain = questionChain;
    this.#model = route.publicModel;
    this.#recent = recent;
    const { client } = request;
    this.#arrival = recent.arrive(client);
    const messageCount = messagesBefore(request);
    const place = { id: chainId(before, client, this.#model), messageCount, launch };
    const hasResults = request.results !== undefined;
    const state = hasResults ? { ...place, openCalls: takesResults ? answeredCalls(request) : [] } : place;
    this.isLive = messageCount > 0 && hasProcess(state);
    this.#isContinued = this.isLive || recent.knows(state.id);
    const whole = { id: before, messageCount };
    this.#beginnings = messageCount === 0 ? [] : [whole, ...beginnings];
    if (messageCount === 0) this.before = null;
    // with results, the real id ends a process that still waits for them
    else if (this.isLive || hasResults) this.before = state;
    // The relay has answered this history, but no process has it: the process was lost, or the client replaces a
    // message after it.
    else if (this.#isContinued) this.before = { ...state, id: unusedId, beginnings: [whole] };
    else this.before = { ...state, id: unusedId, beginnings: this.#beginnings, isUnknown: true };
  }

  /**
   * Returns the state of the conversation after this answer. `isWaiting`: whether its process waits for the results of
   * the calls.
   */
  after(answer: string, made: readonly ToolCall[] = [], isWaiting = false): ConversationState {
    const { client } = this.#request;
    const calls = this.#asClientKnows(made);
    const chain = chained(this.#questionChain, { role: 'assistant', text: answer, ...(calls.length > 0 && { calls }) });
    const messageCount = messagesBefore(this.#request) + 2;
    const beginnings = this.#beginnings;
    const place = { id: chainId(chain, client, this.#model), messageCount, client, beginnings };
    const renamed = calls !== made && { callIds: new Map(calls.map(({ id }, index) => [id, made[index]?.id ?? id])) };
    const state = isWaiting ? { ...place, openCalls: idsOf(calls), ...renamed } : place;
    // with a forced call, the call itself is usually the answer
    const isForced = isWaiting && this.#request.offer?.choice !== 'auto';
    const other = this.#recent.isSideRequest(this.#arrival) ? 'side' : 'question';
    const kind = isForced ? 'call' : other;
    this.#recent.answered(this.#arrival, state.id);
    return this.#isContinued ? state : { ...state, guess: { kind, client } };
  }

  /** Replaces the ids of calls by their positions if the client does not send ids back. */
  #asClientKnows(calls: readonly ToolCall[]): readonly ToolCall[] {
    const { hasCallIds = true, history } = this.#request;
    if (hasCallIds) return calls;
    const before = history.reduce((sum, message) => sum + (message.calls?.length ?? 0), 0);
    return calls.map((call, index) => ({ ...call, id: callIdAt(before + index) }));
  }

  closeChain(): void {
    this.#recent.leave(this.#arrival);
  }
}

/** Maximum length of a result for a waiting process. A process may cut a longer one, so it is replayed instead. */
const maxResultLength = 500_000;

/** Returns the ids of the calls whose results go to the waiting process; empty if the conversation must be replayed. */
function answeredCalls({ results = [], text, images }: JobRequest): readonly string[] {
  const isLong = results.some((result) => result.text.length > maxResultLength);
  return text !== '' || images.length > 0 || isLong ? [] : idsOf(results);
}

function idsOf(calls: readonly { readonly id: string }[]): readonly string[] {
  return calls.map(({ id }) => id).toSorted();
}

/** Open request of a client that stores its conversation itself. */
export interface Arrival {
  readonly client: ClientText;
  readonly atMs: number;
  /** Whether the request came directly after an answer to this client. */
  readonly isAfterAnswer: boolean;
}

/** A request this soon after an answer counts as a side request: a coding agent sends them after 0.04 s. */
const afterMs = 1000;
/**
 * Requests this close together count as side requests: one coding agent asks for a title 0.5 to 1.7 s before the answer's
 * request.
 */
const beforeMs = 2500;
/** Limit of remembered states; the least recently used are evicted. */
const maxPlaces = 4096;
const maxClients = 1024;

/** Owns the recent states of conversations that clients store themselves: hashes and times, no text. */
export class RecentChains {
  readonly #clock: Clock;
  readonly #open = new Set<Arrival>();
  /** States of answered conversations. */
  readonly #places = new Map<string, true>();
  /** Time of the last answer to each client, monotonic. */
  readonly #answeredMs = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Registers an arriving request, until `leave` is called for it. */
  arrive(client: ClientText): Arrival {
    const atMs = this.#clock.monotonicMs();
    const answeredMs = this.#answeredMs.get(client) ?? Number.NEGATIVE_INFINITY;
    const arrival = { client, atMs, isAfterAnswer: atMs - answeredMs <= afterMs };
    this.#open.add(arrival);
    return arrival;
  }

  leave(arrival: Arrival): void {
    this.#open.delete(arrival);
  }

  /** Records that a request was answered, and the new state of its conversation. */
  answered({ client }: Arrival, place: string): void {
    setNewest(this.#places, place, true, maxPlaces);
    setNewest(this.#answeredMs, client, this.#clock.monotonicMs(), maxClients);
  }

  /** Whether the service has answered a conversation with this state. */
  knows(place: string): boolean {
    return this.#places.has(place);
  }

  /**
   * Whether this looks like a side request: a request that came directly after an answer, or together with another
   * request of the client that is still open. Without this guess, the next turn of a person with Open WebUI finds its
   * process gone (test/service/faults/side-requests.test.ts), and a replay takes 47 ms instead of 2 (bench `chat`).
   */
  isSideRequest(arrival: Arrival): boolean {
    const { client, atMs, isAfterAnswer } = arrival;
    const isOther = (open: Arrival) => open !== arrival && open.client === client;
    return isAfterAnswer || [...this.#open].some((open) => isOther(open) && Math.abs(open.atMs - atMs) <= beforeMs);
  }
}
