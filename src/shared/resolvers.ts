/** As `Promise.withResolvers`, which Node 20 does not have. */
export function withResolvers<T = void>() {
  let settle = {} as { readonly resolve: (value: T) => void; readonly reject: (reason: unknown) => void };
  const promise = new Promise<T>((resolve, reject) => {
    settle = { resolve, reject };
  });
  return { promise, ...settle };
}
