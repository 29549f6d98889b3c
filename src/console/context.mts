import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { Api } from './api.mjs';
import type { KeyKeeper } from './key-keeper.mjs';
import type { Link } from './link.mjs';
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
