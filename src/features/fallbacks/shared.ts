import type { ConfiguredModels } from '../../primary/cli/models.js';
import type { FeatureVariables, ValuesOf } from '../../shared/config/feature-variables.js';
import type { FeatureKeyOption } from '../../shared/config/key-option-table.js';
import { seconds } from '../../shared/config/values.js';
import type { MetricTable } from '../../shared/tables/metrics.js';
import { fallbackRules } from './rules.js';

/** Tables of the fallbacks, which both processes and the documents read. */

const daySeconds = 86_400;

export const variables = {
  MODEL_API_FALLBACKS: {
    ...{ schema: fallbackRules, fallback: '', secrecy: 'none' },
    meaning:
      '[models that answer if another one cannot](clis.md#fallbacks), such as `claude/opus>claude@spare/opus>codex`',
    shownDefault: 'none',
  },
  MODEL_API_FALLBACK_WAIT_SECONDS: {
    ...{ schema: seconds(0, daySeconds), fallback: '600', secrecy: 'none' },
    meaning: 'a background job waits for its model if the model is open again this soon, instead of asking another one',
  },
} as const satisfies FeatureVariables;

export type FallbackValues = ValuesOf<typeof variables>;

/** Name of the option of keys that prevents other models. */
const optionName = 'fallback';

export const keyOptions = {
  [optionName]: {
    read: (text) => {
      if (text === 'off') return text;
      throw new Error('must be off');
    },
    flag: { type: 'string', placeholder: 'off', description: 'off: no other model answers its requests' },
    http: {
      description: '`off`: no other model answers its requests.',
      isWithin: (text, maker) => maker === null || text === maker,
    },
    document: ['fallback=off', 'if the requested model cannot answer, no [other one](clis.md#fallbacks) does'],
  },
} as const satisfies Readonly<Record<string, FeatureKeyOption>>;

/** Whether another model may answer for a client with these options if the requested one cannot. */
export function mayFallBackWith(options: Readonly<Record<string, string>>): boolean {
  return options[optionName] !== 'off';
}

export function namedModels({ MODEL_API_FALLBACKS: rules }: FallbackValues): string[] {
  return rules.flatMap((rule) => [rule.model, ...rule.fallbacks.map(({ name }) => name)]);
}

/** Returns faults of rules with a model that no request could use, or with an unknown account. */
export function findModelFaults({ MODEL_API_FALLBACKS: rules }: FallbackValues, models: ConfiguredModels): string[] {
  const all = rules.flatMap((rule) => [{ name: rule.model, account: null }, ...rule.fallbacks]);
  return all.flatMap(({ name, account }) => {
    const wrong = models.faultOf(name, account);
    return wrong === null ? [] : [`MODEL_API_FALLBACKS: ${name} ${wrong}`];
  });
}

export const logEvents = {
  job_fell_back: 'another model was asked, because one could not answer: request id, both models, reason',
} as const;

export const metrics = {
  fallbacks_total: {
    type: 'counter',
    labels: ['from', 'to', 'reason'],
    help: 'Jobs that moved to another model because a CLI (or its account) could not answer, by CLI and reason.',
  },
} as const satisfies MetricTable;
