import { type CalendarPeriod, periods } from '../../shared/api/limit-use.js';
import type { KeyOptions } from '../../shared/config/api-keys.js';
import type { FeatureKeyOption } from '../../shared/config/key-option-table.js';
import { modelOptionIn } from '../../shared/config/key-options.js';

/** Maximum amount in each period. */
export interface PeriodLimit {
  readonly max: number;
  readonly period: CalendarPeriod;
}

/** What a client may use; null means no limit. */
export interface Budget {
  /** Input and output tokens together. */
  readonly tokens: PeriodLimit | null;
  readonly costUsd: PeriodLimit | null;
  /** The only model whose jobs count, as the keys file names it. */
  readonly model?: string;
}

function readTokens(text: string): PeriodLimit {
  const limit = readLimit(text, /^\d{1,15}$/);
  if (limit !== null) return limit;
  throw new Error('must be tokens/day, tokens/week or tokens/month, such as 1000000/day');
}

function readCost(text: string): PeriodLimit {
  const limit = readLimit(text, /^\d{1,7}(?:\.\d{1,4})?$/);
  if (limit !== null) return limit;
  throw new Error('must be US dollars/day, dollars/week or dollars/month, such as 5/day or 0.5/month');
}

/** Parses an amount and a period, such as `5/day`; null if the text is wrong or the amount is 0. */
function readLimit(text: string, amountForm: RegExp): PeriodLimit | null {
  const [amount = '', named, ...rest] = text.split('/');
  const period = periods.find((each) => each === named);
  const isRight = period !== undefined && rest.length === 0 && amountForm.test(amount) && Number(amount) > 0;
  return isRight ? { max: Number(amount), period } : null;
}

/** Returns an option of keys and groups whose text is an amount and a period. */
function limitOption(
  read: (text: string) => PeriodLimit,
  flagText: string,
  description: string,
  document: FeatureKeyOption['document'],
) {
  return {
    read: (text) => {
      const { max, period } = read(text ?? '');
      return `${max}/${period}`;
    },
    flag: { type: 'string', placeholder: '<n/period>', description: flagText },
    http: {
      description,
      isWithin: (text, maker) => maker === null || (text !== null && isAtMost(read(text), read(maker))),
    },
    ...{ document, isForGroups: true, isByModel: true },
  } as const satisfies FeatureKeyOption;
}

function isAtMost(limit: PeriodLimit, max: PeriodLimit): boolean {
  return limit.period === max.period && limit.max <= max.max;
}

export const keyOptions = {
  tokens: limitOption(
    readTokens,
    'tokens in a day, week or month, such as 1000000/day',
    'Budget of tokens, such as `1000000/day`.',
    [
      'tokens=1000000/day',
      'budget of tokens, in and out, in a `day`, `week` or `month` in UTC; see [budgets](#budgets)',
    ],
  ),
  cost: {
    ...limitOption(
      readCost,
      'US dollars in a day, week or month, such as 5/day',
      'Budget in US dollars, such as `5/day`.',
      ['cost=200/month', 'budget in US dollars, in the same periods'],
    ),
    needsCosts: true,
  },
} as const satisfies Readonly<Record<string, FeatureKeyOption>>;

/** Returns the budget in the options of a key, a person or a group for all models, and the budgets for one model. */
export function budgetsIn({ featureOptions }: Pick<KeyOptions, 'featureOptions'>): readonly [Budget, ...Budget[]] {
  const budgetOf = (start: string): Budget => {
    const [tokens, cost] = [featureOptions[`${start}tokens`], featureOptions[`${start}cost`]];
    return {
      tokens: tokens === undefined ? null : readTokens(tokens),
      costUsd: cost === undefined ? null : readCost(cost),
    };
  };
  const models = Object.keys(featureOptions).flatMap((name) => modelOptionIn(name)?.model ?? []);
  const byModel = [...new Set(models)].map((model) => ({ model, ...budgetOf(`${model}:`) }));
  return [budgetOf(''), ...byModel];
}
