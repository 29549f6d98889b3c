import { isDeepStrictEqual } from 'node:util';
import type { Beginning } from '../../../shared/conversation.js';
import type { ProgramVersion } from '../contract/adapter.js';
import type { CliProcess, ConversationState } from '../process/cli-process.js';
import type { Tenant } from '../process/renewal.js';
import type { IdleSession } from './session-policy.js';

/**
 * Returns whether the process is at the point of the conversation at which the turn starts, and has its model, schema,
 * web search and open calls. Only the effort may differ.
 */
export function canContinue(
  conversation: ConversationState,
  { messageCount, launch, openCalls }: ConversationState,
): boolean {
  const hasResults = conversation.openCalls === undefined || isDeepStrictEqual(conversation.openCalls, openCalls);
  return conversation.messageCount === messageCount && hasSameLaunch(conversation, launch) && hasResults;
}

/** Session whose conversation begins like another one, and the number of messages that both have. */
interface SharedBeginning<S> {
  readonly session: S;
  readonly keptCount: number;
}

/**
 * Returns the session that shares the most messages with a turn, and has others after them; null if no session does. The
 * turn may be another branch of a session without further messages, which therefore keeps its process.
 */
export function sessionToRewind<S extends IdleSession & { readonly conversation: ConversationState }>(
  sessions: readonly S[],
  state: ConversationState,
): SharedBeginning<S> | null {
  const sharing = sessions.flatMap((session): SharedBeginning<S>[] => {
    const { isWaiting, isAwaited, guess, conversation } = session;
    if (isWaiting || isAwaited || (state.isUnknown === true && guess === null)) return [];
    const keptCount = hasSameLaunch(conversation, state.launch) ? sharedMessages(conversation, state) : 0;
    return keptCount === 0 ? [] : [{ session, keptCount }];
  });
  return sharing.toSorted((a, b) => b.keptCount - a.keptCount)[0] ?? null;
}

function sharedMessages({ beginnings: known = [] }: ConversationState, { beginnings = [] }: ConversationState): number {
  const isKnown = (wanted: Beginning) =>
    known.some(({ id, messageCount }) => id === wanted.id && messageCount === wanted.messageCount);
  return beginnings.find(isKnown)?.messageCount ?? 0;
}

function hasSameLaunch({ launch }: ConversationState, other: ConversationState['launch']): boolean {
  return (['model', 'schema', 'hasSearch'] as const).every((option) => launch?.[option] === other?.[option]);
}

/** Whether a renewed process belongs to this client, and has the system text, schema and tools that it needs. */
export function mayServe(tenant: Tenant, other: Tenant | null, keptParts: ProgramVersion['keptParts'] = []): boolean {
  if (other === null || tenant.client !== other.client) return false;
  return keptParts.every((part) => isDeepStrictEqual(tenant[part], other[part]));
}

/** Whether a process was renewed, and waits for any question of its client. */
export function isRenewed({ state }: Pick<CliProcess, 'state'>): boolean {
  return state.name === 'idle' && state.conversation === null;
}

/** Whether a process has no job, so that its end loses no answer. */
export function isWaiting({ state }: CliProcess): boolean {
  if (state.name === 'waiting_for_tools') return true;
  return state.name === 'standby' || state.name === 'idle' || (state.name === 'starting' && state.next === 'standby');
}
