export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** Returns a quantile, linear between the two nearest ranks. */
export function quantile(values: readonly number[], q: number): number {
  if (values.length === 0) throw new Error('nothing was measured');
  const sorted = values.toSorted((a, b) => a - b);
  const rank = (sorted.length - 1) * q;
  const below = sorted[Math.floor(rank)] as number;
  const above = sorted[Math.ceil(rank)] as number;
  return below + (above - below) * (rank - Math.floor(rank));
}

export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** Formats the least and the greatest value, such as `2.31–4.07`. */
export function spread(values: readonly number[], digits: number): string {
  return `${Math.min(...values).toFixed(digits)}–${Math.max(...values).toFixed(digits)}`;
}

/** Returns the slope of a linear regression: the growth of `ys` per unit of `xs`. */
export function slope(xs: readonly number[], ys: readonly number[]): number {
  const [meanX, meanY] = [sum(xs) / xs.length, sum(ys) / ys.length];
  const products = xs.map((x, index) => (x - meanX) * ((ys[index] ?? meanY) - meanY));
  const squares = xs.map((x) => (x - meanX) ** 2);
  return sum(products) / sum(squares);
}
