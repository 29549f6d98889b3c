import type { ModelCapabilities, ModelEntry, ModelList } from '../../shared/api/models.js';
import { cached, withLimit } from '../../shared/async.js';
import type { ClientText } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import { anyOther, defaultModelName, type ModelAlias } from '../../shared/config/values.js';
import { RelayError } from '../../shared/errors.js';
import type { JobRequest } from '../../shared/job.js';
import type { Capabilities } from './contract/adapter.js';
import type { ModelSizes } from './contract/model-rules.js';
import type { ModelCli } from './model-cli.js';
import type { LearnedSizes } from './model-sizes.js';
import { type AtLeastOne, capabilitiesOf, type ModelChoice, mustBeOneOf, narrowed } from './models.js';
import type { ModelNames, ModelRouter, OwnModels } from './route.js';

/** Longest wait for the list of one CLI, milliseconds. */
const limitMs = 3000;

/** List of one CLI, with the last result. */
interface ModelsOfCli {
  readonly cli: ModelCli;
  readonly list: () => Promise<readonly ModelEntry[]>;
  /** Returns the models that a request may name. */
  readonly catalog: () => Promise<ModelList>;
  /** Models of the last list; null before the first one. */
  known: OwnModels | null;
}

/** Model behind an alias. */
type TargetModel = Pick<ModelEntry, 'id' | 'capabilities' | 'max_input_tokens' | 'max_tokens'>;

export interface CatalogParts {
  readonly config: { readonly modelAliases: readonly ModelAlias[] };
  readonly clock: Clock;
  readonly sizes: Pick<LearnedSizes, 'sizesOf'>;
  readonly capabilitiesOf: (extras: Capabilities) => Partial<ModelCapabilities>;
  /** Returns the account whose login lists the models of a CLI. */
  readonly firstOf: (cli: ModelCli) => ModelCli;
}

/** Owns the lists of models of all CLIs. */
export class ModelCatalog {
  readonly #clis: AtLeastOne<ModelsOfCli>;
  readonly #router: ModelRouter;
  readonly #aliases: readonly ModelAlias[];
  readonly #capabilitiesOf: CatalogParts['capabilitiesOf'];
  readonly #clock: Clock;
  readonly #firstOf: (cli: ModelCli) => ModelCli;
  readonly #sizes: Pick<LearnedSizes, 'sizesOf'>;

  constructor(clis: AtLeastOne<ModelCli>, router: ModelRouter, parts: CatalogParts) {
    const { config, clock, firstOf, sizes, capabilitiesOf: addedBy } = parts;
    this.#router = router;
    this.#firstOf = firstOf;
    this.#sizes = sizes;
    this.#aliases = config.modelAliases;
    this.#capabilitiesOf = addedBy;
    this.#clock = clock;
    const listed = (cli: ModelCli): ModelsOfCli => {
      const list = modelLister(() => listModels(firstOf(cli)), clock);
      const choice = clis.length === 1 ? router.names.choice : this.#choiceOf(cli);
      return { cli, list, catalog: catalogOf(list, choice), known: null };
    };
    const [first, ...others] = clis;
    this.#clis = [listed(first), ...others.map(listed)];
  }

  /** Returns the models that a request may name, then the aliases that are not listed models themselves. */
  async list(): Promise<ModelList> {
    const { models } = await (this.#clis.length === 1 ? this.#clis[0].catalog() : this.#joinLists());
    const entries = models.map((model) => this.#withSizes(this.#withOwnCapabilities(model)));
    const isListed = ({ name }: ModelAlias) => entries.some(({ id }) => id === this.#router.names.canonical(name));
    const named = this.#aliases.filter((alias) => alias.name !== anyOther && !isListed(alias));
    const all = [...entries, ...named.map(({ name, target }) => aliasOf(name, this.#entryFor(target, entries)))];
    return { count: all.length, models: all };
  }

  /** Returns the model for which a requested name stands: at once, or after the first list of its CLI. */
  resolveName(name: string): string | Promise<string> {
    const { names } = this.#router;
    if (!names.needsList(name)) return names.resolveName(name);
    const { cli } = this.#router.split(name);
    const modelsOfCli = this.#clis.find((each) => each.cli === cli) ?? this.#clis[0];
    const { known } = modelsOfCli;
    const listed = this.#listOf(modelsOfCli); // in any case, because the program may have been updated
    if (known !== null) return names.resolveName(name, known);
    return withLimit(listed, limitMs, this.#clock, () => new Set<string>()).then((own) => names.resolveName(name, own));
  }

  /** Returns the request with the model for which its name stands, see `resolveName`. Later steps know only this name. */
  resolveRequest(request: JobRequest): JobRequest | Promise<JobRequest> {
    const { model, fallbacks = [] } = request;
    if (model === null) return request;
    const [first = model, ...others] = [model, ...fallbacks].map((name) => this.resolveName(name));
    if (typeof first === 'string' && others.length === 0) return withModels(request, first, []);
    return Promise.all([first, ...others]).then(([target, ...rest]) => withModels(request, target, rest));
  }

  /** Returns the model that answers a request with this name; null if it is not listed. */
  async findModel(name: string): Promise<ModelEntry | null> {
    const target = await this.resolveName(name);
    const { models } = await this.list();
    const listed = models.find(({ id }) => id === name);
    if (listed !== undefined) return listed;
    const { id } = this.#entryFor(target, models);
    const model = models.find((each) => each.id === id);
    return model === undefined ? null : aliasOf(name, model);
  }

  #entryFor(target: string, models: readonly ModelEntry[]): TargetModel {
    const defaultModel = target === defaultModelName ? models.find((model) => model.default) : undefined;
    const id = this.#router.names.canonical(target);
    return defaultModel ?? models.find((model) => model.id === id) ?? { id };
  }

  async #joinLists(): Promise<ModelList> {
    const listed = this.#clis.map(async ({ cli, catalog }) => {
      const { models } = await withLimit(catalog(), limitMs, this.#clock, () => namesOf(cli));
      return { cli, models };
    });
    const bodies = await Promise.all(listed);
    const { choice, defaultRoute } = this.#router.names;
    const { fallback, allowed, fault } = choice;
    const isOffered = (id: string) => (allowed?.includes(id) ?? true) && (fault?.(id) ?? null) === null;
    const known = bodies.flatMap(({ models }) => models).filter(({ id }) => isOffered(id));
    const missing = (allowed ?? []).filter((name) => !known.some(({ id }) => id === name));
    const all = [...known, ...missing.map((id) => ({ id, name: id }))];
    const listedDefault = bodies
      .find(({ cli }) => cli.name === defaultRoute.cli.name)
      ?.models.find((each) => each.default)?.id;
    const byDefault = (allowed === null && defaultRoute.model === null ? listedDefault : undefined) ?? fallback;
    const models = all.map((each) => ({ ...each, default: each.id === byDefault }));
    return { count: models.length, models };
  }

  #withOwnCapabilities({ capabilities: listed, ...model }: ModelEntry): ModelEntry {
    const { cli, model: name } = this.#router.split(model.id);
    const { extras } = this.#firstOf(cli).program;
    if (extras === null) return model;
    return {
      ...model,
      capabilities: capabilitiesOf({ capabilities: listed }, extras, this.#capabilitiesOf(extras), name),
    };
  }

  /** Adds the sizes that the CLI has reported with an answer. The default model may have answered without its name. */
  #withSizes(entry: ModelEntry): ModelEntry {
    const { cli, model } = this.#router.split(entry.id);
    const sizes =
      this.#sizes.sizesOf({ cli, model }) ?? (entry.default ? this.#sizes.sizesOf({ cli, model: null }) : null);
    return sizes === null ? entry : { ...entry, ...sizeFields(sizes) };
  }

  async #listOf(asked: ModelsOfCli): Promise<OwnModels> {
    const listed = await asked.list();
    asked.known = new Set(listed.map(({ id }) => this.#router.split(id).model ?? id));
    return asked.known;
  }

  /** Returns the choice of models at one of several CLIs. */
  #choiceOf(cli: ModelCli): ModelChoice {
    const { choice } = this.#router.names;
    const isOf = (name: string) => {
      const named = this.#router.split(name);
      return named.cli === cli && named.model !== null;
    };
    const adapterModels = cli.adapter.models?.map((model) => cli.publicName(model) ?? model) ?? null;
    const { fallback } = choice;
    return {
      fallback: fallback !== null && isOf(fallback) ? fallback : null,
      allowed: choice.allowed?.filter(isOf) ?? adapterModels,
      label: cli.publicName(null),
    };
  }
}

function withModels(request: JobRequest, model: string, fallbacks: readonly string[]): JobRequest {
  if (fallbacks.length > 0) return { ...request, model, fallbacks };
  return model === request.model ? request : { ...request, model };
}

async function listModels(cli: ModelCli): Promise<readonly ModelEntry[] | null> {
  await cli.login?.ready();
  const listed = await cli.listModels();
  return listed?.map((model) => ({ ...model, id: cli.publicName(model.id) ?? model.id })) ?? null;
}

/** Returns the list that stands for a slow CLI. */
function namesOf({ name }: ModelCli): ModelList {
  return { count: 1, models: [{ id: name, name, default: false }] };
}

function sizeFields({ maxInputTokens: input, maxOutputTokens: output }: ModelSizes): Partial<ModelEntry> {
  return { ...(input !== null && { max_input_tokens: input }), ...(output !== null && { max_tokens: output }) };
}

function aliasOf(name: string, { id, ...model }: TargetModel): ModelEntry {
  const { capabilities, max_input_tokens: input, max_tokens: output } = model;
  const known = {
    ...(capabilities !== undefined && { capabilities }),
    ...(input !== undefined && { max_input_tokens: input }),
    ...(output !== undefined && { max_tokens: output }),
  };
  return { id: name, name, default: false, ...known, alias_of: id };
}

/** Longest use of a list, because an updated CLI may know other models. */
const maxAgeMs = 10 * 60_000;
/** Delay after a failure, so that a failing CLI is not started again for each request. */
const retryMs = 5000;

/**
 * Returns a function that lists the models of a CLI, and asks the CLI at most every ten minutes; empty if it has no
 * list or fails.
 */
export function modelLister(ask: () => Promise<readonly ModelEntry[] | null>, clock: Clock) {
  const askNowAndThen = cached(async () => (await ask()) ?? [], maxAgeMs, clock);
  let notBeforeMs = 0;
  return async (): Promise<readonly ModelEntry[]> => {
    if (clock.monotonicMs() < notBeforeMs) return [];
    return askNowAndThen().catch(() => {
      notBeforeMs = clock.monotonicMs() + retryMs;
      return [];
    });
  };
}

/**
 * Returns a function that lists the models that a request may name, with one default. If the models are configured, the
 * CLI's list only adds details.
 */
export function catalogOf(listed: () => Promise<readonly ModelEntry[]>, choice: ModelChoice) {
  return async (): Promise<ModelList> => {
    const known = new Map((await listed()).map((model) => [model.id, model]));
    const ids = idsOf(choice, [...known.keys()]);
    const byDefault = choice.fallback ?? ids.find((id) => known.get(id)?.default) ?? ids[0];
    const models = ids.map((id) => ({ ...(known.get(id) ?? { id, name: id }), default: id === byDefault }));
    return { count: models.length, models };
  };
}

function idsOf({ allowed, fallback, label }: ModelChoice, known: readonly string[]): string[] {
  const ids = new Set([...(allowed ?? known), ...(fallback === null ? [] : [fallback])]);
  return ids.size > 0 ? [...ids] : [label ?? 'default'];
}

/** Largest number of names in an error; GET /models has all. */
const maxNames = 40;

export interface KnownModelsParts {
  readonly router: { readonly names: Pick<ModelNames, 'choice'> } & Pick<ModelRouter, 'modelsOf'>;
  readonly catalog: Pick<ModelCatalog, 'list'>;
  readonly clock: Clock;
}

/** Adds the models that a client may name to an error about an unknown model. */
export class KnownModels {
  readonly #parts: KnownModelsParts;

  constructor(parts: KnownModelsParts) {
    this.#parts = parts;
  }

  /** Whether the error refuses a model, either by the service or by its CLI. */
  static isUnknown(error: unknown): error is RelayError {
    if (!(error instanceof RelayError)) return false;
    return (
      error.reason === 'model_unknown' || (error.code === 'validation_error' && error.details?.[0]?.path === 'model')
    );
  }

  /** Returns the error with the names added if they are missing. */
  async explain(error: RelayError, client: ClientText): Promise<RelayError> {
    const { router } = this.#parts;
    const { choice } = router.names;
    const { allowed, limitedBy } = narrowed(choice, router.modelsOf(client));
    const isComplete = error.code === 'validation_error' && (limitedBy !== undefined || choice.fault === undefined);
    if (isComplete) return error;
    const all = allowed ?? (await this.#names());
    return all.length === 0 ? error : namesAdded(error, listed(all));
  }

  /**
   * Returns the names of all models; empty if no CLI lists any, in which case the catalog contains only a name for the
   * default.
   */
  async #names(): Promise<readonly string[]> {
    const { catalog, clock } = this.#parts;
    const list = catalog.list().catch(() => null);
    const { models = [] } = (await withLimit(list, limitMs, clock)) ?? {};
    return models.map(({ id }) => id).filter((id) => id !== 'default' || models.length > 1);
  }
}

function listed(names: readonly string[]): string {
  const more = names.length - maxNames;
  return names.slice(0, maxNames).join(', ') + (more > 0 ? ` and ${more} more (GET /models)` : '');
}

function namesAdded({ code, message, details, ...error }: RelayError, names: string): RelayError {
  const [fault] = details ?? [];
  if (fault === undefined) return new RelayError(code, `${message}; this service has ${names}`, error);
  const { path } = fault;
  const withNames = fault.message.startsWith(mustBeOneOf)
    ? `${mustBeOneOf} ${names}`
    : `${fault.message}; this service has ${names}`;
  return new RelayError(code, `${path}: ${withNames}`, { ...error, details: [{ path, message: withNames }] });
}
