import type { LaunchOptions } from '../contract/adapter.js';
import type { OpenTurn } from './open-turn.js';

/** A conversation as a turn finds it. */
export interface ConversationState {
  readonly id: string;
  readonly messageCount: number;
  /** What its process was told for good, by the launch that told it. */
  readonly launch?: LaunchOptions;
  /** Where it may never be continued. */
  readonly guess?: SessionGuess;
}

/**
 * What a request was whose process may wait in vain. `question`: no other request is known to continue it. `side`: it also
 * came close to another request of its client, as those for titles and the like do.
 */
export interface SessionGuess {
  readonly kind: 'question' | 'side';
  readonly client: string;
}

/**
 * What a process is doing. `starting`: it is not there yet. `standby`: it waits for its first turn. `busy`: a job has it,
 * before, during or after its turn. `idle`: it waits for the next turn of its conversation. `stopping`: it is being ended,
 * perhaps because it has died on standby. `gone`: nothing of it is left.
 */
export type CliState =
  | { readonly name: 'starting'; readonly next: 'standby' | 'busy' }
  | { readonly name: 'standby' }
  | { readonly name: 'busy'; readonly turn: OpenTurn | null; readonly isReusable: boolean }
  | { readonly name: 'idle'; readonly conversation: ConversationState }
  | { readonly name: 'stopping'; readonly hasDied: boolean }
  | { readonly name: 'gone' };

/** From each state to those that may follow. */
export const transitions: Readonly<Record<CliState['name'], readonly CliState['name'][]>> = {
  starting: ['standby', 'busy', 'stopping'],
  standby: ['busy', 'stopping'],
  busy: ['busy', 'idle', 'stopping'],
  idle: ['busy', 'stopping'],
  stopping: ['gone'],
  gone: [],
};
