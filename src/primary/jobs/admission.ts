import type { Clock } from '../../shared/clock.js';
import { invalid, RelayError, storeUnavailable, waitTooLong } from '../../shared/errors.js';
import type { JobRequest, ServiceTier, WaitReason } from '../../shared/job.js';
import { chainId } from '../../shared/text/chain.js';
import { requestBytes } from '../../shared/text/turns.js';
import type { LaunchOptions } from '../cli/contract/adapter.js';
import { dropsTools, fittingEffort, unsupported } from '../cli/models.js';
import type { ConversationState } from '../cli/process/cli-process.js';
import type { ModelRouter, Route } from '../cli/route.js';
import type { ConversationStore } from '../conversations/conversation-store.js';
import type { ConversationTurn } from '../conversations/conversation-turn.js';
import type { BackgroundPart } from './background-part.js';
import type { Job, Prepared } from './job.js';
import { JobChain, RecentChains } from './job-chain.js';
import type { JobFeatures } from './job-features.js';
import type { OpenJobs } from './open-jobs.js';
import type { RetryAdvice } from './retry-advice.js';
import type { RouteChoice } from './route-choice.js';
import type { JobRank, Ticket } from './ticket.js';
import type { WaitingRoom } from './waiting-room.js';
import type { WebSearcher } from './web-searcher.js';

export interface AdmissionResources {
  readonly room: WaitingRoom;
  readonly conversations: ConversationStore;
  /** Whether the store accepts writes. */
  readonly isStoreUp: () => boolean;
  readonly router: Pick<ModelRouter, 'route' | 'checkModel' | 'checkAccount' | 'recordJob'>;
  readonly features: JobFeatures;
  readonly clock: Clock;
  readonly openJobs: Pick<OpenJobs, 'isFree'>;
}

/** Result of the checks of a request, which reserve nothing. */
interface Examined extends Omit<Prepared, 'chain'> {
  readonly bytes: number;
}

const tiers = { urgent: 'priority', patient: 'flex' } as const satisfies Record<JobRank, ServiceTier>;

/** Launch data and queue ticket of an admitted caller's job. */
interface Admitted {
  readonly prepared: Prepared;
  readonly ticket: Ticket;
}

/** Decides at once whether a job can be admitted, and reserves its turn and its place in the queue. */
export class Admission {
  readonly #resources: AdmissionResources;
  readonly #advice: RetryAdvice;
  readonly #recent: RecentChains;

  constructor(resources: AdmissionResources, advice: RetryAdvice) {
    this.#resources = resources;
    this.#advice = advice;
    this.#recent = new RecentChains(resources.clock);
  }

  /** Returns the route that is right for a job at present. `isPatient`: see `RouteRules`. */
  chooseRoute(request: JobRequest, isPatient: boolean): RouteChoice {
    const { router, features } = this.#resources;
    const { chain, client } = request;
    const first = router.route(request);
    const choice = features.chooseRoute(request, first, {
      isPatient,
      hasAnswered: ({ publicModel }) =>
        chain !== null && this.#recent.knows(chainId(chain.before, client, publicModel)),
      isSupported: (route) => this.isSupported(request, route),
    });
    return choice ?? { route: first, passed: [], left: [] };
  }

  /** Whether a request may have a route, and the program supports it, as far as it is known. */
  isSupported(request: JobRequest, route: Route): boolean {
    const { features } = this.#resources;
    try {
      effortOf(request, route, features.searcher);
      features.checkRoute(request, route);
      return true;
    } catch {
      return false;
    }
  }

  /** Throws `validation_error` or `forbidden` if the client may not use the models of the request. */
  checkModel(request: JobRequest): void {
    const { router, features } = this.#resources;
    router.checkModel(request.model, request.client);
    features.checkModels(request);
    router.checkAccount(request);
  }

  /** Admits the job of a caller. Throws `validation_error`, `concurrency_limited` or `store_unavailable`. */
  admit(request: JobRequest, route: Route): Admitted {
    this.#checkStore(request);
    const { launch, turn, bytes } = this.examine(request, route);
    const { client } = request;
    const heldBy = () => (turn?.isReady === false ? 'conversation' : null);
    const { cli } = route;
    const { room, features } = this.#resources;
    const [rank, readRules] = [features.rankOf(request), () => features.rulesOf(request)];
    const lane = turn?.id ?? cli.label;
    const ticket = room.admit({ client, bytes, cli, rank, lane, heldBy, readRules, ...readRules() });
    return orGivenBack([turn, ticket], () => {
      this.#checkWait(request, ticket);
      turn?.openTurn();
      return { prepared: { launch, turn, chain: this.#chainOf(request, route, launch) }, ticket };
    });
  }

  /** Throws `wait_too_long` if the queue already shows that the job would wait longer than its client accepts. */
  #checkWait({ maxWaitMs }: JobRequest, ticket: Ticket): void {
    if (maxWaitMs === undefined || !ticket.isWaiting) return;
    const ahead = ticket.position;
    if (maxWaitMs === 0 || this.#advice.waitMs(ahead) > maxWaitMs) throw waitTooLong(this.#advice.seconds(ahead));
  }

  /** Limits the wait of a caller's job: to the time that its client accepts, or to the limit of the service. */
  limitWait(job: Job, limitMs: number): void {
    const { maxWaitMs = Number.POSITIVE_INFINITY } = job.request;
    if (job.ticket.isWaiting && maxWaitMs < limitMs)
      job.limitTime(maxWaitMs, () => waitTooLong(this.#advice.seconds(this.#resources.room.waiting)));
    else job.limitTime(limitMs, () => waitedTooLong(limitMs));
  }

  /** Returns the rank of a job in the words of APIs for SDKs, if its request names one. */
  tierOf(request: JobRequest): { readonly tier?: ServiceTier } {
    if (request.priority === undefined) return {};
    const rank = this.#resources.features.rankOf(request);
    return { tier: rank === null ? 'default' : tiers[rank] };
  }

  /**
   * Queues an examined background job. Without a queue shared by several hosts, its turn joins the conversation only
   * when the job gets its slot.
   */
  enter(job: Job<BackgroundPart>, bytes: number, isFirst: boolean, onGranted: () => void): Ticket {
    const { request, route, background } = job;
    const { client, operation, conversationId } = request;
    if (background.isLeased) job.turn?.openTurn();
    const readRules = () => this.#resources.features.rulesOf(request);
    return this.#resources.room.enter({
      client,
      bytes,
      cli: route.cli,
      ...{ readRules, ...readRules() },
      lane: operation === 'chat' ? (conversationId ?? 'new conversation') : `${route.cli.label} ${route.circuit}`,
      heldBy: () => this.#heldBy(job),
      since: background.accepted.createdAt,
      isFollowed: background.accepted.form.isFollowed === true,
      isFirst,
      granted: onGranted,
    });
  }

  /** Prepares a background job that has its slot. Throws like `admit`. */
  prepare(job: Job): Prepared {
    const { request, route, background } = job;
    this.#checkStore(request);
    const isOpen = background?.isLeased === true;
    const { launch, turn } = isOpen ? job : this.examine(request, route);
    return orGivenBack([turn], () => {
      if (!isOpen) turn?.openTurn();
      return { launch, turn, chain: this.#chainOf(request, route, launch) };
    });
  }

  /** Prepares a job with a slot for another route. Its conversation stays the same, and is replayed. */
  prepareFor(job: Job, route: Route): Prepared {
    const { request, turn } = job;
    const launch = inConversation(launchOf(request, route, this.#resources.features.searcher), turn);
    job.chain?.closeChain();
    return { launch, turn, chain: this.#chainOf(request, route, launch) };
  }

  /**
   * A process that waits for tool results accepts no other input. If the results must be sent as text, a new process
   * replays the whole conversation instead.
   */
  #chainOf(request: JobRequest, route: Route, launch: LaunchOptions) {
    const { offer } = request;
    const takesResults = offer === undefined || !dropsTools(route.cli.program.extras ?? {}, offer);
    const isFree = (state: ConversationState) => this.#resources.openJobs.isFree(state, route.cli);
    return JobChain.of({ request, route, launch, takesResults }, this.#recent, isFree);
  }

  /**
   * Whether a background job would get a slot at once. With `isPatient`, only its CLI and its conversation are checked.
   */
  mayStart({ request, route }: Pick<Job, 'request' | 'route'>, isPatient: boolean): boolean {
    const { room, conversations, features } = this.#resources;
    if (route.cli.health.circuits.refusalOf({ request, route }) !== null) return false;
    if (conversations.isInUse(request.conversationId)) return false;
    if (isPatient) return true;
    const { gates } = features.rulesOf(request);
    return room.hasSlotFor({ client: request.client, cli: route.cli, gates });
  }

  #heldBy({ request, route, turn, background }: Job<BackgroundPart>): WaitReason | null {
    if (route.cli.health.circuits.refusalOf({ request, route }) !== null) return 'account';
    const isBusy = background.isLeased
      ? turn?.isReady === false
      : this.#resources.conversations.isInUse(request.conversationId);
    if (isBusy) return 'conversation';
    return background.hooks.isHeld() ? 'slot' : null;
  }

  /** Throws `store_unavailable` for a chat if the answer could not be stored, so that no model runs in this case. */
  #checkStore({ operation }: JobRequest): void {
    if (operation === 'chat' && !this.#resources.isStoreUp()) throw storeUnavailable();
  }

  /**
   * Checks a request without reserving anything. Throws like `admit`, except for a full queue and for a store that is
   * down.
   */
  examine(request: JobRequest, route: Route): Examined {
    const { operation, conversationId, versionOf = null, mayBegin, client, system } = request;
    this.checkModel(request);
    this.#resources.features.checkRequest(request);
    const launch = launchOf(request, route, this.#resources.features.searcher);
    this.#resources.features.checkRoute(request, route);
    const bytes = requestBytes(request);
    const isChat = operation === 'chat';
    const { conversations } = this.#resources;
    const turn = isChat ? conversations.turn(conversationId, client, system, bytes, versionOf, mayBegin) : null;
    return { launch: inConversation(launch, turn), turn, bytes };
  }
}

/** Returns the launch of a request. Throws `validation_error` if the program does not support a field of the request. */
function launchOf(request: JobRequest, route: Route, searcher: WebSearcher | null): LaunchOptions {
  const { system, schema, search } = request;
  const hasSearch = search !== undefined && searcher?.isNative === true && ({ hasSearch: true } as const);
  return { model: route.adapterModel, system, schema, effort: effortOf(request, route, searcher), ...hasSearch };
}

function inConversation(launch: LaunchOptions, turn: ConversationTurn | null): LaunchOptions {
  return turn === null ? launch : { ...launch, system: turn.system };
}

/** Returns the result of an action. If it throws, gives back what was taken for it. */
export function orGivenBack<T>(held: readonly (Disposable | null)[], action: () => T): T {
  try {
    return action();
  } catch (error) {
    for (const each of held) each?.[Symbol.dispose]();
    throw error;
  }
}

/**
 * Returns the effort to send to the program. Throws `validation_error` if the program does not support a field of the
 * request.
 */
function effortOf(
  request: JobRequest,
  { cli, adapterModel }: Route,
  searcher: WebSearcher | null,
): JobRequest['effort'] {
  const { extras } = cli.program;
  if (request.search !== undefined && searcher === null) throw noSearch(request, searcher);
  if (extras === null) return fittingEffort(request.effort, { effort: (effort) => effort }, null);
  const what = unsupported(extras, request, searcher?.canSearch(extras) === true);
  if (what === 'search') throw noSearch(request, searcher);
  if (what !== null) throw invalid(what, 'the model CLI of this service takes none');
  const programTool = request.offer?.tools.find(({ name }) => extras.ownTools?.has(name));
  if (programTool !== undefined)
    throw invalid('tools', `cannot be named ${programTool.name}: MODEL_API_CLI_ARGS opens such a tool`);
  return fittingEffort(request.effort, extras, adapterModel);
}

function waitedTooLong(limitMs: number): RelayError {
  return new RelayError('queue_timeout', `waited ${limitMs} ms for a slot (MODEL_API_QUEUE_TIMEOUT_MS)`);
}

function noSearch({ search }: JobRequest, searcher: WebSearcher | null): RelayError {
  return invalid(search?.path ?? 'search', searcher?.refusal ?? 'cannot be used: this service does not search the web');
}
