/** Returns a generator of numbers from 0 to below 1 (mulberry32); equal seeds give equal numbers. */
export function randomNumbers(seed: number): () => number {
  let state = seed * 0x9e37_79b9;
  return () => {
    state = (state + 0x6d2b_79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
