import { useCallback, useEffect, useState } from 'preact/hooks';
import { useParts } from './context.mjs';
import { asError, isAbort } from './failures.mjs';
import { useValue } from './observable.mjs';

export type Load<T> =
  | { readonly state: 'loading' }
  | { readonly state: 'ready'; readonly value: T }
  | { readonly state: 'failed'; readonly error: Error };

/** What is at a path of the API. Read again by `reload`, for another path, and when a server that was gone is back. */
export function useLoad<T>(path: string): [loaded: Load<T>, reload: () => void] {
  const { api, link } = useParts();
  const [loaded, setLoaded] = useState<Load<T>>({ state: 'loading' });
  const [round, setRound] = useState(0);
  const isUp = useValue(link.state) === 'up';
  useEffect(() => {
    if (!isUp) return;
    const abort = new AbortController();
    const settle = (next: Load<T>) => !abort.signal.aborted && setLoaded(next);
    api.json<T>(path, { signal: abort.signal }).then(
      (value) => settle({ state: 'ready', value }),
      (error: unknown) => !isAbort(error) && settle({ state: 'failed', error: asError(error) }),
    );
    return () => abort.abort();
  }, [api, path, round, isUp]);
  const reload = useCallback(() => setRound((count) => count + 1), []);
  return [loaded, reload];
}
