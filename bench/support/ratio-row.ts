import { median, spread } from './statistics.js';
import type { Row } from './table.js';

/** Milliseconds through the relay and without it. */
export type Pair = readonly [relay: number, bare: number];

/** Makes a row with the median of the ratios. */
export function ratioRow(question: string, target: number | null, pairs: readonly Pair[]): Row {
  const ratios = pairs.map(([relay, bare]) => relay / bare);
  const [relay, bare] = [median(pairs.map(([ms]) => ms)), median(pairs.map(([, ms]) => ms))];
  return {
    question,
    target: target === null ? '–' : `≤ ${target}`,
    measured: `${median(ratios).toFixed(2)} (${spread(ratios, 2)}): ${relay.toFixed(0)} ms against ${bare.toFixed(0)} ms`,
    holds: target === null ? null : median(ratios) <= target,
  };
}
