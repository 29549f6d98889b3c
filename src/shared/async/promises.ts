/** As `Promise.withResolvers`, which Node 20 does not have. */
export function withResolvers<T = void>() {
  let settle = {} as { readonly resolve: (value: T) => void; readonly reject: (reason: unknown) => void };
  const promise = new Promise<T>((resolve, reject) => {
    settle = { resolve, reject };
  });
  return { promise, ...settle };
}

/** Rejects with the signal's reason as soon as it aborts; the promise itself goes on for those who share it. */
export async function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  let abort = () => {};
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
