import type { SessionGuess } from '../process/cli-state.js';

/** A process that waits for its conversation's next turn, as the policy sees it. */
export interface IdleSession {
  /** Since when it waits, monotonic. */
  readonly sinceMs: number;
  /** What it most likely is; null for a conversation that goes on. */
  readonly guess: SessionGuess | null;
}

export interface SessionSettings {
  readonly maxSessions: number;
  /** Time without a turn after which a session ends, milliseconds. */
  readonly idleMs: number;
}

export interface SessionPlan<S extends IdleSession> {
  readonly end: readonly S[];
  /** When the next one will have been idle for too long, monotonic; infinite where there is none. */
  readonly nextMs: number;
}

/** Which sessions to end: those idle for too long, and of the others those beyond the maximum. */
export function planSessions<S extends IdleSession>(
  sessions: readonly S[],
  { maxSessions, idleMs }: SessionSettings,
  nowMs: number,
): SessionPlan<S> {
  const recent = sessions.filter(({ sinceMs }) => nowMs - sinceMs < idleMs);
  const kept = mostWanted(recent).slice(0, maxSessions);
  return {
    end: sessions.filter((session) => !kept.includes(session)),
    nextMs: Math.min(...kept.map(({ sinceMs }) => sinceMs + idleMs)),
  };
}

/**
 * Conversations first: no single request ends one, however new it is. Then questions, one of each client before the second
 * of any, so that a client with many of them ends its own. Side requests come last: hardly any of them is ever continued.
 */
function mostWanted<S extends IdleSession>(sessions: readonly S[]): readonly S[] {
  const newestFirst = sessions.toSorted((a, b) => b.sinceMs - a.sinceMs);
  const of = (kind: string) => newestFirst.filter(({ guess }) => (guess?.kind ?? 'conversation') === kind);
  return [...of('conversation'), ...inTurnOfClients(of('question')), ...of('side')];
}

/** The first of each client, then the second of each, and so on. */
function inTurnOfClients<S extends IdleSession>(sessions: readonly S[]): readonly S[] {
  const counts = new Map<string, number>();
  const ranked = sessions.map((session) => {
    const client = session.guess?.client ?? '';
    const rank = counts.get(client) ?? 0;
    counts.set(client, rank + 1);
    return { session, rank };
  });
  return ranked.toSorted((a, b) => a.rank - b.rank).map(({ session }) => session);
}
