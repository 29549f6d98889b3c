import { isDeepStrictEqual } from 'node:util';
import type { ProgramVersion } from '../contract/adapter.js';
import type { ConversationState } from '../process/cli-process.js';
import type { Tenant } from '../process/renewal.js';

/**
 * Returns whether the process is at the point of the conversation at which the turn starts, and has its model, schema,
 * web search and open calls. Only the effort may differ.
 */
export function canContinue(
  conversation: ConversationState,
  { messageCount, launch, openCalls }: ConversationState,
): boolean {
  const isSame = (['model', 'schema', 'hasSearch'] as const).every(
    (option) => conversation.launch?.[option] === launch?.[option],
  );
  const hasResults = conversation.openCalls === undefined || isDeepStrictEqual(conversation.openCalls, openCalls);
  return conversation.messageCount === messageCount && isSame && hasResults;
}

/** Whether a renewed process belongs to this client, and has the system text, schema and tools that it needs. */
export function mayServe(tenant: Tenant, other: Tenant | null, keptParts: ProgramVersion['keptParts'] = []): boolean {
  if (other === null || tenant.client !== other.client) return false;
  return keptParts.every((part) => isDeepStrictEqual(tenant[part], other[part]));
}
