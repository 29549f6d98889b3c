import type { ModelCapabilities } from '../../shared/api/models.js';
import type { Config } from '../../shared/config/config.js';
import type { FeatureVariables, ValuesOf } from '../../shared/config/feature-variables.js';
import { defaultModelName } from '../../shared/config/values.js';
import { invalid } from '../../shared/errors.js';
import {
  allEfforts,
  type Effort,
  efforts,
  isDocument,
  type JobRequest,
  type OptionalWish,
  optionalWishes,
  type ToolOffer,
} from '../../shared/job.js';
import { hasCitations } from '../../shared/text/turns.js';
import type { Adapter, Capabilities, ModelEntry } from './contract/adapter.js';

export type AtLeastOne<T> = readonly [T, ...T[]];

/** Adapter with the name of its CLI. */
export interface NamedAdapter {
  readonly name: string;
  readonly adapter: Adapter;
}

/** Models that requests may choose from, and the default. */
export interface ModelChoice {
  /** Model of a request that names no model; null leaves the choice to the CLI. */
  readonly fallback: string | null;
  /** Models that a request may name; null allows any. */
  readonly allowed: readonly string[] | null;
  /** Setting by which the operator has limited the models. */
  readonly limitedBy?: string | undefined;
  /** Name of the model in an answer that does not report it. */
  readonly label: string | null;
  /** Returns the canonical spelling of a model's name. If absent, each name has one spelling. */
  readonly canonical?: (name: string) => string;
  /** Returns why the CLI of a model cannot run it; null if no reason is known. */
  readonly fault?: (name: string) => string | null;
}

/** Models in the configuration. */
export type OfferedModels = Pick<Config, 'defaultModel' | 'allowedModels'>;

/** Models of the configuration, for the checks at the start. */
export interface ConfiguredModels {
  /** Returns why no request could use the model, or that its CLI has no such account; null if no fault is known. */
  faultOf(model: string, account: string | null): string | null;
}

/** Part of a feature that checks the models in its variables. */
export interface ModelsCheck<V extends FeatureVariables = FeatureVariables> {
  /** Returns the faults of these models. They prevent the start. */
  findModelFaults?(values: ValuesOf<V>, models: ConfiguredModels): readonly string[];
}

/** Start of an error text, before the list of valid names. */
export const mustBeOneOf = 'must be one of';

/** Returns the choice of models for a single CLI. */
export function modelChoice({ defaultModel, allowedModels }: OfferedModels, adapter: Adapter): ModelChoice {
  const fallback = defaultModel ?? allowedModels[0] ?? null;
  return {
    fallback,
    allowed: allowedModels.length > 0 ? allowedModels : withDefault(adapter.models, defaultModel),
    limitedBy: allowedModels.length > 0 ? 'MODEL_API_ALLOWED_MODELS' : undefined,
    label: fallback ?? adapter.models?.[0] ?? null,
  };
}

/** Adds the default model, which a request may also name explicitly. */
function withDefault(models: readonly string[] | null, defaultModel: string | null): readonly string[] | null {
  return models === null || defaultModel === null ? models : [...new Set([...models, defaultModel])];
}

/**
 * Returns the choice of a client that may name only these models; null allows all. The first of them replaces a default
 * that is not among them.
 */
export function narrowed(choice: ModelChoice, named: readonly string[] | null): ModelChoice {
  if (named === null) return choice;
  const clientModels = choice.canonical === undefined ? named : named.map(choice.canonical);
  const allowed = clientModels.filter((model) => choice.allowed?.includes(model) ?? true);
  const keepsDefault = choice.fallback !== null && allowed.includes(choice.fallback);
  return {
    ...choice,
    allowed,
    limitedBy: 'the models of its API key',
    fallback: keepsDefault ? choice.fallback : (allowed[0] ?? null),
  };
}

/** Returns the canonical name of the requested model; null for no name or `default`, unless a model has that name. */
export function namedModel(given: string | null, { allowed, canonical = (name) => name }: ModelChoice): string | null {
  if (given === null) return null;
  const named = canonical(given);
  return given === defaultModelName && allowed?.includes(named) !== true ? null : named;
}

/**
 * Returns the model to run for a request; null leaves the choice to the CLI. Throws `validation_error` for a model that
 * is not allowed.
 */
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

/**
 * Returns the feature that a request needs and the program lacks; null if there is none. `canSearch`: whether jobs of
 * this program may search the web.
 */
export function unsupported(
  extras: Capabilities,
  request: JobRequest,
  canSearch: boolean,
): 'images' | 'effort' | 'search' | null {
  const messages = [request, ...request.history];
  const hasImages =
    request.earlier?.hasImages === true || messages.some(({ images = [] }) => images.some((each) => !isDocument(each)));
  if (extras.image === undefined && hasImages) return 'images';
  if (request.search !== undefined && !canSearch) return 'search';
  return request.isEffortNeeded && request.effort !== null && extras.effort === undefined ? 'effort' : null;
}

/**
 * Returns the effort that the program gets: the requested one if the model has it, else the next lower one, else its
 * lowest. Returns null if the program or the model has none.
 */
export function fittingEffort(
  effort: Effort | null,
  { effort: encode, rulesOf }: Pick<Capabilities, 'effort' | 'rulesOf'>,
  model: string | null,
): Effort | null {
  if (effort === null || encode === undefined) return null;
  const levels: readonly Effort[] = rulesOf?.(model).efforts ?? efforts;
  const lower = allEfforts.slice(0, allEfforts.indexOf(effort) + 1);
  return levels.findLast((level) => lower.includes(level)) ?? levels[0] ?? null;
}

/**
 * Whether the relay emulates tool calls with a schema, because the program cannot call tools or cannot force a call.
 */
export function isEmulated(extras: Pick<Capabilities, 'tools' | 'toolChoice'>, { choice }: ToolOffer): boolean {
  if (choice === 'none') return false;
  return extras.tools === undefined || (choice !== 'auto' && extras.toolChoice !== true);
}

/** Whether the program gets the turn without the tools of the request, and their results as text. */
export function dropsTools(extras: Capabilities, offer: ToolOffer): boolean {
  return isEmulated(extras, offer) || (offer.choice === 'none' && extras.toolChoice !== true);
}

/**
 * Returns the optional fields of a request that the program ignores; empty if the program is not known yet. A program
 * with one call at a time satisfies `isParallel: false` in any case.
 */
export function ignoredWishes(
  { offer, cache, sampling = {}, ...request }: JobRequest,
  extras: Pick<Capabilities, 'tools' | 'toolChoice' | 'wishes'> | null,
): OptionalWish[] {
  if (extras === null) return [];
  const isSingle = offer?.isParallel === false && extras.tools === 'parallel';
  const cites = hasCitations([request, ...request.history]);
  const isEmulating = offer !== undefined && isEmulated(extras, offer); // the text is then part of a JSON value
  const wanted = { ...sampling, cache, isParallel: isSingle || undefined, citations: cites || undefined };
  const supported = (extras.wishes ?? []).filter((wish) => wish !== 'citations' || !isEmulating);
  return optionalWishes.filter((wish) => wanted[wish] !== undefined && !supported.includes(wish));
}

/** Returns what the program can do, except what its list denies for this model. `added`: capabilities by features. */
export function capabilitiesOf(
  { capabilities }: Pick<ModelEntry, 'capabilities'>,
  extras: Capabilities,
  added: Partial<ModelCapabilities>,
  model: string | null = null,
): ModelCapabilities {
  const { images = true, effort = true } = capabilities ?? {};
  const { thinking: types = null, efforts: levels } = extras.rulesOf?.(model) ?? {};
  return {
    schema: extras.schema !== undefined,
    sampling: false,
    images: images && extras.image !== undefined,
    pdf: false,
    ...added,
    effort: effort && extras.effort !== undefined,
    citations: extras.wishes?.includes('citations') === true,
    ...(types !== null && { thinking_types: [...types] }),
    ...(levels !== undefined && { efforts: [...levels] }),
    thinking: extras.thoughts === true || (effort && extras.effort !== undefined),
  };
}
