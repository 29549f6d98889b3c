import type { Readiness } from '../../../src/primary/readiness/readiness.js';
import { ReadinessBoard } from '../../../src/primary/readiness/readiness-board.js';
import type { ReadinessEntry } from '../../../src/shared/readiness.js';

function entry(cli: string, status: ReadinessEntry['status'], checkedAt: number): ReadinessEntry {
  const nothing = { durationMs: 1, trigger: 'start', version: null, error: null } as const;
  return { ...nothing, cli, adapter: cli, status, checkedAt };
}

function boardOf(first: readonly ReadinessEntry[], second: readonly ReadinessEntry[]): ReadinessBoard {
  const readinessOf = (entries: readonly ReadinessEntry[]) =>
    ({ current: entries.at(-1), history: () => entries }) as unknown as Readiness;
  return new ReadinessBoard([readinessOf(first), readinessOf(second)]);
}

describe('The readiness of several CLIs', () => {
  it.each([
    ['ready', 'ready', true, false],
    ['ready', 'not_ready', true, false],
    ['unknown', 'not_ready', false, false],
    ['not_ready', 'not_ready', false, true],
  ] as const)('is told as a whole: %s and %s', (one, other, isAnyReady, isNoneUsable) => {
    const board = boardOf([entry('claude', one, 1)], [entry('codex', other, 2)]);
    expect([board.isAnyReady, board.isNoneUsable]).toEqual([isAnyReady, isNoneUsable]);
  });

  it('has one history, in the order of the checks', () => {
    const board = boardOf(
      [entry('claude', 'ready', 1), entry('claude', 'ready', 4)],
      [entry('codex', 'ready', 2), entry('codex', 'not_ready', 3)],
    );
    expect(board.history(null).map(({ checkedAt }) => checkedAt)).toEqual([1, 2, 3, 4]);
  });
});
