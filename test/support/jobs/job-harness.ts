import type { BoundsOf } from '../../../src/primary/access/clients.js';
import type { Capabilities, LaunchOptions, Turn, TurnEnd } from '../../../src/primary/cli/contract/adapter.js';
import type { ModelCli } from '../../../src/primary/cli/model-cli.js';
import { type ModelChoice, modelFor, namedModel, narrowed } from '../../../src/primary/cli/models.js';
import type { WaitingJob } from '../../../src/primary/cli/pool/standby-keeper.js';
import type { ConversationState } from '../../../src/primary/cli/process/cli-process.js';
import type { TextSink } from '../../../src/primary/cli/process/open-turn.js';
import { Redactor } from '../../../src/primary/cli/process/redactor.js';
import type { ModelRouter, Route } from '../../../src/primary/cli/route.js';
import { ConversationStore } from '../../../src/primary/conversations/conversation-store.js';
import type { CliHealth } from '../../../src/primary/health/cli-health.js';
import { SeenClients } from '../../../src/primary/health/evidence.js';
import type { JobCli } from '../../../src/primary/jobs/job-processes.js';
import { type JobObserver, JobRunner } from '../../../src/primary/jobs/job-runner.js';
import { spansOfJobs } from '../../../src/primary/jobs/job-spans.js';
import type { JobStream } from '../../../src/primary/jobs/job-stream.js';
import { WaitingRoom } from '../../../src/primary/jobs/waiting-room.js';
import type { ConversationChange, ConversationJournal } from '../../../src/primary/store/contract/conversations.js';
import type { Charge } from '../../../src/primary/store/contract/usage.js';
import { noJournal } from '../../../src/primary/store/memory/memory-store.js';
import type { SchemaFinding } from '../../../src/primary/threads/schema-thread.js';
import { orAborted } from '../../../src/shared/async.js';
import { cancelled, RelayError } from '../../../src/shared/errors.js';
import type { JobEnd, JobEvent, JobRequest, Message, ToolRound } from '../../../src/shared/job.js';
import { spanTexts } from '../../../src/shared/trace/span.js';
import { healthOf } from '../agents/cli-health.js';
import { FakeClock } from '../basics/fake-clock.js';
import { jobRequest } from './job-records.js';

export type Script = (sink: TextSink, signal: AbortSignal) => Promise<TurnEnd>;
export type Usage = ReturnType<JobCli['usage']>;

export const usage = { inputTokens: 3, outputTokens: 2, costUsd: null, cacheReadTokens: null, cacheWriteTokens: null };
export const turnEnd: TurnEnd = { type: 'turn-end', text: null, model: 'eliza', usage };
export const clientGone = cancelled('the client has disconnected');
export const shutdown = new RelayError('shutting_down', 'the service ends', { retryAfterSeconds: 5 });
export const forever = new Promise<never>(() => {});

export const answers: Script = async (sink) => {
  sink.write('Hel');
  sink.write('lo');
  return turnEnd;
};

/** Writes text, then waits for the abort. */
export const hangs: Script = (sink, signal) => {
  sink.write('Well');
  return orAborted(forever, signal);
};

export function throws(error: unknown): Script {
  return () => Promise.reject(error);
}

/** CLI process that follows a script. */
class FakeCli implements JobCli {
  readonly extras: Capabilities;
  readonly origin = 'new';
  readonly heldMs = null;
  readonly process = { startedMs: 0, startupMs: 5 };
  readonly turns: Turn[] = [];
  /** Conversation that the process stays with, for each release; null if it was to end. */
  readonly released: (ConversationState | null)[] = [];
  usages: Usage[] = [];
  readonly #script: Script;
  readonly #release: () => Promise<void>;

  constructor(script: Script, release: () => Promise<void>, extras: Capabilities) {
    this.extras = extras;
    this.#script = script;
    this.#release = release;
  }

  turn(turn: Turn, sink: TextSink, signal: AbortSignal): Promise<TurnEnd> {
    this.turns.push(turn);
    return this.#script(sink, signal);
  }

  /** Returns the usage since the last call, like a real process. */
  usage(): Usage {
    return this.usages.shift() ?? null;
  }

  release(conversation: ConversationState | null): Promise<void> {
    this.released.push(conversation);
    return this.#release();
  }
}

class RecordingObserver implements JobObserver {
  readonly ends: { readonly requestId: string; readonly end: JobEnd; readonly hadSlot: boolean }[] = [];
  readonly charges: Charge[] = [];
  readonly broken: unknown[] = [];
  readonly waits: number[] = [];
  readonly firstDeltas: number[] = [];
  readonly toolRounds: ToolRound[] = [];

  jobStarted(queueMs: number): void {
    this.waits.push(queueMs);
  }

  toolRound(_request: JobRequest, outcome: ToolRound): void {
    this.toolRounds.push(outcome);
  }

  firstDelta(_request: JobRequest, ms: number): void {
    this.firstDeltas.push(ms);
  }

  jobEnded({ requestId }: JobRequest, end: JobEnd, hadSlot: boolean, charge: Charge): void {
    this.ends.push({ requestId, end, hadSlot });
    this.charges.push(charge);
  }

  jobBroke(thrown: unknown): void {
    this.broken.push(thrown);
  }
}

export interface JobOptions {
  readonly script?: Script;
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
  /** Whether spans are recorded. */
  readonly isTraced?: boolean;
}

const atOnce = async () => {};

/** Job runner with real slots and conversations, and scripted CLI processes. */
export class JobHarness {
  readonly clock = new FakeClock();
  readonly observer = new RecordingObserver();
  readonly launches: LaunchOptions[] = [];
  readonly spans: Record<string, unknown>[] = [];
  /** Conversations that processes were requested for. */
  readonly requestedConversations: (ConversationState | null)[] = [];
  readonly processes: FakeCli[] = [];
  readonly room: WaitingRoom;
  /** Clients that have requested a job. */
  readonly clients = new SeenClients();
  /** Health of the CLI without a limit. */
  readonly health = this.#healthOf('');
  /** Number of times that all waiting processes were ended. */
  flushes = 0;
  readonly conversations: ConversationStore;
  readonly runner: JobRunner;
  readonly router: Pick<ModelRouter, 'route' | 'check'>;
  /** CLIs with a limit, then one without limit and name. */
  readonly clis: readonly ModelCli[];
  /** Conversations that a process pool has forgotten, as `ID at CLI`. */
  readonly forgotten: string[] = [];
  /** Models that clients may name; null allows all. */
  models: readonly string[] | null = null;
  /** Conversations with a live process. */
  liveConversations: readonly ConversationState[] = [];
  extras: Capabilities = {};
  /** Whether the program version is known before the first job. */
  isProgramKnown = true;
  isStoreUp = true;
  /** Earlier text that each request continues. */
  earlier: readonly Message[] = [];
  isBudgetUsedUp = false;
  /** Schema check that accepts each text that begins with a brace. */
  readonly schemas = {
    read: async (_schema: string, text: string): Promise<SchemaFinding> =>
      text.startsWith('{') ? { kind: 'fits', value: text } : { kind: 'bad-value', fault: 'the answer is not JSON' },
  };
  countTokens = async (texts: readonly string[]) => texts.join('').length;
  journal: Pick<ConversationJournal, 'commit'> = noJournal;
  #requests = 0;

  constructor({ maxActive = 1, maxWaiting = 10, models, boundsOf, cliLimits = {}, ...options }: JobOptions = {}) {
    const { clock, observer } = this;
    this.room = new WaitingRoom({ maxActive, maxWaiting, maxWaitingBytes: 1000, cliLimits }, clock, boundsOf);
    const most = { maxConversations: 10, maxBytes: 10_000, maxBytesEach: 10_000 };
    this.conversations = new ConversationStore({ ttlMs: 60_000, ...most }, clock);
    const choice = { fallback: null, allowed: null, label: null, ...models };
    this.clis = [...Object.keys(cliLimits), ''].map((name) => this.#cli(name, options));
    const { clis } = this;
    this.router = this.#routerTo(clis, choice);
    const resources = {
      room: this.room,
      clis,
      router: this.router,
      clients: this.clients,
      conversations: this.conversations,
      isStoreUp: () => this.isStoreUp,
      journal: { commit: (change: ConversationChange) => this.journal.commit(change) },
      schemas: this.schemas,
      countTokens: (texts: readonly string[]) => this.countTokens(texts),
      responses: { text: async () => this.earlier },
      knownModels: { explain: async (error: RelayError) => error },
      observer,
      redactor: new Redactor([{ name: 'A_SECRET', value: 'secret-of-the-harness' }], () => false),
      clock,
      checkBudget: () => {
        if (this.isBudgetUsedUp) throw new RelayError('rate_limited', 'used up', { reason: 'budget' });
      },
      spansOf:
        options.isTraced === true
          ? spansOfJobs({ add: (span) => this.spans.push(...spanTexts([span]).map((text) => JSON.parse(text))) }, clock)
          : null,
    };
    this.runner = new JobRunner(resources, {
      queueTimeoutMs: 15_000,
      executionMs: 120_000,
      exposeStderr: false,
      tools: 'on',
      sampling: 'on',
    });
  }

  #cli(name: string, options: JobOptions): ModelCli {
    const extras = () => (this.isProgramKnown ? this.extras : null);
    const cli = {
      name,
      adapter: { name: 'scripted' },
      health: name === '' ? this.health : this.#healthOf(name),
      pool: {
        hasSessionFor: (state: ConversationState) => this.liveConversations.some(({ id }) => id === state.id),
        endSessionOf: (id: string) => void this.forgotten.push(`${id} at ${name}`),
        endIdleProcesses: async () => void this.flushes++,
      },
      program: {
        get extras() {
          return extras();
        },
      },
      publicName: (model: string | null) => (name === '' ? model : `${name}/${model}`),
      acquire: (launch: LaunchOptions, of: ConversationState | null, signal: AbortSignal) =>
        this.#acquire(options, launch, of, signal),
    };
    return cli as unknown as ModelCli;
  }

  #healthOf(cli: string): CliHealth {
    return healthOf(this.clock, {
      cli,
      onCircuit: ({ state }) => state === 'open' && this.runner.cutHeld(),
      onSpoiled: () => void this.flushes++,
    });
  }

  /** Returns a router: the part of a model name before the slash selects the CLI, else the last one is used. */
  #routerTo(clis: readonly ModelCli[], choice: ModelChoice) {
    const cliOf = (model: string | null) => clis.find(({ name }) => name === model?.split('/')[0]) ?? clis.at(-1);
    return {
      route: ({ model }: Pick<JobRequest, 'model'>): Route => {
        const allowedChoice = narrowed(choice, this.models);
        const named = namedModel(model, allowedChoice) ?? allowedChoice.fallback;
        const cli = cliOf(named) as ModelCli;
        return { cli, adapterModel: named, publicModel: named, label: named ?? choice.label, circuit: model ?? '' };
      },
      check: ({ model }: Pick<JobRequest, 'model'>) => void modelFor(model, narrowed(choice, this.models)),
    };
  }

  run(differences: Partial<JobRequest> = {}, caller = new AbortController().signal): JobStream {
    return this.runner.run(jobRequest({ requestId: `job ${++this.#requests}`, ...differences }), caller);
  }

  /** Runs a whole turn; returns the conversation's id. */
  async turn(conversationId: string | null = null): Promise<string> {
    const end = endOf(await all(this.run({ operation: 'chat', conversationId })));
    if (end.outcome !== 'ok' || end.conversation === null) throw new Error(end.outcome);
    return end.conversation.id;
  }

  /** Jobs that are next to get a slot, of the CLI without a limit. */
  get next(): WaitingJob[] {
    return this.clis.slice(-1).flatMap((cli) => this.runner.next(cli));
  }

  get outcomes(): (readonly [requestId: string, outcome: string])[] {
    return this.observer.ends.map(({ requestId, end }) => [requestId, end.outcome]);
  }

  /** Expects that everything that was acquired has been released, once. */
  async expectTidy(): Promise<void> {
    for (const { health } of this.clis) health.stop();
    await this.clock.advance(1050); // positions are sent once more
    expect([this.room.active, this.room.waiting, this.clock.pending]).toEqual([0, 0, 0]);
    expect(this.processes.map(({ released }) => released.length)).toEqual(this.processes.map(() => 1));
    expect(this.runner.running).toEqual([]);
  }

  async #acquire(
    { script = answers, start = atOnce, release = atOnce, usages = [] }: JobOptions,
    launch: LaunchOptions,
    of: ConversationState | null,
    signal: AbortSignal,
  ): Promise<FakeCli> {
    this.launches.push(launch);
    this.requestedConversations.push(of);
    await start(signal);
    signal.throwIfAborted();
    const cli = new FakeCli(script, release, this.extras);
    cli.usages = [...usages];
    this.processes.push(cli);
    return cli;
  }
}

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
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { wait: () => opened, open: () => open() };
}
