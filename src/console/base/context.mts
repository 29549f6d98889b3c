import { createContext } from 'preact';
import { useCallback, useContext, useEffect, useRef, useState } from 'preact/hooks';
import type { Api } from './api.mjs';
import type { KeyKeeper, Link } from './connection.mjs';
import { asError, isAbort } from './failures.mjs';
import { useValue } from './observable.mjs';
import type { PageClock } from './page-clock.mjs';
import type { TabMemory } from './tab-memory.mjs';
import type { Theme } from './theme.mjs';

/** Objects that main.mts creates once, for all pages. */
export interface ConsoleParts {
  readonly api: Api;
  readonly keys: KeyKeeper;
  readonly link: Link;
  readonly clock: PageClock;
  readonly memory: TabMemory;
  readonly theme: Theme;
}

export const ConsoleContext = createContext<ConsoleParts | null>(null);

export function useParts(): ConsoleParts {
  const parts = useContext(ConsoleContext);
  if (parts === null) throw new Error('drawn outside of the console');
  return parts;
}

export type Load<T> =
  | { readonly state: 'loading' }
  | { readonly state: 'ready'; readonly value: T }
  | { readonly state: 'failed'; readonly error: Error };

/**
 * Reads a path of the API; null reads nothing. Reads again on `reload`, for another path, and when a lost server answers
 * again.
 */
export function useLoad<T>(path: string | null): [loaded: Load<T>, reload: () => void] {
  const { api, link } = useParts();
  const [loaded, setLoaded] = useState<Load<T>>({ state: 'loading' });
  const [round, setRound] = useState(0);
  const isUp = useValue(link.state) === 'up';
  useEffect(() => {
    if (!isUp || path === null) return;
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

/** Runs requests that the user starts. Returns whether one runs, and why the last one failed. */
export function useAction() {
  const [state, setState] = useState<'ready' | 'running' | { readonly failure: Error }>('ready');
  const run = <T,>(request: Promise<T>, onSuccess: (answer: T) => void) => {
    setState('running');
    request.then(
      (answer) => {
        setState('ready');
        onSuccess(answer);
      },
      (error: unknown) => setState({ failure: asError(error) }),
    );
  };
  return { run, isRunning: state === 'running', failure: typeof state === 'object' ? state.failure : null };
}

/** Returns the time in milliseconds since the epoch, and redraws the component each second. */
export function useNow(): number {
  const { clock } = useParts();
  const [now, setNow] = useState(() => clock.now());
  useEffect(() => clock.every(1000, () => setNow(clock.now())), [clock]);
  return now;
}

/**
 * Calls `call` before the page ends: on a reload, on navigation or when the tab closes, and when the page is hidden,
 * because a phone may end a hidden page without notice.
 */
export function useLeaving(call: () => void): void {
  const latest = useRef(call);
  latest.current = call;
  useEffect(() => {
    const leave = () => latest.current();
    const hide = () => document.visibilityState === 'hidden' && leave();
    addEventListener('pagehide', leave);
    document.addEventListener('visibilitychange', hide);
    return () => {
      removeEventListener('pagehide', leave);
      document.removeEventListener('visibilitychange', hide);
    };
  }, []);
}
