import type { ReadinessEntry } from '../../shared/health.js';
import type { Phase } from '../../shared/phase.js';

/**
 * What the front is told of this host, in the words of HAProxy's agent-check. `drain` alone would still send it the
 * callers who are tied to it, `down` sends them elsewhere, and neither touches what is open. Only the agent can take
 * back what it has said, so the answer of a usable host takes back both. Without the space before its `#` HAProxy would
 * not know the word.
 */
export const leavingLine = 'drain down #draining';
export const startingLine = 'down #starting';
const notReadyLine = 'down #model CLI not ready';

/** The owners of what is told. */
export interface AgentSources {
  readonly supervisor: { readonly phase: Phase };
  readonly clis: readonly {
    readonly health: { readonly checks: { readonly current: Pick<ReadinessEntry, 'status'> } };
  }[];
  readonly slots: {
    readonly active: number;
    readonly waiting: number;
    readonly limits: { readonly maxActive: number };
  };
}

/** A host whose model CLI fails at once would look like the least busy one, and attract everybody. */
export function agentLine({ supervisor, clis, slots }: AgentSources): string {
  if (supervisor.phase === 'starting') return startingLine;
  if (supervisor.phase !== 'ready') return leavingLine;
  if (clis.every(({ health }) => health.checks.current.status === 'not_ready')) return notReadyLine;
  return `up ready ${freePercent(slots)}%`;
}

/**
 * The share of the host that one more job would find: 100 when it is idle, 50 when every slot is taken, 33 when as many
 * wait as run, never 0. It falls no faster than the load rises: else hosts of which each looks full or empty in turn
 * would be flooded and avoided in turn, because the front learns of it up to a second late.
 */
function freePercent({ active, waiting, limits }: AgentSources['slots']): number {
  const { maxActive } = limits;
  return Math.max(1, Math.round((100 * maxActive) / (maxActive + active + waiting)));
}
