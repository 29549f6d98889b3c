/** Methods without results, such as those of an observer. */
type VoidMethods<T> = { readonly [K in keyof T]: (...values: never[]) => void };

/**
 * Returns an observer whose exceptions are reported as defects, so that none ends a job or a program, or holds what they
 * have. The observer must be a plain object. An exception of `report` has no effect.
 */
export function isolated<T extends VoidMethods<T>>(observer: T, report: (thrown: unknown) => void): T {
  const isolate =
    (name: keyof T) =>
    (...values: never[]) => {
      try {
        observer[name](...values);
      } catch (error) {
        try {
          report(error);
        } catch {} // nobody is left to report to
      }
    };
  const names = Object.keys(observer) as (keyof T & string)[];
  return Object.fromEntries(names.map((name) => [name, isolate(name)])) as unknown as T;
}
