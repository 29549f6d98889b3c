/** Labelled values of an axis, from 0 upwards. The last one is the top of the chart. */
export type Ticks = readonly [number, ...number[]];

const steps = [1, 2, 4, 6, 10] as const;

/** Returns the ticks of an axis of counts. Each is a whole number. */
export function countTicks(max: number): Ticks {
  if (max <= 1) return [0, 1];
  const power = 10 ** Math.floor(Math.log10(max));
  const top = (steps.find((step) => step * power >= max) ?? 10) * power;
  return [0, top / 2, top];
}

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;

const tops = [
  ...[10, 20, 40, 100, 200, 400],
  ...[1, 2, 4, 10, 20, 40].map((seconds) => seconds * second),
  ...[1, 2, 4, 10, 20, 40].map((minutes) => minutes * minute),
  ...[1, 2, 4, 8, 24].map((hours) => hours * hour),
];

/** Returns the ticks of an axis of milliseconds, at round durations. */
export function durationTicks(maxMs: number): Ticks {
  const top = tops.find((candidate) => candidate >= maxMs) ?? 24 * hour * Math.ceil(maxMs / (24 * hour));
  return [0, top / 2, top];
}

/** Formats a tick: `5 ms`, `0.5 s`, `20 s`, `2 min`, `1 h`. */
export function durationTickText(ms: number): string {
  if (ms === 0) return '0';
  if (ms < second / 2) return `${ms} ms`;
  if (ms < minute) return `${ms / second} s`;
  return ms < hour ? `${ms / minute} min` : `${ms / hour} h`;
}

/** Returns which of `count` places of equal width is at `part`, a fraction of the whole width. */
export function placeAt(part: number, count: number): number {
  return Math.min(count - 1, Math.max(0, Math.floor(part * count)));
}

/**
 * Returns every n-th of these places, so that neighbours are at least `distance` apart. The last one is always
 * included.
 */
export function apart(places: readonly number[], distance: number): number[] {
  const [first = 0, second = Number.POSITIVE_INFINITY] = places;
  const stride = Math.max(1, Math.ceil(distance / (second - first)));
  return places.filter((_, index) => (places.length - 1 - index) % stride === 0);
}
