import type { ClientText } from '../../shared/client.js';
import type { Config } from '../../shared/config/config.js';
import { anthropicPrefix, anyOther, defaultModelName, modelNamePattern } from '../../shared/config/values.js';
import { RelayError } from '../../shared/errors.js';
import type { JobRequest } from '../../shared/job.js';
import { chainId } from '../../shared/text/chain.js';
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

/** Model by the name that its CLI uses. */
export interface OwnModel<C> {
  readonly cli: C;
  /** Name of the model; null for the default model of the CLI. */
  readonly model: string | null;
}

/** Names of models as the CLI itself lists them. */
export type OwnModels = ReadonlySet<string>;

/**
 * Resolves names of models. With one CLI, names are as the CLI lists them. With several, a name consists of the CLI and
 * the model, as in `claude/opus`; models of the first CLI also have short names; a CLI's name alone means its default.
 * A name is resolved in this order: model of its CLI, alias, name of the CLI with a model, alias `*` for all other
 * names. Any other name is passed to the CLI. An alias is never resolved twice.
 */
export class ModelNames {
  /** CLIs, the default first. */
  readonly clis: AtLeastOne<NamedAdapter>;
  readonly choice: ModelChoice;
  /** Model of a request without a model, for a client without limits, and its circuit. */
  readonly defaultRoute: OwnModel<NamedAdapter> & Pick<Route, 'circuit'>;
  readonly #only: NamedAdapter | null;
  readonly #aliases: ReadonlyMap<string, string>;
  /** Canonical names of models in the configuration. */
  readonly #named: ReadonlySet<string>;

  constructor(config: Config, clis: AtLeastOne<NamedAdapter>) {
    const { allowedModels, defaultModel, modelAliases } = config;
    const resolveConfigured = (name: string) => this.resolveConfigured(name);
    this.clis = clis;
    this.#only = clis.length === 1 ? clis[0] : null;
    this.#aliases = new Map(modelAliases.map(({ name, target }) => [name, target]));
    const named = [...allowedModels, ...(defaultModel === null ? [] : [defaultModel])];
    const targets = modelAliases.map(({ target }) => target);
    this.#named = new Set([...named.filter((name) => !this.#aliases.has(name)), ...targets].map(resolveConfigured));
    const models = {
      allowedModels: allowedModels.map(resolveConfigured),
      defaultModel: defaultModel && resolveConfigured(defaultModel),
    };
    this.choice = this.#only === null ? this.#joinedChoice(models) : modelChoice(models, this.#only.adapter);
    const fallback = this.split(this.choice.fallback);
    this.defaultRoute = { ...fallback, circuit: this.#only === null ? (fallback.model ?? '') : '' };
  }

  /** Whether every CLI reports the cost of answers. */
  get reportCosts(): boolean {
    return this.clis.every(({ adapter }) => adapter.reportsCost === true);
  }

  split(name: string | null): OwnModel<NamedAdapter> {
    if (this.#only !== null) return { cli: this.#only, model: name };
    const [first = '', ...rest] = name?.split('/') ?? [];
    const cli = this.clis.find((each) => each.name === first);
    return cli === undefined ? { cli: this.clis[0], model: name } : { cli, model: rest.join('/') || null };
  }

  /** Returns the public name of a CLI's model; null for the default of the only CLI. */
  publicName(cli: Pick<NamedAdapter, 'name'>, model: string | null): string | null {
    if (this.#only !== null) return model;
    return model ? `${cli.name}/${model}` : cli.name;
  }

  /** Resolves a name in the configuration, where the alias `*` does not apply. */
  resolveConfigured(name: string): string {
    const model = this.isModel(name) ? name : (this.#aliases.get(name) ?? this.#withoutCli(name) ?? name);
    return this.canonical(model);
  }

  /** Returns the canonical spelling of a name. */
  canonical(name: string): string {
    const { cli, model } = this.split(name);
    return this.publicName(cli, model) ?? name;
  }

  /** Whether `resolveName` needs the CLI's list of models to resolve the name. */
  needsList(name: string): boolean {
    const { cli } = this.split(name);
    if (cli.adapter.models !== null) return false;
    const shown = this.#withoutPrefix(name);
    if (shown !== null) return true;
    const inner = this.#withoutCli(name);
    if (inner !== null) return this.#isReal(name) || !this.isModel(inner);
    if (this.#isReal(name)) return false;
    return this.#aliases.has(name) || (this.#aliases.has(anyOther) && !this.#namesCli(name));
  }

  /** Resolves the name in a request. `listed`: models that its CLI lists. */
  resolveName(name: string, listed: OwnModels = new Set()): string {
    const inner = this.#withoutCli(name);
    const isInner = inner !== null && listed.has(inner) && !listed.has(name); // the name may look like a model
    if (!isInner && this.#isReal(name, listed)) return name;
    const known = this.#aliases.get(name) ?? inner;
    if (known !== null || this.#namesCli(name)) return known ?? name;
    const shown = this.#withoutPrefix(name);
    if (shown !== null && this.#isKnown(shown, listed)) return this.resolveName(shown, listed);
    return this.#aliases.get(anyOther) ?? name;
  }

  /** Whether a CLI has a model of this name, as far as its adapter knows without asking the CLI for its models. */
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

  /** Whether the name stands for a certain model, instead of being passed to a CLI as it is. */
  #isKnown(name: string, listed: OwnModels): boolean {
    const isNamed = this.#aliases.has(name) || this.#withoutCli(name) !== null || this.#namesCli(name);
    return isNamed || this.#isReal(name, listed);
  }

  /** Returns the model whose id clients of Anthropic's API see with a prefix; null for a name without the prefix. */
  #withoutPrefix(name: string): string | null {
    const model = name.startsWith(anthropicPrefix) ? name.slice(anthropicPrefix.length) : '';
    return modelNamePattern.test(model) ? model : null;
  }

  /** With one CLI, returns the model after the CLI's name; null if the name does not contain the CLI. */
  #withoutCli(name: string): string | null {
    if (this.#only === null) return null;
    const cli = this.#only.name;
    if (name === cli) return defaultModelName;
    const model = name.startsWith(`${cli}/`) ? name.slice(cli.length + 1) : '';
    return modelNamePattern.test(model) ? model : null;
  }

  /** Whether a name contains one of several CLIs, and is in canonical spelling. */
  #namesCli(name: string): boolean {
    return this.#only === null && this.canonical(name) === name;
  }

  /** Returns the choice of models for several CLIs. The default of the first CLI answers requests without a model. */
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
    // The program could take another name for a flag.
    if (!modelNamePattern.test(model)) return `must have a letter or a digit after ${cli.name}/`;
    if (models === null || models.includes(model)) return null;
    return `${mustBeOneOf} ${models.map((own) => this.publicName(cli, own)).join(', ')}`;
  }
}

/** CLI and model of a job, decided once at its admission. */
export interface Route<C = ModelCli> {
  readonly cli: C;
  /** Model by the CLI's name; null for its default. */
  readonly adapterModel: string | null;
  /** Model by its public name; null for the default of the only CLI. */
  readonly publicModel: string | null;
  /** Name of the model in an answer that does not report it. */
  readonly label: string | null;
  /** Key of the model at the CLI's breaker. With one CLI, '' for jobs without a model. */
  readonly circuit: string;
  /** The only account that may serve the job; null if any account of the client may serve the job. */
  readonly account: string | null;
  /** Why this account was chosen, as the end of a sentence after *because*; missing if the CLI has only one. */
  readonly accountReason?: string;
}

/** Job as the choice of its account sees it. */
export interface AccountJob {
  readonly client: ClientText;
  /** Returns the id under which a process may wait for the job; null if none can. */
  readonly sessionId: () => string | null;
  /** Circuit of its route. */
  readonly circuit: string;
  /** Name of the only account to choose; null for any. */
  readonly account: string | null;
}

/** Chooses the account of a job among those of its CLI. */
export interface AccountChooser<C> {
  /** Variable that decides which accounts serve a client, for error messages. */
  readonly variable: string;
  /** Returns null if no account of the CLI may serve the client. Has no other effect. `reason`: see `Route`. */
  choose(cli: C, job: AccountJob): { readonly cli: C; readonly reason?: string } | null;
  /** Records that an account has got a job. */
  recordJob?(cli: C, job: AccountJob): void;
}

/** Parts of a request that decide its route. */
export type RoutedRequest = Pick<JobRequest, 'model' | 'client'> &
  Partial<Pick<JobRequest, 'conversationId' | 'chain'>>;

/** Options of a client's API key that limit its routes. */
export interface RouteOptions {
  /** Models that the client may name; null for all. */
  readonly models: readonly string[] | null;
  /** Further lists of models, each of which must have the named one. */
  readonly groupModels?: readonly (readonly string[])[];
}
const anyRoute: RouteOptions = { models: null };

/** Decides which CLI, account and model serve a request. */
export class ModelRouter<C extends Pick<NamedAdapter, 'name'> = ModelCli> {
  readonly names: ModelNames;
  readonly #clis: AtLeastOne<C>;
  readonly #optionsOf: (client: ClientText) => RouteOptions;
  readonly #accounts: AccountChooser<C>;

  /** `clis`: in the order of `names`, with the login of the service. Without `accounts`, each has only this one. */
  constructor(
    names: ModelNames,
    clis: AtLeastOne<C>,
    optionsOf: (client: ClientText) => RouteOptions = () => anyRoute,
    accounts: AccountChooser<C> = { variable: '', choose: (cli) => ({ cli }) },
  ) {
    this.names = names;
    this.#clis = clis;
    this.#optionsOf = optionsOf;
    this.#accounts = accounts;
  }

  /** Returns the models that this client may name; null for all. */
  modelsOf(client: ClientText): readonly string[] | null {
    const { models, groupModels = [] } = this.#optionsOf(client);
    const lists = [...(models === null ? [] : [models]), ...groupModels];
    const [first = null, ...others] = lists.map((names) => names.map((name) => this.names.resolveConfigured(name)));
    return first?.filter((name) => others.every((other) => other.includes(name))) ?? null;
  }

  split(name: string | null): OwnModel<C> {
    const { cli, model } = this.names.split(name);
    return { cli: this.#clis[this.names.clis.indexOf(cli)] ?? this.#clis[0], model };
  }

  /** Returns the route of a request, even if its client may not name the model, or may use no account of its CLI. */
  route(request: RoutedRequest): Route<C> {
    const route = this.#routeTo(request.model, this.#choiceOf(request.client), null);
    return this.withAccount(route, request) ?? route;
  }

  /**
   * Returns the route to another model for a request; null if its client may not use the model or the account.
   * `account`: the only account that may serve the request; null for any.
   */
  findRoute(model: string, account: string | null, request: RoutedRequest): Route<C> | null {
    const choice = this.#choiceOf(request.client);
    return isUsable(model, choice) ? this.withAccount(this.#routeTo(model, choice, account), request) : null;
  }

  /** Throws `validation_error` if the client may not name the model. */
  checkModel(model: string | null, client: ClientText): void {
    modelFor(model, this.#choiceOf(client));
  }

  #routeTo(name: string | null, choice: ModelChoice, account: string | null): Route<C> {
    const { choice: all, defaultRoute } = this.names;
    const named = namedModel(name, choice);
    const publicModel = named ?? choice.fallback;
    const { cli, model: adapterModel } = this.split(publicModel);
    const isDefault = named === null && publicModel === all.fallback;
    const circuit = isDefault ? defaultRoute.circuit : (adapterModel ?? '');
    return { cli, adapterModel, publicModel, label: publicModel ?? all.label, circuit, account };
  }

  /** Returns the route with the account that is right at present; null if no account may serve the client. */
  withAccount(route: Route<C>, request: RoutedRequest): Route<C> | null {
    const choice = this.#accounts.choose(route.cli, this.#accountJob(route, request));
    if (choice === null) return null;
    const { cli, reason: accountReason } = choice;
    if (cli === route.cli && accountReason === route.accountReason) return route;
    return { ...route, cli, ...(accountReason !== undefined && { accountReason }) };
  }

  /** Records that a job has this route. */
  recordJob(route: Route<C>, request: RoutedRequest): void {
    this.#accounts.recordJob?.(route.cli, this.#accountJob(route, request));
  }

  /**
   * Throws `forbidden` if no account of the requested model's CLI serves this client. The caller has checked that the
   * client may name the model.
   */
  checkAccount(request: RoutedRequest): void {
    const name = modelFor(request.model, this.#choiceOf(request.client));
    const { cli } = this.split(name);
    const route = { circuit: '', publicModel: name, account: null };
    if (this.#accounts.choose(cli, this.#accountJob(route, request)) === null)
      throw new RelayError('forbidden', `no account of ${cli.name} serves this client (${this.#accounts.variable})`);
  }

  #accountJob(
    { circuit, publicModel, account }: Pick<Route<C>, 'circuit' | 'publicModel' | 'account'>,
    { client, conversationId = null, chain = null }: RoutedRequest,
  ): AccountJob {
    const sessionId = () => conversationId ?? (chain && chainId(chain.before, client, publicModel));
    return { client, sessionId, circuit, account };
  }

  #choiceOf(client: ClientText): ModelChoice {
    return narrowed(this.names.choice, this.modelsOf(client));
  }
}

/** Whether a client with this choice may name the model. */
function isUsable(name: string, choice: ModelChoice): boolean {
  try {
    modelFor(name, choice);
    return true;
  } catch {
    return false;
  }
}
