interface FigureFacts {
  /** Field of a row of GET /usage in which the figure is; null for the row itself. */
  readonly group: 'tokens' | null;
  /** Name of the figure in its group, or in the row. In CSV, `_tokens` is added for the group `tokens`. */
  readonly field: string;
  /** Unit: only an amount in US dollars may be unknown (null). A time is stored in milliseconds, reported in seconds. */
  readonly unit: 'count' | 'usd' | 'time';
  /** Whether the figure is a part of what a job is charged. */
  readonly isCharged: boolean;
  /** Title of the column in the command and in the console. */
  readonly title: string;
  /** Description in the API; empty if the name says enough. */
  readonly meaning: string;
}

/**
 * Figures of the usage, in the order of the columns. Stores write them under these names. A figure that is missing in
 * stored usage, because an earlier version has written it, is 0.
 */
export const usageFigures = {
  refused: {
    group: null,
    field: 'refused',
    unit: 'count',
    isCharged: false,
    title: 'refused',
    meaning: 'Jobs that were not admitted: 429 and 503.',
  },
  inputTokens: { group: 'tokens', field: 'input', unit: 'count', isCharged: true, title: 'tokens in', meaning: '' },
  cachedTokens: {
    group: 'tokens',
    field: 'cached_input',
    unit: 'count',
    isCharged: true,
    title: 'cached',
    meaning: 'Input tokens that were read from the cache of the model; part of `input`.',
  },
  cacheWriteTokens: {
    group: 'tokens',
    field: 'cache_write',
    unit: 'count',
    isCharged: true,
    title: 'cache write',
    meaning: 'Input tokens that were written to the cache of the model; part of `input`.',
  },
  outputTokens: { group: 'tokens', field: 'output', unit: 'count', isCharged: true, title: 'tokens out', meaning: '' },
  searches: {
    group: null,
    field: 'web_searches',
    unit: 'count',
    isCharged: true,
    title: 'searches',
    meaning: 'Web searches that the model made for jobs with any outcome.',
  },
  costUsd: {
    group: null,
    field: 'cost_usd',
    unit: 'usd',
    isCharged: true,
    title: 'cost',
    meaning: 'null if the model CLI reports no cost.',
  },
  modelMs: {
    group: null,
    field: 'model_seconds',
    unit: 'time',
    isCharged: false,
    title: 'model time',
    meaning: 'Time that the jobs occupied a slot.',
  },
} as const satisfies Readonly<Record<string, FigureFacts>>;

export type UsageFigureTable = typeof usageFigures;
export type UsageFigure = keyof UsageFigureTable;
export const usageFigureNames = Object.keys(usageFigures) as readonly UsageFigure[];
