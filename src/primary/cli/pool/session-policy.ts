/** A process that waits for its conversation's next turn, as the policy sees it. */
export interface IdleSession {
  /** Since when it waits, monotonic. */
  readonly sinceMs: number;
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

/** Which sessions to end: those idle for too long, and of the others the least recently used beyond the maximum. */
export function planSessions<S extends IdleSession>(
  sessions: readonly S[],
  { maxSessions, idleMs }: SessionSettings,
  nowMs: number,
): SessionPlan<S> {
  const newestFirst = sessions.toSorted((a, b) => b.sinceMs - a.sinceMs);
  const kept = newestFirst.slice(0, maxSessions).filter(({ sinceMs }) => nowMs - sinceMs < idleMs);
  const oldest = kept.at(-1);
  return {
    end: newestFirst.filter((session) => !kept.includes(session)),
    nextMs: oldest === undefined ? Number.POSITIVE_INFINITY : oldest.sinceMs + idleMs,
  };
}
