import type { ModelList } from '../../shared/api/models.js';
import { cached } from '../../shared/async/shared-calls.js';
import type { Clock } from '../../shared/clock.js';
import type { Config } from '../../shared/config/config.js';
import { defaultModelName } from '../../shared/config/model-aliases.js';
import { modelNamePattern } from '../../shared/config/values.js';
import { invalid } from '../../shared/errors.js';
import type { Adapter, ModelEntry } from './contract/adapter.js';
import type { OwnModel } from './model-names.js';

export type AtLeastOne<T> = readonly [T, ...T[]];

/** An adapter with the name of its CLI. */
export interface NamedAdapter {
  readonly name: string;
  readonly adapter: Adapter;
}

/** Which models there are to choose from, and which one answers a request that names none. */
export interface ModelChoice {
  /** The model of a request that names none; null leaves it to the CLI. */
  readonly fallback: string | null;
  /** The models that a request may name; null allows any. */
  readonly allowed: readonly string[] | null;
  /** What the operator has set these limits with. */
  readonly limitedBy?: string | undefined;
  /** What to call the model of an answer that doesn't say. */
  readonly label: string | null;
  /** The one spelling of a model's name; without it, each name has one. */
  readonly canonical?: (name: string) => string;
  /** Why the CLI of a model can't run it; null where it may. */
  readonly fault?: (name: string) => string | null;
}

/** The models that the operator names. */
type OfferedModels = Pick<Config, 'defaultModel' | 'allowedModels'>;

/** How the names of what there is follow. */
export const mustBeOneOf = 'must be one of';

/** Where there is one CLI. */
export function modelChoice({ defaultModel, allowedModels }: OfferedModels, adapter: Adapter): ModelChoice {
  const fallback = defaultModel ?? allowedModels[0] ?? null;
  return {
    fallback,
    allowed: allowedModels.length > 0 ? allowedModels : withDefault(adapter.models, defaultModel),
    limitedBy: allowedModels.length > 0 ? 'MODEL_API_ALLOWED_MODELS' : undefined,
    label: fallback ?? adapter.models?.[0] ?? null,
  };
}

/** How the names of models are taken apart, and made. */
interface Names<C extends NamedAdapter> {
  canonical(name: string): string;
  split(name: string): OwnModel<C>;
  publicName(cli: C, model: string): string | null;
}

/** Where there are several CLIs. The default of the first one answers a request that names no model. */
export function joinedChoice<C extends NamedAdapter>(config: OfferedModels, first: C, names: Names<C>): ModelChoice {
  const canonical = (name: string) => names.canonical(name);
  const allowed = config.allowedModels.map(canonical);
  const fallback = canonical(config.defaultModel ?? allowed[0] ?? first.name);
  return {
    fallback,
    allowed: allowed.length > 0 ? allowed : null,
    limitedBy: allowed.length > 0 ? 'MODEL_API_ALLOWED_MODELS' : undefined,
    label: fallback,
    canonical,
    fault: (name) => {
      const { cli, model } = names.split(name);
      const { models, needsModel } = cli.adapter;
      if (model === null)
        return needsModel === true ? `must name a model of ${cli.name}, as in ${cli.name}/NAME` : null;
      if (!modelNamePattern.test(model)) return `must have a letter or a digit after ${cli.name}/`; // else it could pass for a flag
      if (models?.includes(model) ?? true) return null;
      return `${mustBeOneOf} ${models?.map((own) => names.publicName(cli, own)).join(', ')}`;
    },
  };
}

/** A request may also name the model that answers when none is named. */
function withDefault(models: readonly string[] | null, defaultModel: string | null): readonly string[] | null {
  return models === null || defaultModel === null ? models : [...new Set([...models, defaultModel])];
}

/** The choice of a client that may name these models only; null: that may name all. Its first one stands in for a default that is not among them. */
export function narrowed(choice: ModelChoice, named: readonly string[] | null): ModelChoice {
  if (named === null) return choice;
  const own = choice.canonical === undefined ? named : named.map(choice.canonical);
  const allowed = own.filter((model) => choice.allowed?.includes(model) ?? true);
  const keepsDefault = choice.fallback !== null && allowed.includes(choice.fallback);
  return {
    ...choice,
    allowed,
    limitedBy: 'the models of its API key',
    fallback: keepsDefault ? choice.fallback : (allowed[0] ?? null),
  };
}

/** The model that a request names, in its one spelling; null for `default` too, unless a model is called so. */
export function namedModel(given: string | null, { allowed, canonical = (name) => name }: ModelChoice): string | null {
  if (given === null) return null;
  const named = canonical(given);
  return given === defaultModelName && allowed?.includes(named) !== true ? null : named;
}

/** The model to run for a request that names this one, or none. Throws `validation_error` for one that is not allowed. */
export function modelFor(given: string | null, choice: ModelChoice): string | null {
  const { allowed, fallback, limitedBy, fault } = choice;
  const named = namedModel(given, choice);
  if (allowed?.length === 0) throw invalid('model', 'MODEL_API_ALLOWED_MODELS has none of the models of this API key');
  if (named !== null && allowed !== null && !allowed.includes(named)) {
    throw invalid('model', `${mustBeOneOf} ${allowed.join(', ')}${limitedBy === undefined ? '' : ` (${limitedBy})`}`);
  }
  const model = named ?? fallback;
  const wrong = model === null ? null : (fault?.(model) ?? null);
  if (wrong !== null) throw invalid('model', wrong);
  return model;
}

/** A CLI that was updated may know other models. */
const maxAgeMs = 10 * 60_000;
/** Anybody may ask for the list: a CLI that fails is not started again for each of them. */
const retryMs = 5000;

/** Has a CLI tell of its models, now and then; none where it cannot tell. */
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
 * Lists what a request may name; one of them is the default. `ask` has the CLI tell of its models: where the models are
 * configured, that only adds details.
 */
export function modelCatalog(ask: () => Promise<readonly ModelEntry[] | null>, choice: ModelChoice, clock: Clock) {
  return catalogOf(modelLister(ask, clock), choice);
}

/** The same, of what a CLI lists. */
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
