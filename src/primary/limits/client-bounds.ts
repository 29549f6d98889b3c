import type { Config } from '../../shared/config/config.js';

/** What one client may have of what all clients share. */
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

/** The same bounds for every client. */
export function clientBounds(config: Pick<Config, 'clientMaxConcurrent' | 'clientMaxQueue'>): BoundsOf {
  const { clientMaxConcurrent, clientMaxQueue: maxQueued } = config;
  const bounds = { maxRunning: clientMaxConcurrent === 0 ? unbounded.maxRunning : clientMaxConcurrent, maxQueued };
  return () => bounds;
}

/** What is one client's own of something that all share. */
export function quarterOf(whole: number): number {
  return Math.max(1, Math.ceil(whole / 4));
}
