import type { Config } from '../../shared/config/config.js';
import type { ClientOptions } from './clients.js';

/** What one client may have of what all clients share: the holder of a key together with all names that it speaks for. */
export interface ClientBounds {
  /** Jobs that may hold a slot at once. */
  readonly maxRunning: number;
  /** Places in the queue that it may hold at any time; null: a quarter of the queue while there are others, else all. */
  readonly maxQueued: number | null;
}

/** The bounds of a client as they are now: those of a key may change while the service runs. */
export type BoundsOf = (client: string) => ClientBounds;

const unbounded: ClientBounds = { maxRunning: Number.POSITIVE_INFINITY, maxQueued: null };

export const noBounds: BoundsOf = () => unbounded;

/** The bounds of the client's key where it has its own, else those of the configuration. */
export function clientBounds(
  config: Pick<Config, 'clientMaxConcurrent' | 'clientMaxQueue'>,
  optionsOf: (client: string) => Pick<ClientOptions, 'maxConcurrent' | 'maxQueued'>,
): BoundsOf {
  const { clientMaxConcurrent, clientMaxQueue } = config;
  const commonRunning = clientMaxConcurrent === 0 ? unbounded.maxRunning : clientMaxConcurrent;
  return (client) => {
    const { maxConcurrent, maxQueued } = optionsOf(client);
    return { maxRunning: maxConcurrent ?? commonRunning, maxQueued: maxQueued ?? clientMaxQueue };
  };
}

/** What is one client's own of something that all share. */
export function quarterOf(whole: number): number {
  return Math.max(1, Math.ceil(whole / 4));
}
