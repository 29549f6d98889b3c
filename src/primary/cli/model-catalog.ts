import type { ModelEntry, ModelList } from '../../shared/api/models.js';
import { type Clock, delay } from '../../shared/clock.js';
import { anyOther, defaultModelName, type ModelAlias } from '../../shared/config/model-aliases.js';
import type { JobRequest } from '../../shared/job.js';
import { capabilitiesOf } from './extras.js';
import type { ModelCli } from './model-cli.js';
import type { OwnModels } from './model-names.js';
import { type AtLeastOne, catalogOf, type ModelChoice, modelLister } from './models.js';
import type { ModelRouter } from './route.js';

/** How long the list of models waits for each of several CLIs. */
const listLimitMs = 3000;

/** What is known of the models of one CLI. */
interface ModelsOfCli {
  readonly cli: ModelCli;
  /** Has it tell of its models. */
  readonly list: () => Promise<readonly ModelEntry[]>;
  /** Makes the list of those that a request may name. */
  readonly catalog: () => Promise<ModelList>;
  /** What it has told last. */
  told: OwnModels | null;
}

/** Owns what the CLIs have told of their models. */
export class ModelCatalog {
  readonly #clis: AtLeastOne<ModelsOfCli>;
  readonly #router: ModelRouter;
  readonly #aliases: readonly ModelAlias[];
  readonly #clock: Clock;

  constructor(clis: AtLeastOne<ModelCli>, router: ModelRouter, aliases: readonly ModelAlias[], clock: Clock) {
    this.#router = router;
    this.#aliases = aliases;
    this.#clock = clock;
    const listed = (cli: ModelCli): ModelsOfCli => {
      const list = modelLister(() => listModels(cli), clock);
      return {
        cli,
        list,
        catalog: catalogOf(list, clis.length === 1 ? router.choice : this.#choiceOf(cli)),
        told: null,
      };
    };
    const [first, ...others] = clis;
    this.#clis = [listed(first), ...others.map(listed)];
  }

  /** The list of what a request may name. The names behind it that stand for models of it come last. */
  async list(): Promise<ModelList> {
    const { models } = await (this.#clis.length === 1 ? this.#clis[0].catalog() : this.#joined());
    const own = models.map((model) => this.#withOwnCapabilities(model));
    const isListed = ({ name }: ModelAlias) => own.some(({ id }) => id === this.#router.canonical(name));
    const named = this.#aliases.filter((alias) => alias.name !== anyOther && !isListed(alias));
    const all = [...own, ...named.map(({ name, target }) => aliasOf(name, this.#entryFor(target, own)))];
    return { count: all.length, models: all };
  }

  /** The model that the name of a request stands for: at once, or when its CLI has told of its models for the first time. */
  target(name: string): string | Promise<string> {
    const { names } = this.#router;
    if (!names.needsList(name)) return names.of(name);
    const { cli } = this.#router.split(name);
    const asked = this.#clis.find((each) => each.cli === cli) ?? this.#clis[0];
    const known = asked.told;
    const told = this.#hear(asked); // in any case: the program may have been updated
    if (known !== null) return names.of(name, known);
    return soon(told, new Set<string>(), this.#clock).then((listed) => names.of(name, listed));
  }

  /** The request with the model that its name stands for, as of `target`. What follows knows no other name. */
  targeted(request: JobRequest): JobRequest | Promise<JobRequest> {
    if (request.model === null) return request;
    const target = this.target(request.model);
    return typeof target === 'string' ? withModel(request, target) : target.then((model) => withModel(request, model));
  }

  /** The model that a request with this name is run with; null where it is not listed. */
  async find(name: string): Promise<ModelEntry | null> {
    const target = await this.target(name);
    const { models } = await this.list();
    const listed = models.find(({ id }) => id === name);
    if (listed !== undefined) return listed;
    const { id } = this.#entryFor(target, models);
    const model = models.find((each) => each.id === id);
    return model === undefined ? null : aliasOf(name, model);
  }

  #entryFor(target: string, models: readonly ModelEntry[]): Pick<ModelEntry, 'id' | 'capabilities'> {
    const usual = target === defaultModelName ? models.find((model) => model.default) : undefined;
    const id = this.#router.canonical(target);
    return usual ?? models.find((model) => model.id === id) ?? { id };
  }

  async #joined(): Promise<ModelList> {
    const listed = this.#clis.map(async ({ cli, catalog }) => {
      const { models } = await soon(catalog(), namesOf(cli), this.#clock);
      return { cli, models };
    });
    const bodies = await Promise.all(listed);
    const { fallback, allowed, fault } = this.#router.choice;
    const isOffered = (id: string) => (allowed?.includes(id) ?? true) && (fault?.(id) ?? null) === null;
    const known = bodies.flatMap(({ models }) => models).filter(({ id }) => isOffered(id));
    const missing = (allowed ?? []).filter((name) => !known.some(({ id }) => id === name));
    const all = [...known, ...missing.map((id) => ({ id, name: id }))];
    const { cli, model } = this.#router.usual;
    const ofCli = bodies.find((body) => body.cli === cli)?.models.find((each) => each.default)?.id;
    const byDefault = (allowed === null && model === null ? ofCli : undefined) ?? fallback;
    const models = all.map((each) => ({ ...each, default: each.id === byDefault }));
    return { count: models.length, models };
  }

  #withOwnCapabilities({ capabilities: listed, ...model }: ModelEntry): ModelEntry {
    const { extras } = this.#router.split(model.id).cli.program;
    return extras === null ? model : { ...model, capabilities: capabilitiesOf({ capabilities: listed }, extras) };
  }

  async #hear(asked: ModelsOfCli): Promise<OwnModels> {
    const listed = await asked.list();
    asked.told = new Set(listed.map(({ id }) => this.#router.split(id).model ?? id));
    return asked.told;
  }

  /** What is chosen from at one of several. */
  #choiceOf(cli: ModelCli): ModelChoice {
    const { choice } = this.#router;
    const isOf = (name: string) => {
      const own = this.#router.split(name);
      return own.cli === cli && own.model !== null;
    };
    const own = cli.adapter.models?.map((model) => cli.publicName(model) ?? model) ?? null;
    const { fallback } = choice;
    return {
      fallback: fallback !== null && isOf(fallback) ? fallback : null,
      allowed: choice.allowed?.filter(isOf) ?? own,
      label: cli.publicName(null),
    };
  }
}

function withModel(request: JobRequest, model: string): JobRequest {
  return model === request.model ? request : { ...request, model };
}

async function listModels(cli: ModelCli): Promise<readonly ModelEntry[] | null> {
  const listed = await cli.program.listModels();
  return listed?.map((model) => ({ ...model, id: cli.publicName(model.id) ?? model.id })) ?? null;
}

/** What is listed of a CLI that is slow to tell. */
function namesOf({ name }: ModelCli): ModelList {
  return { count: 1, models: [{ id: name, name, default: false }] };
}

function aliasOf(name: string, { id, capabilities }: Pick<ModelEntry, 'id' | 'capabilities'>): ModelEntry {
  return { id: name, name, default: false, ...(capabilities && { capabilities }), alias_of: id };
}

/** One that is slow holds up nobody: it has told by the next time. */
function soon<T>(told: Promise<T>, instead: T, clock: Clock): Promise<T> {
  return Promise.race([told, delay(clock, listLimitMs).then(() => instead)]);
}
