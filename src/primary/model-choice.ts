import type { Config } from '../shared/config/config.js';
import { invalid } from '../shared/errors.js';
import type { Adapter } from './cli/adapter.js';

/** Which models there are to choose from, and which is meant where none is named. */
export interface ModelChoice {
  /** Model of a request that names none; null leaves it to the CLI. */
  readonly fallback: string | null;
  /** Models that a request may name; null allows any. */
  readonly allowed: readonly string[] | null;
  /** What to call the model of an answer that doesn't say. */
  readonly label: string | null;
}

export function modelChoice(config: Config, adapter: Adapter): ModelChoice {
  const { defaultModel, allowedModels } = config;
  const fallback = defaultModel ?? allowedModels[0] ?? null;
  return {
    fallback,
    allowed: allowedModels.length > 0 ? allowedModels : withDefault(adapter.models, defaultModel),
    label: fallback ?? adapter.models?.[0] ?? null,
  };
}

/** What answers those who name no model may be named too. */
function withDefault(models: readonly string[] | null, defaultModel: string | null): readonly string[] | null {
  return models === null || defaultModel === null ? models : [...new Set([...models, defaultModel])];
}

/** The model to run for a request that names this one, or none. Throws `validation_error` for one that is not allowed. */
export function modelFor(named: string | null, { allowed, fallback }: ModelChoice): string | null {
  if (named !== null && allowed !== null && !allowed.includes(named)) {
    throw invalid('model', `must be one of ${allowed.join(', ')}`);
  }
  return named ?? fallback;
}
