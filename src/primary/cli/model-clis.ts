import type { ModelEntry, ModelList } from '../../shared/api/models.js';
import { type Clock, delay } from '../../shared/clock.js';
import type { Config } from '../../shared/config/config.js';
import type { Redactor } from '../../shared/redactor.js';
import { findModel, withAliases } from './alias-list.js';
import type { Extras, Launch } from './contract/adapter.js';
import type { CliObserver } from './contract/observer.js';
import { capabilitiesOf } from './extras.js';
import { type CliHost, createModelCli, type ModelCli } from './model-cli.js';
import type { OwnModels } from './model-names.js';
import type { AtLeastOne, ModelRouter } from './model-router.js';
import { catalogOf, type ModelChoice, modelLister, type NamedAdapter } from './models.js';
import type { WaitingJob } from './pool/caretaker.js';
import type { CliLease } from './pool/lease.js';
import type { ConversationState } from './process/cli-state.js';

/** How long the list of models waits for each of several CLIs. */
const listLimitMs = 3000;

/** The model CLIs of the service. Whoever asks for a model here names it as requests do; it finds the CLI by that name. */
export class ModelClis {
  readonly all: AtLeastOne<ModelCli>;
  readonly models: ModelChoice;
  readonly #router: ModelRouter;
  readonly #host: CliHost;
  readonly #aliases: Config['modelAliases'];
  /** For each CLI: has it tell of its models. */
  readonly #lists: readonly (() => Promise<readonly ModelEntry[]>)[];
  /** What each CLI has told last. */
  readonly #told: (OwnModels | null)[];
  /** Launches with the CLI's own name of the model, as long as those live that were asked for. */
  readonly #ownLaunches = new WeakMap<Launch, Launch>();

  constructor(
    config: Config,
    host: CliHost,
    named: AtLeastOne<NamedAdapter>,
    router: ModelRouter,
    observerOf: (cli: string) => CliObserver,
    redactor: Redactor,
  ) {
    this.#host = host;
    this.#router = router;
    this.models = router.choice;
    const [first, ...others] = named;
    const usual = router.split(this.models.fallback);
    const serials = { last: 0 };
    const create = (cli: NamedAdapter, index: number) => {
      const usualModel = index === usual.index ? usual.model : null;
      return createModelCli(config, host, cli, { observer: observerOf(cli.name), redactor, usualModel, serials });
    };
    this.all = [create(first, 0), ...others.map((cli, at) => create(cli, at + 1))];
    this.#aliases = config.modelAliases;
    this.#lists = this.all.map((cli) => modelLister(() => this.#listModels(cli), host.clock));
    this.#told = this.all.map(() => null);
  }

  get first(): ModelCli {
    return this.all[0];
  }

  /** The CLI of a model. */
  of(model: string | null): ModelCli {
    return this.all[this.#router.split(model).index] ?? this.first;
  }

  /** The CLI's own name of the model. */
  ownModel(model: string | null): string | null {
    return this.#router.split(model).model;
  }

  /** What requests call a CLI's own model; null for no model in particular of the only CLI. */
  publicModel(cli: ModelCli, model: string | null): string | null {
    return this.#router.publicName(this.all.indexOf(cli), model);
  }

  /** The model that the name of a request stands for: at once, or when its CLI has told of its models for the first time. */
  target(name: string): string | Promise<string> {
    const { names } = this.#router;
    if (!names.needsList(name)) return names.of(name);
    const { index } = this.#router.split(name);
    const known = this.#told[index] ?? null;
    const told = this.#hear(index); // in any case: the program may have been updated
    if (known !== null) return names.of(name, known);
    return soon(told, new Set<string>(), this.#host.clock).then((listed) => names.of(name, listed));
  }

  extras(model: string | null): Extras | null {
    return this.of(model).program.extras;
  }

  /** As `ModelCli.acquire`. A conversation that goes on at another CLI leaves its process. */
  async acquire(launch: Launch, of: ConversationState | null, signal: AbortSignal): Promise<CliLease> {
    const cli = this.of(launch.model);
    if (this.#router.isPlain) return cli.acquire(launch, of, signal);
    const lease = await cli.acquire(this.ownLaunch(launch), this.#ownState(of), signal);
    const model = this.ownModel(launch.model);
    return {
      ...lease,
      turn: async (turn, sink, turnSignal) => {
        const end = await lease.turn({ ...turn, model }, sink, turnSignal);
        return { ...end, model: end.model === null ? null : this.publicModel(cli, end.model) };
      },
      release: (conversation) => {
        if (conversation !== null) this.#forget(conversation.id, cli);
        return lease.release(this.#ownState(conversation));
      },
    };
  }

  /** Whether a process waits for just this turn. */
  keeps(state: ConversationState): boolean {
    const own = this.#ownState(state) ?? state;
    return this.of(state.launch?.model ?? null).pool.keeps(own);
  }

  /** The conversation is gone: so are its processes. */
  forget(conversationId: string): void {
    this.#forget(conversationId, null);
  }

  /** As its CLI has it. The same object for the same launch. */
  ownLaunch(launch: Launch): Launch {
    if (this.#router.isPlain) return launch;
    const known = this.#ownLaunches.get(launch) ?? { ...launch, model: this.ownModel(launch.model) };
    this.#ownLaunches.set(launch, known);
    return known;
  }

  /** Those of these jobs that wait for a process of this CLI, as it has them. */
  waitingFor(cli: ModelCli, jobs: readonly WaitingJob[]): readonly WaitingJob[] {
    if (this.#router.isPlain) return jobs;
    const own = jobs.filter(({ launch }) => this.of(launch.model) === cli);
    return own.map(({ launch, conversation }) => ({ launch: this.ownLaunch(launch), conversation }));
  }

  /** The processes of all CLIs, by what they are doing. */
  counts(): ReturnType<ModelCli['pool']['counts']> {
    const sum = { standby: 0, live: 0, busy: 0, stopping: 0 };
    for (const { pool } of this.all) {
      const counts = pool.counts();
      for (const state of Object.keys(sum) as (keyof typeof sum)[]) sum[state] += counts[state];
    }
    return sum;
  }

  /** Makes the list of what a request may name. */
  catalog(clock: Clock): () => Promise<ModelList> {
    const list = this.#catalogOfModels(clock);
    return async () =>
      withAliases(this.#withCapabilities(await list()), this.#aliases, (name) => this.#router.canonical(name));
  }

  /** The model that a request with this name is run with; null where it is not listed. */
  async find(name: string, catalog: () => Promise<ModelList>): Promise<ModelEntry | null> {
    const target = await this.target(name);
    return findModel(name, await catalog(), target, (model) => this.#router.canonical(model));
  }

  #catalogOfModels(clock: Clock): () => Promise<ModelList> {
    const listed = this.all.map((cli, at) => catalogOf(this.#lists[at] ?? noModels, this.#choiceOf(cli)));
    if (this.#router.isPlain && listed[0] !== undefined) return listed[0];
    return async () => {
      const bodies = await Promise.all(listed.map((list, at) => soon(list(), this.#namesOf(at), clock)));
      const { fallback, allowed, fault } = this.models;
      const isOffered = (id: string) => (allowed?.includes(id) ?? true) && (fault?.(id) ?? null) === null;
      const known = bodies.flatMap(({ models }) => models).filter(({ id }) => isOffered(id));
      const missing = (allowed ?? []).filter((name) => !known.some(({ id }) => id === name));
      const all = [...known, ...missing.map((id) => ({ id, name: id }))];
      const { index, model } = this.#router.split(fallback);
      const ofCli = allowed === null && model === null ? defaultOf(bodies[index]) : undefined;
      const models = all.map((each) => ({ ...each, default: each.id === (ofCli ?? fallback) }));
      return { count: models.length, models };
    };
  }

  #withCapabilities({ count, models }: ModelList): ModelList {
    return { count, models: models.map((model) => this.#withOwnCapabilities(model)) };
  }

  #withOwnCapabilities({ capabilities: listed, ...model }: ModelEntry): ModelEntry {
    const extras = this.extras(model.id);
    return extras === null ? model : { ...model, capabilities: capabilitiesOf({ capabilities: listed }, extras) };
  }

  /** Starts nothing more. Resolves when nothing is left. */
  async close(): Promise<void> {
    await Promise.all(this.all.map(({ pool }) => pool.close()));
    await this.#host.termination.containments.close();
  }

  async #hear(index: number): Promise<OwnModels> {
    const listed = (await this.#lists[index]?.()) ?? [];
    const own = new Set(listed.map(({ id }) => this.ownModel(id) ?? id));
    this.#told[index] = own;
    return own;
  }

  async #listModels(cli: ModelCli) {
    const listed = await cli.program.listModels();
    return listed?.map((model) => ({ ...model, id: this.publicModel(cli, model.id) ?? model.id })) ?? null;
  }

  /** What is listed of a CLI that is slow to tell. */
  #namesOf(index: number): ModelList {
    const name = this.all[index]?.name ?? '';
    return { count: 1, models: [{ id: name, name, default: false }] };
  }

  #choiceOf(cli: ModelCli): ModelChoice {
    if (this.#router.isPlain) return this.models;
    const ofCli = (name: string) => this.of(name) === cli && this.ownModel(name) !== null;
    const own = cli.adapter.models?.map((model) => this.publicModel(cli, model) ?? model) ?? null;
    const allowed = this.models.allowed?.filter(ofCli) ?? own;
    const { fallback } = this.models;
    const isOwn = fallback !== null && ofCli(fallback);
    return { fallback: isOwn ? fallback : null, allowed, label: this.publicModel(cli, null) };
  }

  #ownState(state: ConversationState | null): ConversationState | null {
    if (state?.launch === undefined || this.#router.isPlain) return state;
    return { ...state, launch: this.ownLaunch(state.launch) };
  }

  #forget(conversationId: string, but: ModelCli | null): void {
    for (const cli of this.all) if (cli !== but) cli.pool.forget(conversationId);
  }
}

async function noModels(): Promise<readonly ModelEntry[]> {
  return [];
}

/** One that is slow holds up nobody: it has told by the next time. */
function soon<T>(told: Promise<T>, instead: T, clock: Clock): Promise<T> {
  return Promise.race([told, delay(clock, listLimitMs).then(() => instead)]);
}

function defaultOf(body: ModelList | undefined): string | undefined {
  return body?.models.find((model) => model.default)?.id;
}
