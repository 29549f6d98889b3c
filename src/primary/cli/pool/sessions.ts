import { noClient } from '../../../shared/client.js';
import type { CliProcess, ConversationState } from '../process/cli-process.js';
import type { IdleSession } from './session-policy.js';

/** Process that waits for the next turn of its conversation, or was renewed. */
export interface Session extends IdleSession {
  readonly process: CliProcess;
  /** null if the process was renewed. */
  readonly conversation: ConversationState | null;
}

/** Session with a conversation. */
export type LiveSession = Session & { readonly conversation: ConversationState };

/** Returns the processes that are sessions. `awaited`: ids of conversations that waiting jobs will continue. */
export function sessionsOf(processes: Iterable<CliProcess>, awaited: () => ReadonlySet<string>): readonly Session[] {
  return [...processes].flatMap((process) => {
    const { state, sinceMs, tenant } = process;
    if (state.name !== 'idle' && state.name !== 'waiting_for_tools') return [];
    const { conversation } = state;
    const isWaiting = state.name === 'waiting_for_tools';
    const isAwaited = conversation !== null && awaited().has(conversation.id);
    const { guess = null, client = guess?.client ?? tenant?.client ?? noClient } = conversation ?? {};
    const data = { isWaiting, isAwaited, guess, client, isRenewed: conversation === null };
    return [{ process, conversation, sinceMs, ...data }];
  });
}

/**
 * Time after an answer in which another question of the client may be a side request of the same program, such as for a
 * title, so that the conversation probably goes on.
 */
const freshMs = 2500;

/** Whether a session is an earlier question of its client that no request will probably continue. */
export function isLeft({ isWaiting, isAwaited, guess, sinceMs }: IdleSession, nowMs: number): boolean {
  if (guess === null || isWaiting || isAwaited) return false;
  return guess.kind !== 'question' || nowMs - sinceMs >= freshMs;
}
