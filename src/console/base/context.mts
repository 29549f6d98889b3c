import { createContext } from 'preact';
import { useCallback, useContext, useEffect, useRef, useState } from 'preact/hooks';
import type { Api } from './api.mjs';
import type { KeyKeeper, Link } from './connection.mjs';
import { asError, isAbort } from './failures.mjs';
import { useValue } from './observable.mjs';
import type { PageClock } from './page-clock.mjs';
import type { TabMemory } from './tab-memory.mjs';

/** What is made once, in main.mts, and used on every page. */
export interface ConsoleParts {
  readonly api: Api;
  readonly keys: KeyKeeper;
  readonly link: Link;
  readonly clock: PageClock;
  readonly memory: TabMemory;
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

/** The time, drawn again each second. */
export function useNow(): number {
  const { clock } = useParts();
  const [now, setNow] = useState(() => clock.now());
  useEffect(() => clock.every(1000, () => setNow(clock.now())), [clock]);
  return now;
}

/** Milliseconds since then, told again every second. */
export function useElapsed(sinceMs: number): number {
  const { clock } = useParts();
  const [nowMs, setNowMs] = useState(() => clock.now());
  useEffect(() => clock.every(1000, () => setNowMs(clock.now())), [clock]);
  return Math.max(0, nowMs - sinceMs);
}

/** Calls when the page is about to go: a reload, another address, the end of the tab, or a phone that puts it away. */
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
