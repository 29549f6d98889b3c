/** A kind of parts of a body, with the largest number that the limits allow, or a tenth more. */
export type Kind = readonly [name: string, most: number, make: (count: number) => object | string];

/** Limit of values in a body. */
export const maxValues = 49_000;
export const user = (content: unknown) => ({ role: 'user', content });
export const assistant = (content: unknown) => ({ role: 'assistant', content });

export function times<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}

export function named<T>(count: number, make: (index: number) => T): Record<string, T> {
  return Object.fromEntries(times(count, (index) => [`n${index}`, make(index)]));
}
