import type { Config } from '../../shared/config/config.js';
import type { JobRequest } from '../../shared/job.js';
import { ModelNames } from './model-names.js';
import { joinedChoice, type ModelChoice, modelChoice, type NamedAdapter, namedModel, narrowed } from './models.js';

export type AtLeastOne<T> = readonly [T, ...T[]];

/** A model as its CLI knows it. */
export interface OwnModel {
  /** The place of the CLI among those of the service. */
  readonly index: number;
  /** null: the CLI's default. */
  readonly model: string | null;
}

/** Of a client's API key: the models that it may name; null: all. */
export type ModelsOf = (client: string) => readonly string[] | null;

/**
 * Which CLI the name of a model belongs to. With one CLI, names are as it has them. With several, they are its name and
 * the model's, as in `codex/gpt-5`; those of the first one are known without its name too; a CLI's name alone is its default.
 */
export class ModelRouter {
  readonly choice: ModelChoice;
  readonly names: ModelNames;
  /** The names of all. */
  readonly clis: readonly string[];
  readonly #namedFor: ModelsOf;

  /** `namedFor`: the models as the API key names them. */
  constructor(config: Config, clis: AtLeastOne<NamedAdapter>, namedFor: ModelsOf = () => null) {
    this.clis = clis.map(({ name }) => name);
    this.#namedFor = namedFor;
    const { allowedModels, defaultModel, modelAliases } = config;
    const named = [...allowedModels, ...(defaultModel === null ? [] : [defaultModel])];
    this.names = new ModelNames(modelAliases, named, clis, this);
    const given = (name: string) => this.names.given(name);
    const models = { allowedModels: allowedModels.map(given), defaultModel: defaultModel && given(defaultModel) };
    this.choice = this.isPlain ? modelChoice(models, clis[0].adapter) : joinedChoice(models, clis, this);
  }

  /** The models that this client may name; null: it may name all. */
  modelsOf(client: string): readonly string[] | null {
    return this.#namedFor(client)?.map((name) => this.names.given(name)) ?? null;
  }

  /** Whether there is but one CLI. */
  get isPlain(): boolean {
    return this.clis.length === 1;
  }

  /** The one spelling of a name. */
  canonical(name: string): string {
    const { index, model } = this.split(name);
    return this.publicName(index, model) ?? name;
  }

  split(name: string | null): OwnModel {
    if (name === null || this.isPlain) return { index: 0, model: name };
    const slash = name.indexOf('/');
    const index = this.clis.indexOf(slash < 0 ? name : name.slice(0, slash));
    if (index < 0) return { index: 0, model: name };
    return { index, model: slash < 0 ? null : name.slice(slash + 1) || null };
  }

  /** What requests call a CLI's model; null for the default of the only CLI. */
  publicName(index: number, model: string | null): string | null {
    if (this.isPlain) return model;
    const cli = this.clis[index] ?? null;
    return model === null ? cli : `${cli}/${model}`;
  }

  /** The name of the CLI of a request. */
  cliOf(request: Pick<JobRequest, 'model' | 'client'>): string {
    return this.clis[this.route(request).index] ?? '';
  }

  /** Where a request goes that may not have been checked yet. With one CLI, its default has no name. */
  route({ model, client }: Pick<JobRequest, 'model' | 'client'>): OwnModel {
    const choice = narrowed(this.choice, this.modelsOf(client));
    const given = namedModel(model, choice);
    const named = given ?? choice.fallback;
    const isDefault = this.isPlain && given === null && named === this.choice.fallback;
    return this.split(isDefault ? null : named);
  }
}
