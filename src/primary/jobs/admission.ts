import type { Clock } from '../../shared/clock.js';
import { invalid, storeUnavailable } from '../../shared/errors.js';
import type { JobRequest } from '../../shared/job.js';
import type { LaunchOptions } from '../cli/contract/adapter.js';
import { unsupported } from '../cli/extras.js';
import type { ConversationState } from '../cli/process/cli-state.js';
import type { ModelRouter, Route } from '../cli/route.js';
import type { ConversationStore } from '../conversations/conversation-store.js';
import type { ConversationTurn } from '../conversations/conversation-turn.js';
import type { CliGates } from './cli-gates.js';
import { sizeOf } from './job.js';
import { JobChain } from './job-chain.js';
import { RecentChains } from './recent-chains.js';
import type { SlotQueue } from './slot-queue.js';
import type { Ticket } from './ticket.js';
import type { TurnOrder } from './turn-order.js';

export interface AdmissionResources {
  readonly slots: SlotQueue;
  readonly conversations: ConversationStore;
  readonly order: Pick<TurnOrder, 'mustWait'>;
  readonly cliGates: Pick<CliGates, 'hasRoomFor'>;
  /** Whether the store takes what it is asked to keep. */
  readonly isStoreUp: () => boolean;
  readonly router: Pick<ModelRouter, 'route' | 'check'>;
  readonly clock: Clock;
}

/** What a job is to be started with, and its turn where it is one of a conversation. Nothing is taken for it yet. */
interface Examined {
  readonly launch: LaunchOptions;
  readonly turn: ConversationTurn | null;
  readonly bytes: number;
}

/** What an admitted job holds. */
export interface Admitted extends Omit<Examined, 'bytes'> {
  readonly route: Route;
  readonly ticket: Ticket;
  readonly chain: JobChain | null;
  /** Earlier turns of its conversation come first. */
  readonly waitsForTurn: boolean;
}

/** Decides at once whether a job can be taken, and takes for it what it needs. */
export class Admission {
  readonly #resources: AdmissionResources;
  readonly #recent: RecentChains;

  constructor(resources: AdmissionResources) {
    this.#resources = resources;
    this.#recent = new RecentChains(resources.clock);
  }

  /** Throws `validation_error`, `concurrency_limited` and `store_unavailable`. `isFree`: whether a process waits for just this turn. */
  admit(request: JobRequest, route: Route, isFree: (state: ConversationState) => boolean): Admitted {
    const { slots, order, cliGates, isStoreUp } = this.#resources;
    if (request.operation === 'chat' && !isStoreUp()) throw storeUnavailable(); // no model is run for what can't be kept
    const { launch, turn, bytes } = this.examine(request, route);
    const waitsForTurn = order.mustWait(turn);
    const mayLineUp = !waitsForTurn && cliGates.hasRoomFor(route.cli);
    const ticket = mayLineUp ? slots.admit(request.client, bytes) : slots.park(request.client, bytes);
    turn?.open();
    const chain = JobChain.of({ request, route, launch }, this.#recent, isFree);
    return { route, launch, turn, chain, ticket, waitsForTurn };
  }

  /** Throws as `admit` does, but for a full queue. */
  examine(request: JobRequest, route: Route): Examined {
    const { operation, conversationId, client, system, schema } = request;
    this.#resources.router.check(request);
    const effort = effortOf(request, route);
    const bytes = sizeOf(request);
    const isChat = operation === 'chat';
    const turn = isChat ? this.#resources.conversations.turn(conversationId, client, system, bytes) : null;
    const launch = { model: route.adapterModel, system: turn === null ? system : turn.system, schema, effort };
    return { launch, turn, bytes };
  }
}

/** The effort that the program will be told. Throws `validation_error` for what it can't be told. */
function effortOf(request: JobRequest, { cli }: Route): JobRequest['effort'] {
  const { extras } = cli.program;
  if (extras === null) return request.effort;
  const what = unsupported(extras, request);
  if (what !== null) throw invalid(what, 'the model CLI of this service takes none');
  return extras.effort === undefined ? null : request.effort;
}
