import type { Config } from '../../shared/config/config.js';
import type { JobRequest } from '../../shared/job.js';
import type { ModelCli } from './model-cli.js';
import { ModelNames, type OwnModel, type Spelling, spellingOf } from './model-names.js';
import {
  type AtLeastOne,
  joinedChoice,
  type ModelChoice,
  modelChoice,
  modelFor,
  type NamedAdapter,
  namedModel,
  narrowed,
} from './models.js';

/** Which CLI serves a job, and with which of its models: decided once, at its admission, and never worked out again. */
export interface Route<C = ModelCli> {
  readonly cli: C;
  /** As the CLI calls it; null: its default. */
  readonly adapterModel: string | null;
  /** As requests call it; null: the default of the only CLI. */
  readonly publicModel: string | null;
  /** What to call the model of an answer that does not say. */
  readonly label: string | null;
  /** By which the breaker of the CLI knows the model. With one CLI, '' for jobs that name none. */
  readonly circuit: string;
}

/** Of a client's API key: the models that it may name; null: all. */
export type ModelsOf = (client: string) => readonly string[] | null;

/** Decides which CLI the name of a model belongs to, and which one serves a request. */
export class ModelRouter<C extends NamedAdapter = ModelCli> {
  readonly choice: ModelChoice;
  readonly names: ModelNames;
  /** What a request is run with that names no model, and whose client may name all. */
  readonly usual: OwnModel<C> & Pick<Route, 'circuit'>;
  readonly #spelling: Spelling<C>;
  readonly #namedFor: ModelsOf;

  /** `namedFor`: the models as the API key names them. */
  constructor(config: Config, clis: AtLeastOne<C>, namedFor: ModelsOf = () => null) {
    this.#spelling = spellingOf(clis);
    this.#namedFor = namedFor;
    const { allowedModels, defaultModel, modelAliases } = config;
    const named = [...allowedModels, ...(defaultModel === null ? [] : [defaultModel])];
    this.names = new ModelNames(modelAliases, named, this.#spelling);
    const given = (name: string) => this.names.given(name);
    const models = { allowedModels: allowedModels.map(given), defaultModel: defaultModel && given(defaultModel) };
    const isOne = clis.length === 1;
    this.choice = isOne ? modelChoice(models, clis[0].adapter) : joinedChoice(models, clis[0], this);
    const usual = this.split(this.choice.fallback);
    this.usual = { ...usual, circuit: isOne ? '' : (usual.model ?? '') };
  }

  /** The models that this client may name; null: it may name all. */
  modelsOf(client: string): readonly string[] | null {
    return this.#namedFor(client)?.map((name) => this.names.given(name)) ?? null;
  }

  /** The one spelling of a name. */
  canonical(name: string): string {
    return this.names.canonical(name);
  }

  split(name: string | null): OwnModel<C> {
    return this.#spelling.split(name);
  }

  /** What requests call a CLI's model; null for the default of the only CLI. */
  publicName(cli: C, model: string | null): string | null {
    return this.#spelling.publicName(cli, model);
  }

  /** Where a request goes, whether its model may be named or not. */
  route({ model, client }: Pick<JobRequest, 'model' | 'client'>): Route<C> {
    const choice = this.#choiceOf(client);
    const named = namedModel(model, choice);
    const publicModel = named ?? choice.fallback;
    const { cli, model: adapterModel } = this.split(publicModel);
    const isUsual = named === null && publicModel === this.choice.fallback;
    const circuit = isUsual ? this.usual.circuit : (adapterModel ?? '');
    return { cli, adapterModel, publicModel, label: publicModel ?? this.choice.label, circuit };
  }

  /** Throws `validation_error` for a model that the client may not name. */
  check({ model, client }: Pick<JobRequest, 'model' | 'client'>): void {
    modelFor(model, this.#choiceOf(client));
  }

  #choiceOf(client: string): ModelChoice {
    return narrowed(this.choice, this.modelsOf(client));
  }
}
