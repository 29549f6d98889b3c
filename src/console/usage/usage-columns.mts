import { costText, countText, durationText } from '../format.mjs';
import type { SortableColumn } from '../ui/sortable-table.mjs';
import type { UsageSum } from './usage-figures.mjs';

function numberColumn(
  title: string,
  key: (sum: UsageSum) => number | null,
  text: (value: number) => string = countText,
): SortableColumn<UsageSum> {
  const cell = (sum: UsageSum) => {
    const value = key(sum);
    return value === null ? '–' : text(value);
  };
  return { title, isNumber: true, cell, key: (sum) => key(sum) ?? -1 };
}

export function secondsText(seconds: number): string {
  return durationText(1000 * seconds);
}

/** Every figure of some usage. */
export const usageColumns: readonly SortableColumn<UsageSum>[] = [
  numberColumn('Jobs', ({ jobs }) => jobs),
  numberColumn('Failed', ({ failed }) => failed),
  numberColumn('Refused', ({ refused }) => refused),
  numberColumn('Tokens in', ({ input }) => input),
  numberColumn('Tokens out', ({ output }) => output),
  numberColumn('Cost', ({ cost }) => cost, costText),
  numberColumn('Model time', ({ seconds }) => seconds, secondsText),
];
