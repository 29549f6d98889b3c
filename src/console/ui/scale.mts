/** What is written beside an axis, from nothing upwards. The last one is the height of the chart. */
export type Ticks = readonly [number, ...number[]];

const steps = [1, 2, 4, 6, 10] as const;

/** Of an axis that counts: each is a whole number. */
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

/** Of an axis of milliseconds: halves and wholes of what a clock shows. */
export function durationTicks(maxMs: number): Ticks {
  const top = tops.find((candidate) => candidate >= maxMs) ?? 24 * hour * Math.ceil(maxMs / (24 * hour));
  return [0, top / 2, top];
}

/** `5 ms`, `0.5 s`, `20 s`, `2 min`, `1 h`: what stands beside a tick. */
export function durationTickText(ms: number): string {
  if (ms === 0) return '0';
  if (ms < second / 2) return `${ms} ms`;
  if (ms < minute) return `${ms / second} s`;
  return ms < hour ? `${ms / minute} min` : `${ms / hour} h`;
}

/** Which of `count` places of the same width is at this part of the whole width. */
export function placeAt(part: number, count: number): number {
  return Math.min(count - 1, Math.max(0, Math.floor(part * count)));
}

/** Every one of these places, every second or fewer, until neighbours are at least this far apart. The last one stays. */
export function apart(places: readonly number[], distance: number): number[] {
  const [first = 0, second = Number.POSITIVE_INFINITY] = places;
  const stride = Math.max(1, Math.ceil(distance / (second - first)));
  return places.filter((_, index) => (places.length - 1 - index) % stride === 0);
}
