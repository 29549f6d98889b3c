import type { Config } from '../../shared/config/config.js';
import { anyOther, defaultModelName, modelNamePattern } from '../../shared/config/values.js';
import type { JobRequest } from '../../shared/job.js';
import type { ModelCli } from './model-cli.js';
import {
  type AtLeastOne,
  type ModelChoice,
  modelChoice,
  modelFor,
  mustBeOneOf,
  type NamedAdapter,
  namedModel,
  narrowed,
  type OfferedModels,
} from './models.js';

/** A model as its CLI names it. */
export interface OwnModel<C> {
  readonly cli: C;
  /** null: the CLI's default. */
  readonly model: string | null;
}

/** Ids as the CLI itself has them. */
export type OwnModels = ReadonlySet<string>;

/**
 * Owns what the names of models mean. With one CLI, names are as it has them. With several, a name is the CLI and the
 * model, as in `codex/gpt-5`; those of the first CLI are known without it too; a CLI's name alone is its default.
 *
 * A name stands for, in this order: a model of its CLI, an alias, the name of the CLI and a model, the alias of every
 * other name. What is left is for the CLI to know. An alias is never resolved twice.
 */
export class ModelNames {
  /** The default first. */
  readonly clis: AtLeastOne<NamedAdapter>;
  readonly choice: ModelChoice;
  /** The model of a request that names none and whose client may name all, and its circuit. */
  readonly usual: OwnModel<NamedAdapter> & Pick<Route, 'circuit'>;
  readonly #only: NamedAdapter | null;
  readonly #aliases: ReadonlyMap<string, string>;
  /** Names that the operator gives to models, in their one spelling. */
  readonly #named: ReadonlySet<string>;

  constructor(config: Config, clis: AtLeastOne<NamedAdapter>) {
    const { allowedModels, defaultModel, modelAliases } = config;
    const given = (name: string) => this.given(name);
    this.clis = clis;
    this.#only = clis.length === 1 ? clis[0] : null;
    this.#aliases = new Map(modelAliases.map(({ name, target }) => [name, target]));
    const named = [...allowedModels, ...(defaultModel === null ? [] : [defaultModel])];
    const targets = modelAliases.map(({ target }) => target);
    this.#named = new Set([...named.filter((name) => !this.#aliases.has(name)), ...targets].map(given));
    const models = { allowedModels: allowedModels.map(given), defaultModel: defaultModel && given(defaultModel) };
    this.choice = this.#only === null ? this.#joinedChoice(models) : modelChoice(models, this.#only.adapter);
    const usual = this.split(this.choice.fallback);
    this.usual = { ...usual, circuit: this.#only === null ? (usual.model ?? '') : '' };
  }

  /** Whether each CLI reports what an answer costs. */
  get reportCosts(): boolean {
    return this.clis.every(({ adapter }) => adapter.reportsCost === true);
  }

  split(name: string | null): OwnModel<NamedAdapter> {
    if (this.#only !== null) return { cli: this.#only, model: name };
    const [first = '', ...rest] = name?.split('/') ?? [];
    const cli = this.clis.find((each) => each.name === first);
    return cli === undefined ? { cli: this.clis[0], model: name } : { cli, model: rest.join('/') || null };
  }

  /** What requests call a CLI's model; null for the default of the only CLI. */
  publicName(cli: Pick<NamedAdapter, 'name'>, model: string | null): string | null {
    if (this.#only !== null) return model;
    return model ? `${cli.name}/${model}` : cli.name;
  }

  /** What a name stands for that the operator gives: there, `*` has no effect. */
  given(name: string): string {
    const model = this.isModel(name) ? name : (this.#aliases.get(name) ?? this.#withoutCli(name) ?? name);
    return this.canonical(model);
  }

  /** The one spelling of a name. */
  canonical(name: string): string {
    const { cli, model } = this.split(name);
    return this.publicName(cli, model) ?? name;
  }

  /** Whether the CLI has to be asked for its models before `of` can say what the name stands for. */
  needsList(name: string): boolean {
    const { cli } = this.split(name);
    if (cli.adapter.models !== null) return false;
    const inner = this.#withoutCli(name);
    if (inner !== null) return this.#isReal(name) || !this.isModel(inner);
    if (this.#isReal(name)) return false;
    return this.#aliases.has(name) || (this.#aliases.has(anyOther) && !this.#namesCli(name));
  }

  /** What a name stands for that a request gives. `listed`: the models that its CLI lists. */
  of(name: string, listed: OwnModels = new Set()): string {
    const inner = this.#withoutCli(name);
    const isInner = inner !== null && listed.has(inner) && !listed.has(name); // though the name may have the form of a model
    if (!isInner && this.#isReal(name, listed)) return name;
    const known = this.#aliases.get(name) ?? inner;
    if (known !== null || this.#namesCli(name)) return known ?? name;
    return this.#aliases.get(anyOther) ?? name;
  }

  /** Whether a CLI is known to have a model of this name, without asking it. */
  isModel(name: string): boolean {
    const { cli, model } = this.split(name);
    const { models, modelForm } = cli.adapter;
    if (model === null) return true; // the name of one of several CLIs
    return models?.includes(model) === true || (modelForm !== undefined && model.search(modelForm) >= 0);
  }

  #isReal(name: string, listed: OwnModels = new Set()): boolean {
    const { model } = this.split(name);
    if (name === defaultModelName || this.isModel(name) || this.#named.has(this.canonical(name))) return true;
    return model !== null && listed.has(model);
  }

  /** With one CLI: the model that is named behind it; null where the CLI is not named. */
  #withoutCli(name: string): string | null {
    if (this.#only === null) return null;
    const cli = this.#only.name;
    if (name === cli) return defaultModelName;
    const model = name.startsWith(`${cli}/`) ? name.slice(cli.length + 1) : '';
    return modelNamePattern.test(model) ? model : null;
  }

  /** Whether one of several CLIs is named before the model, in the one spelling of this name. */
  #namesCli(name: string): boolean {
    return this.#only === null && this.canonical(name) === name;
  }

  /** With several CLIs, the default of the first one answers a request that names no model. */
  #joinedChoice({ allowedModels, defaultModel }: OfferedModels): ModelChoice {
    const canonical = (name: string) => this.canonical(name);
    const allowed = allowedModels.map(canonical);
    const fallback = canonical(defaultModel ?? allowed[0] ?? this.clis[0].name);
    return {
      fallback,
      allowed: allowed.length > 0 ? allowed : null,
      limitedBy: allowed.length > 0 ? 'MODEL_API_ALLOWED_MODELS' : undefined,
      label: fallback,
      canonical,
      fault: (name) => this.#faultOf(name),
    };
  }

  #faultOf(name: string): string | null {
    const { cli, model } = this.split(name);
    const { models, needsModel } = cli.adapter;
    if (model === null) return needsModel === true ? `must name a model of ${cli.name}, as in ${cli.name}/NAME` : null;
    if (!modelNamePattern.test(model)) return `must have a letter or a digit after ${cli.name}/`; // else it could pass for a flag
    if (models === null || models.includes(model)) return null;
    return `${mustBeOneOf} ${models.map((own) => this.publicName(cli, own)).join(', ')}`;
  }
}

/** Which CLI serves a job, and with which of its models: decided once, at its admission, and never worked out again. */
export interface Route<C = ModelCli> {
  readonly cli: C;
  /** As the CLI calls it; null: its default. */
  readonly adapterModel: string | null;
  /** As requests call it; null: the default of the only CLI. */
  readonly publicModel: string | null;
  /** What to call the model of an answer that names none. */
  readonly label: string | null;
  /** By which the breaker of the CLI knows the model. With one CLI, '' for jobs that name none. */
  readonly circuit: string;
}

/** Of a client's API key: the models that it may name; null: all. */
export type ModelsOf = (client: string) => readonly string[] | null;

/** Decides which CLI serves a request, and with which model. */
export class ModelRouter<C extends Pick<NamedAdapter, 'name'> = ModelCli> {
  readonly names: ModelNames;
  readonly #clis: AtLeastOne<C>;
  readonly #namedFor: ModelsOf;

  /** `clis`: those of `names`, in the same order. `namedFor`: the models as the API key names them. */
  constructor(names: ModelNames, clis: AtLeastOne<C>, namedFor: ModelsOf = () => null) {
    this.names = names;
    this.#clis = clis;
    this.#namedFor = namedFor;
  }

  /** The models that this client may name; null: it may name all. */
  modelsOf(client: string): readonly string[] | null {
    return this.#namedFor(client)?.map((name) => this.names.given(name)) ?? null;
  }

  split(name: string | null): OwnModel<C> {
    const { cli, model } = this.names.split(name);
    return { cli: this.#clis[this.names.clis.indexOf(cli)] ?? this.#clis[0], model };
  }

  /** Where a request goes, whether its client may name the model or not. */
  route({ model, client }: Pick<JobRequest, 'model' | 'client'>): Route<C> {
    const { choice, usual } = this.names;
    const own = this.#choiceOf(client);
    const named = namedModel(model, own);
    const publicModel = named ?? own.fallback;
    const { cli, model: adapterModel } = this.split(publicModel);
    const isUsual = named === null && publicModel === choice.fallback;
    const circuit = isUsual ? usual.circuit : (adapterModel ?? '');
    return { cli, adapterModel, publicModel, label: publicModel ?? choice.label, circuit };
  }

  /** Throws `validation_error` for a model that the client may not name. */
  check({ model, client }: Pick<JobRequest, 'model' | 'client'>): void {
    modelFor(model, this.#choiceOf(client));
  }

  #choiceOf(client: string): ModelChoice {
    return narrowed(this.names.choice, this.modelsOf(client));
  }
}
