import {
  type BackgroundJob,
  BackgroundJobs,
  type EndedByAdmin,
} from '../../../src/features/background/background-jobs.js';
import { ClientJobs } from '../../../src/features/background/client-jobs.js';
import { RemoteJobs } from '../../../src/features/background/remote-jobs.js';
import { StoredJobs } from '../../../src/features/background/stored-jobs.js';
import { documentHooks } from '../../../src/features/documents/document-hooks.js';
import { createDoors } from '../../../src/features/doors/primary.js';
import { FallbackRoutes } from '../../../src/features/fallbacks/fallback-routes.js';
import { responseLimits, StoredResponses } from '../../../src/features/openai/stored-responses.js';
import { SearchQuota } from '../../../src/features/search/search-quota.js';
import type { SearchServer } from '../../../src/features/search/search-server.js';
import { searchHooks } from '../../../src/features/search/searcher.js';
import { MemoryJobs, MemoryResponses } from '../../../src/features/stores/memory/memory-store.js';
import { RecentUsage } from '../../../src/features/usage/recent-usage.js';
import type { BoundsOf } from '../../../src/primary/access/clients.js';
import type { Capabilities, LaunchOptions, Turn, TurnEnd } from '../../../src/primary/cli/contract/adapter.js';
import type { ModelSizes } from '../../../src/primary/cli/contract/model-rules.js';
import type { ModelCli } from '../../../src/primary/cli/model-cli.js';
import { type ModelChoice, modelFor, namedModel, narrowed } from '../../../src/primary/cli/models.js';
import type { ConversationState } from '../../../src/primary/cli/process/cli-process.js';
import type { TurnSink } from '../../../src/primary/cli/process/open-turn.js';
import { Redactor } from '../../../src/primary/cli/process/redactor.js';
import type { Route } from '../../../src/primary/cli/route.js';
import { ConversationStore } from '../../../src/primary/conversations/conversation-store.js';
import { oneHostGate } from '../../../src/primary/conversations/turn-gate.js';
import type { PrimaryPart } from '../../../src/primary/features/feature.js';
import { FeatureHooks } from '../../../src/primary/features/feature-hooks.js';
import { SeenClients } from '../../../src/primary/health/evidence.js';
import type { AcceptedJob } from '../../../src/primary/jobs/background-part.js';
import type { Bill, Charge } from '../../../src/primary/jobs/bill.js';
import type { JobCli } from '../../../src/primary/jobs/job-cli.js';
import type { JobObserver } from '../../../src/primary/jobs/job-observer.js';
import { type JobResources, JobRunner } from '../../../src/primary/jobs/job-runner.js';
import { LocalJobs } from '../../../src/primary/jobs/local-jobs.js';
import { WaitingRoom } from '../../../src/primary/jobs/waiting-room.js';
import type { ConversationChange, ConversationJournal } from '../../../src/primary/store/contract/conversations.js';
import { noJournal } from '../../../src/primary/store/memory-store.js';
import type { SchemaFinding } from '../../../src/primary/threads/schema-thread.js';
import { orAborted, withResolvers } from '../../../src/shared/async.js';
import type { JobForm, JobListOrder } from '../../../src/shared/background.js';
import type { ClientText } from '../../../src/shared/client.js';
import { cancelled, RelayError, storeUnavailable } from '../../../src/shared/errors.js';
import type { FileDocument, JobEnd, JobEvent, JobRequest, Message, ToolRound } from '../../../src/shared/job.js';
import { healthOf } from '../agents/cli-health.js';
import { loginOf } from '../agents/logins.js';
import { FakeClock } from '../basics/fake-clock.js';
import { sameSearchLimit } from '../basics/limits.js';
import type { SharedMemoryJobs } from '../stores/shared-jobs.js';
import { textDelta } from './answer-events.js';
import { jobRequest, plainForm } from './job-records.js';

export type Script = (sink: TurnSink, signal: AbortSignal) => Promise<TurnEnd>;
type Usage = ReturnType<JobCli['usage']>;

export const usage = { inputTokens: 3, outputTokens: 2, costUsd: null, cacheReadTokens: null, cacheWriteTokens: null };
export const turnEnd: TurnEnd = { type: 'turn-end', text: null, model: 'eliza', usage };
export const clientGone = cancelled('the client has disconnected');
export const shutdown = new RelayError('shutting_down', 'the service ends', { retryAfterSeconds: 5 });
export const forever = new Promise<never>(() => {});

export const answers: Script = async (sink) => {
  sink.write(textDelta('Hel'));
  sink.write(textDelta('lo'));
  return turnEnd;
};

/** Writes text, then waits for the abort. */
export const hangs: Script = (sink, signal) => {
  sink.write(textDelta('Well'));
  return orAborted(forever, signal);
};

export function throws(error: unknown): Script {
  return () => Promise.reject(error);
}

/** Creates a CLI process that follows a script. Records its turns and its releases. */
function fakeCli(script: Script, release: () => Promise<void>, extras: Capabilities, usages: Usage[]) {
  const turns: Turn[] = [];
  /** Conversation that the process stays with, for each release; null if it was to end. */
  const released: (ConversationState | null)[] = [];
  return {
    extras,
    origin: 'new' as const,
    heldMs: null,
    process: { startedMs: 0, startupMs: 5, isReusable: true },
    turns,
    released,
    turn: (turn: Turn, sink: TurnSink, signal: AbortSignal) => {
      turns.push(turn);
      return script(sink, signal);
    },
    /** Returns the usage since the last call, like a real process. */
    usage: () => usages.shift() ?? null,
    release: (conversation: ConversationState | null) => {
      released.push(conversation);
      return release();
    },
  };
}

/** Store in memory that can be made unavailable, and records the calls. */
class WatchedJobs extends MemoryJobs {
  isAway = false;
  /** Ids of started jobs, in the order of the attempts. */
  readonly starts: string[] = [];

  override async accept(job: AcceptedJob): Promise<void> {
    this.#check();
    await super.accept(job);
  }

  override async startJob(id: string, at: number): Promise<boolean> {
    this.starts.push(id);
    this.#check();
    return super.startJob(id, at);
  }

  override async endJob(...[id, ended, text]: Parameters<MemoryJobs['endJob']>): Promise<boolean> {
    this.#check();
    return super.endJob(id, ended, text);
  }

  #check(): void {
    if (this.isAway) throw storeUnavailable();
  }
}

export interface JobOptions {
  /** Script of all processes, or one for each; a process without a script answers. */
  readonly script?: Script | readonly Script[];
  readonly maxActive?: number;
  readonly maxWaiting?: number;
  readonly boundsOf?: BoundsOf;
  readonly models?: Partial<ModelChoice>;
  /** Limits by CLI name, which is the part of a model name before the slash. */
  readonly cliLimits?: Readonly<Record<string, number>>;
  /** Usages that the processes report, in the order of the requests. */
  readonly usages?: readonly Usage[];
  /** Awaited when a process starts. */
  readonly start?: (signal: AbortSignal) => Promise<void>;
  readonly release?: () => Promise<void>;
  readonly extras?: Capabilities;
  /** Creates the observers of jobs. By default, no job is traced. */
  readonly traceJob?: TraceJob;
  /** Maximum number of waiting background jobs. */
  readonly maxJobs?: number;
  readonly jobTtlMs?: number;
  /** Store of background jobs that other hosts share. */
  readonly sharedJobs?: SharedMemoryJobs;
}

/** Returns what a test may change and read, and the records of a job observer. */
function harnessState(extras: Capabilities) {
  const clock = new FakeClock();
  return {
    clock,
    /** Usage of ended jobs. */
    recentUsage: new RecentUsage(clock),
    /** Clients that have requested a job. */
    clients: new SeenClients(),
    extras,
    /** Whether the program version is known before the first job. */
    isProgramKnown: true,
    isStoreUp: true,
    isBudgetUsedUp: false,
    /** Clients whose contents may not be stored. */
    unstored: [] as readonly string[],
    /** Whether a feature reads documents. */
    readsDocuments: true,
    /** Method of the observer that throws; null for none. */
    brokenObservation: null as keyof JobObserver | 'ended' | null,
    /** Models that clients may name; null allows all. */
    models: null as readonly string[] | null,
    /** Earlier text that each request continues. */
    earlier: [] as readonly Message[],
    /** Conversations with a live process. */
    liveConversations: [] as readonly ConversationState[],
    /** Schema check that accepts each text that begins with a brace. */
    schemas: {
      readValue: async (_schema: string, text: string): Promise<SchemaFinding> =>
        text.startsWith('{') ? { kind: 'fits', value: text } : { kind: 'bad-value', fault: 'the answer is not JSON' },
    },
    /** Reader of PDFs; each has the text `text of NAME`. */
    textReaders: {
      'application/pdf': { isMissing: false, readText: async ({ name }: FileDocument) => `text of ${name}` },
    },
    countTokens: async (texts: readonly string[]) => texts.join('').length,
    journal: noJournal as Pick<ConversationJournal, 'commitChange'>,
    launches: [] as LaunchOptions[],
    /** Conversations that processes were requested for. */
    requestedConversations: [] as (ConversationState | null)[],
    processes: [] as ReturnType<typeof fakeCli>[],
    /** Conversations that a process pool has forgotten, as `ID at CLI`. */
    forgotten: [] as string[],
    /** Number of times that all waiting processes were ended. */
    flushes: 0,
    ends: [] as { readonly requestId: string; readonly end: JobEnd; readonly hadSlot: boolean }[],
    charges: [] as Charge[],
    /** Defects that the runner has reported. */
    broken: [] as unknown[],
    waits: [] as number[],
    firstDeltas: [] as number[],
    /** Sizes of models that the programs have reported. */
    sizes: [] as (readonly [model: string | null, sizes: ModelSizes])[],
    toolRounds: [] as ToolRound[],
    /** Capabilities of single CLIs, by name. */
    extrasOf: {} as Record<string, Capabilities>,
    /** Moves to another model, as `FROM > TO: REASON`. */
    fallbacks: [] as string[],
    attempts: [] as { readonly outcome: JobEnd['outcome']; readonly bill: Bill }[],
    /** Web searches that each client may make in a day; null for none. */
    searchesPerDay: null as number | null,
    /** Server by which the relay searches the web; null if model CLIs search. */
    searchServer: null as Pick<SearchServer, 'find' | 'domainFault'> | null,
    /** Ids and results of background jobs, in the order of the ends. */
    backgroundEnds: [] as { readonly id: string; readonly end: JobEnd }[],
    endedByAdmin: [] as [by: string, job: EndedByAdmin][],
  };
}

type State = ReturnType<typeof harnessState>;

/** Returns a function that starts CLI processes as the options say. */
function acquisition(state: State, { script = answers, start, release, usages = [] }: JobOptions) {
  const scripts = typeof script === 'function' ? null : [...script];
  return async (launch: LaunchOptions, conversation: ConversationState | null, signal: AbortSignal) => {
    state.launches.push(launch);
    state.requestedConversations.push(conversation);
    await start?.(signal);
    signal.throwIfAborted();
    const follow: Script = (...turn) => (scripts === null ? (script as Script) : (scripts.shift() ?? answers))(...turn);
    const cli = fakeCli(follow, release ?? (async () => {}), state.extras, [...usages]);
    state.processes.push(cli);
    return cli;
  };
}

function scriptedModelCli(
  name: string,
  state: State,
  acquire: ReturnType<typeof acquisition>,
  cutHeld: () => void,
): ModelCli {
  const cli = {
    ...loginOf(name),
    countJob: () => ({ [Symbol.dispose]: () => {} }),
    adapter: { name: 'scripted' },
    health: healthOf(state.clock, {
      names: { cli: name },
      onCircuit: (circuit) => circuit.state === 'open' && cutHeld(),
      onSpoiled: () => void state.flushes++,
    }),
    pool: {
      hasSessionFor: ({ id }: ConversationState) => state.liveConversations.some((live) => live.id === id),
      endSessionOf: (id: string) => void state.forgotten.push(`${id} at ${name}`),
      endIdleProcesses: async () => void state.flushes++,
    },
    program: {
      get extras() {
        return state.isProgramKnown ? (state.extrasOf[name] ?? state.extras) : null;
      },
    },
    publicName: (model: string | null) => (name === '' ? model : `${name}/${model}`),
    acquire,
  };
  return cli as unknown as ModelCli;
}

/** Returns a router: the part of a model name before the slash selects the CLI, else the last one is used. */
function routerTo(clis: readonly ModelCli[], state: State, models: Partial<ModelChoice> | undefined) {
  const choice = { fallback: null, allowed: null, label: null, ...models };
  const cliOf = (model: string | null) => clis.find(({ name }) => name === model?.split('/')[0]) ?? clis.at(-1);
  const route = ({ model }: Pick<JobRequest, 'model'>): Route => {
    const allowedChoice = narrowed(choice, state.models);
    const named = namedModel(model, allowedChoice) ?? allowedChoice.fallback;
    const label = named ?? choice.label;
    const cli = cliOf(named) as ModelCli;
    return { cli, adapterModel: named, publicModel: named, label, circuit: model ?? '', account: null };
  };
  return {
    route,
    names: { resolveConfigured: (name: string) => name },
    checkModel: (model: string | null) => void modelFor(model, narrowed(choice, state.models)),
    checkAccount: () => {},
    recordJob: () => {},
    findRoute: (model: string) => route({ model }),
    withAccount: (route: Route) => route,
  };
}

type TraceJob = NonNullable<NonNullable<PrimaryPart['job']>['trace']>;

const maxOutputBytes = 10_000;

/** Returns responses of which each has the earlier text of the state. */
function storedResponses(state: State): StoredResponses {
  const limits = responseLimits({ maxConversations: 10, conversationBytes: 400_000, conversationTtlMs: 1000 });
  const store = Object.assign(new MemoryResponses(), { readMessages: async () => state.earlier });
  return new StoredResponses(store, limits, state.clock);
}

/** Returns the hooks of features that limit searches, and choose among the models that a request names. */
function hooksWith(
  state: State,
  router: ReturnType<typeof routerTo>,
  searches: SearchQuota,
  trace: TraceJob,
): FeatureHooks {
  const routes = new FallbackRoutes(router, { rules: [], waitMs: 600_000, mayFallBack: () => true });
  const checkModels = (request: JobRequest) => routes.checkModels(request);
  const route: FeatureHooks['chooseRoute'] = (...question) => routes.choose(...question);
  const failed: FeatureHooks['nextRoute'] = (...failure) => routes.nextChoice(...failure);
  const searching = () => {
    const { searchServer: server } = state;
    return searchHooks(searches, server && { server, maxOutputBytes });
  };
  return new FeatureHooks([
    createDoors({ config: { tools: 'on', sampling: 'on' } }),
    { handlers: {}, job: { readEarlier: (request) => storedResponses(state).readEarlier(request) } },
    { handlers: {}, job: { checkModels, route, trace, failed } },
    {
      handlers: {},
      get job() {
        const reads = state.readsDocuments ? documentHooks(state.textReaders).job : {};
        return { ...reads, ...searching().job };
      },
      get searcher() {
        return searching().searcher;
      },
    },
  ]);
}

/** Returns an observer that records, and throws in the method that the state names. */
function recordingObserver(state: State): JobObserver {
  return new Proxy(recorder(state), {
    get: (observer, name, receiver) => {
      if (name === state.brokenObservation) throw new TypeError(`${name} is broken`);
      return Reflect.get(observer, name, receiver);
    },
  });
}

function recorder(state: State): JobObserver {
  return {
    jobStarted: (queueMs) => void state.waits.push(queueMs),
    inputCounted: () => {},
    toolRound: (_request, outcome) => void state.toolRounds.push(outcome),
    firstDelta: (_request, ms) => void state.firstDeltas.push(ms),
    jobEnded: (request, end, hadSlot, charge) => {
      state.recentUsage.jobEnded(request, charge);
      state.ends.push({ requestId: request.requestId, end, hadSlot });
      state.charges.push(charge);
    },
    jobMoved: (_request, from, to, reason) => void state.fallbacks.push(`${from.label} > ${to.label}: ${reason}`),
    attemptEnded: (_request, { outcome }, bill) => void state.attempts.push({ outcome, bill }),
    sizesReported: ({ adapterModel }, sizes) => void state.sizes.push([adapterModel, sizes]),
    jobBroke: (thrown) => void state.broken.push(thrown),
  };
}

function scriptedRunner(
  state: State,
  parts: Pick<JobResources, 'room' | 'clis' | 'router' | 'conversations' | 'features'>,
): JobRunner {
  const { clock } = state;
  const resources = {
    ...parts,
    clock,
    clients: state.clients,
    isStoreUp: () => state.isStoreUp,
    journal: { commitChange: (change: ConversationChange) => state.journal.commitChange(change) },
    schemas: state.schemas,
    countTokens: (texts: readonly string[]) => state.countTokens(texts),
    knownModels: { explain: async (error: RelayError) => error },
    observer: recordingObserver(state),
    redactor: new Redactor([{ name: 'A_SECRET', value: 'secret-of-the-harness' }], () => false),
    checkStart: () => {
      if (state.isBudgetUsedUp) throw new RelayError('rate_limited', 'used up', { reason: 'budget' });
    },
  };
  const times = { queueTimeoutMs: 15_000, executionMs: 120_000 };
  const limits = { ...times, exposeStderr: false, maxOutputBytes };
  return new JobRunner(resources, { ...limits, sampling: 'on' });
}

/** Creates background jobs over a runner, in memory or shared with other hosts. */
function backgroundJobs(state: State, runner: JobRunner, room: WaitingRoom, options: JobOptions) {
  const { maxJobs = 100, jobTtlMs = 60_000, sharedJobs } = options;
  const { clock } = state;
  const store = new WatchedJobs();
  const stored =
    sharedJobs === undefined
      ? new StoredJobs(store, jobTtlMs, clock)
      : new RemoteJobs(
          sharedJobs,
          jobTtlMs,
          { dismiss: (request, reason) => void runner.dismiss(request, reason), recordEnded: () => {} },
          clock,
        );
  const observer = {
    ended: ({ background }: BackgroundJob, end: JobEnd) => {
      if (state.brokenObservation === 'ended') throw new TypeError('ended is broken');
      state.backgroundEnds.push({ id: background.accepted.id, end });
    },
    endedByAdmin: (by: string, job: EndedByAdmin) => void state.endedByAdmin.push([by, job]),
  };
  const recordEnd = async () => {};
  const { openJobs } = runner;
  const parts = {
    runner,
    openJobs,
    room,
    turnGate: oneHostGate,
    store: sharedJobs ?? store,
    stored,
    observer,
    recordEnd,
    clients: { recordJobGroups: () => {} },
    mayStore: (client: ClientText) => !state.unstored.includes(client),
    clock,
  };
  const jobs = new BackgroundJobs(parts, { maxJobs });
  const localJobs = new LocalJobs(runner.openJobs, () => jobs.open);
  const clientJobs = new ClientJobs(jobs, { ...parts, localJobs });
  let requests = 0;
  let stopChecks = () => {};
  return {
    /** Store of the background jobs that no other host shares. */
    store,
    stored,
    jobs,
    localJobs,
    clientJobs,
    /** Accepts a background job; resolves with its id. The room is checked every second from then on, as in the service. */
    accept: async (differences: Partial<JobRequest> = {}, form: JobForm = plainForm) => {
      if (requests++ === 0) stopChecks = clock.every(1000, () => room.check());
      const request = jobRequest({ requestId: `background ${requests}`, isStreamed: true, ...differences });
      return (await jobs.accept(request, form)).id;
    },
    view: (id: string, client: ClientText = 'key a') => clientJobs.view(id, client),
    statusOf: async (id: string, client: ClientText = 'key a') => (await clientJobs.view(id, client)).status,
    delete: (id: string, client: ClientText = 'key a') =>
      clientJobs.delete({ id, client, isAdmin: false, keepsEnded: false, requestId: 'request' }),
    list: async (order: Partial<JobListOrder> = {}) =>
      clientJobs.listJobs({ client: 'key a', status: null, before: null, limit: 10, ...order }),
    /** Returns the events that concern a reader, until the job has ended. */
    events: (id: string, client: ClientText = 'key a', signal = new AbortController().signal) =>
      clientJobs.events(id, client, signal),
    backgroundOutcomes: () => state.backgroundEnds.map(({ end }) => end.outcome),
    stopChecks: () => stopChecks(),
  };
}

/** Creates a job runner with real slots and conversations, background jobs over it, and scripted CLI processes. */
export function jobHarness(options: JobOptions = {}) {
  const { maxActive = 1, maxWaiting = 10, boundsOf, cliLimits = {}, traceJob = () => null } = options;
  const state = harnessState(options.extras ?? {});
  const { clock } = state;
  const room = new WaitingRoom({ maxActive, maxWaiting, maxWaitingBytes: 1000, cliLimits }, clock, boundsOf);
  const sizes = { maxConversations: 10, maxBytes: 10_000, maxBytesEach: 10_000 };
  const conversations = new ConversationStore({ ttlMs: 60_000, ...sizes }, clock);
  const acquire = acquisition(state, options);
  /** CLIs with a limit, then one without limit and name. */
  const clis = [...Object.keys(cliLimits), ''].map((name) =>
    scriptedModelCli(name, state, acquire, () => runner.moves.moveWaiting(() => true)),
  );
  const lastCli = clis.at(-1) as ModelCli;
  const router = routerTo(clis, state, options.models);
  const searches = new SearchQuota(
    'native',
    sameSearchLimit(() => state.searchesPerDay),
    state.recentUsage,
    clock,
  );
  const features = hooksWith(state, router, searches, traceJob);
  const runner: JobRunner = scriptedRunner(state, { room, clis, router, conversations, features });
  const background = backgroundJobs(state, runner, room, options);
  let requests = 0;
  const run = (differences: Partial<JobRequest> = {}, caller = new AbortController().signal) =>
    runner.run(jobRequest({ requestId: `job ${++requests}`, ...differences }), caller);
  const finish = async (differences: Partial<JobRequest> = {}) => endOf(await all(run(differences)));
  return Object.assign(state, background, {
    room,
    conversations,
    clis,
    /** Health of the CLI without a limit. */
    health: lastCli.health,
    router,
    searches,
    runner,
    run,
    /** Starts a job whose caller can disconnect. */
    start: (differences: Partial<JobRequest> = {}) => {
      const caller = new AbortController();
      const events = all(run(differences, caller.signal));
      return { events, end: () => events.then(endOf), leave: (reason: Error = clientGone) => caller.abort(reason) };
    },
    /** Runs a job; resolves with its end. */
    finish,
    /** Runs a whole turn; resolves with the conversation's id. */
    turn: async (conversationId: string | null = null, differences: Partial<JobRequest> = {}) => {
      const end = await finish({ operation: 'chat', conversationId, ...differences });
      if (end.outcome !== 'ok' || end.conversation === null) throw new Error(end.outcome);
      return end.conversation.id;
    },
    /** Returns the jobs that are next to get a slot, of the CLI without a limit. */
    next: () => runner.openJobs.nextJobs(lastCli),
    outcomes: () => state.ends.map(({ requestId, end }) => [requestId, end.outcome]),
    /** Expects that everything that was acquired has been released, once. */
    expectTidy: async () => {
      for (const { health } of clis) health.stopChecks();
      background.stopChecks();
      await clock.advance(1050); // positions are sent once more
      expect([room.active, room.waiting, clock.pending]).toEqual([0, 0, 0]);
      expect(state.processes.map(({ released }) => released.length)).toEqual(state.processes.map(() => 1));
      expect(runner.openJobs.running).toEqual([]);
    },
  });
}

export type JobHarness = ReturnType<typeof jobHarness>;

export async function all(events: AsyncIterable<JobEvent>): Promise<JobEvent[]> {
  const seen: JobEvent[] = [];
  for await (const event of events) seen.push(event);
  return seen;
}

export function endOf(events: readonly JobEvent[]): JobEnd {
  const ends = events.filter((event) => event.type === 'job-end');
  expect(ends).toHaveLength(1);
  expect(events.at(-1)).toBe(ends[0]);
  return ends[0] as JobEnd;
}

/** Returns a promise for `start` or `release`, with the function that resolves it. */
export function barrier() {
  const { promise, resolve } = withResolvers();
  return { wait: () => promise, open: () => resolve() };
}
