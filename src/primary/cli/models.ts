import type { ModelCapabilities } from '../../shared/api/models.js';
import type { Config } from '../../shared/config/config.js';
import { defaultModelName } from '../../shared/config/values.js';
import { invalid } from '../../shared/errors.js';
import { type JobRequest, type OptionalWish, optionalWishes, type ToolOffer } from '../../shared/job.js';
import type { Adapter, Capabilities, ModelEntry } from './contract/adapter.js';

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

/** The models that the configuration names. */
export type OfferedModels = Pick<Config, 'defaultModel' | 'allowedModels'>;

/** How the names of what there is follow. */
export const mustBeOneOf = 'must be one of';

/** With one CLI. */
export function modelChoice({ defaultModel, allowedModels }: OfferedModels, adapter: Adapter): ModelChoice {
  const fallback = defaultModel ?? allowedModels[0] ?? null;
  return {
    fallback,
    allowed: allowedModels.length > 0 ? allowedModels : withDefault(adapter.models, defaultModel),
    limitedBy: allowedModels.length > 0 ? 'MODEL_API_ALLOWED_MODELS' : undefined,
    label: fallback ?? adapter.models?.[0] ?? null,
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

/** What a request needs beside its text and the program can't take; else null. */
export function unsupported(extras: Capabilities, request: JobRequest): 'images' | 'effort' | null {
  const messages = [request, ...request.history];
  const hasImages = request.earlier?.hasImages === true || messages.some(({ images = [] }) => images.length > 0);
  if (extras.image === undefined && hasImages) return 'images';
  return request.isEffortNeeded && request.effort !== null && extras.effort === undefined ? 'effort' : null;
}

/** Whether the relay has the model call tools by a schema, because its program can't, or can't be told to. */
export function isEmulated(extras: Capabilities, { choice }: ToolOffer): boolean {
  if (choice === 'none') return false;
  return extras.tools === undefined || (choice !== 'auto' && extras.toolChoice !== true);
}

/** Whether the program gets a turn without the tools of a request, and with their results as text. */
export function dropsTools(extras: Capabilities, offer: ToolOffer): boolean {
  return isEmulated(extras, offer) || (offer.choice === 'none' && extras.toolChoice !== true);
}

/** The wishes of a request that its program can't grant, as far as it is known. A program that makes one call at a time grants `isParallel` anyway. */
export function ignoredWishes(
  { offer, sampling = {} }: JobRequest,
  extras: Pick<Capabilities, 'tools' | 'wishes'> | null,
): OptionalWish[] {
  if (extras === null) return [];
  const isSingle = offer?.isParallel === false && extras.tools === 'parallel';
  const asked = optionalWishes.filter((wish) => (wish === 'isParallel' ? isSingle : sampling[wish] !== undefined));
  return asked.filter((wish) => !extras.wishes?.includes(wish));
}

/** What the operator has switched off for all models. */
export type CapabilitySwitches = Pick<Config, 'tools' | 'sampling'>;

/** What its program can take, unless the program itself lists that this model does not. */
export function capabilitiesOf(
  { capabilities }: Pick<ModelEntry, 'capabilities'>,
  extras: Capabilities,
  switches: CapabilitySwitches,
): ModelCapabilities {
  const { images = true, effort = true } = capabilities ?? {};
  const isNative = extras.tools !== undefined;
  const tools = { tools: isNative ? 'native' : 'emulated', parallel_tools: extras.tools === 'parallel' } as const;
  return {
    ...(switches.tools === 'on' && tools),
    schema: extras.schema !== undefined,
    sampling: switches.sampling === 'on' && extras.wishes?.includes('temperature') === true,
    images: images && extras.image !== undefined,
    effort: effort && extras.effort !== undefined,
    thinking: extras.thoughts === true || (effort && extras.effort !== undefined),
  };
}
