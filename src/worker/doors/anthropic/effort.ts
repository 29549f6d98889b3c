import type { Effort } from '../../../shared/job.js';
import type { MessagesRequest } from './messages-schema.js';

export interface AskedEffort {
  readonly value: Effort | undefined;
  /** The field that it comes from; null where there is none. */
  readonly field: string | null;
  /** Fields about effort that mean nothing. */
  readonly ignored: readonly string[];
}

const byName: Readonly<Record<string, Effort>> = {
  low: 'low',
  medium: 'medium',
  high: 'high',
  xhigh: 'high',
  max: 'high',
};

/** Of the tokens to think with: those of a budget below `below` are this effort. */
const byBudget = [
  { below: 4096, effort: 'low' },
  { below: 16_384, effort: 'medium' },
] as const;

/** How hard the model is to think: by name, else by the tokens it may think with. Any other wish is ignored. */
export function effortOf({ output_config: config, thinking }: MessagesRequest): AskedEffort {
  const name = config?.effort ?? null;
  const named = name !== null && Object.hasOwn(byName, name) ? byName[name] : undefined;
  const budgeted = named === undefined ? ofBudget(thinking) : undefined;
  const nameField = 'output_config.effort';
  const ignored = [
    ...(name !== null && named === undefined ? [nameField] : []),
    ...(thinking != null && budgeted === undefined ? ['thinking'] : []),
  ];
  if (named !== undefined) return { value: named, field: nameField, ignored };
  return { value: budgeted, field: budgeted === undefined ? null : 'thinking', ignored };
}

function ofBudget(thinking: MessagesRequest['thinking']): Effort | undefined {
  if (thinking?.type !== 'enabled' || thinking.budget_tokens == null) return undefined;
  const { budget_tokens: tokens } = thinking;
  return byBudget.find(({ below }) => tokens < below)?.effort ?? 'high';
}
