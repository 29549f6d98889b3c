/** A process that waits for its conversation's next turn, as the policy sees it. */
export interface IdleSession {
  /** Since when it waits, monotonic. */
  readonly sinceMs: number;
  /** It may have been a single question: nobody has gone on with it yet, nor said that it will be. */
  readonly isGuess: boolean;
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
  const kept = mostWanted(sessions)
    .slice(0, maxSessions)
    .filter(({ sinceMs }) => nowMs - sinceMs < idleMs);
  return {
    end: sessions.filter((session) => !kept.includes(session)),
    nextMs: Math.min(...kept.map(({ sinceMs }) => sinceMs + idleMs)),
  };
}

/**
 * The most recently used first, for somebody may go on there at once. Then conversations before guesses: else a caller that
 * sends single questions one after the other would push out everybody's conversations.
 */
function mostWanted<S extends IdleSession>(sessions: readonly S[]): readonly S[] {
  const [newest, ...others] = sessions.toSorted((a, b) => b.sinceMs - a.sinceMs);
  if (newest === undefined) return [];
  return [newest, ...others.filter(({ isGuess }) => !isGuess), ...others.filter(({ isGuess }) => isGuess)];
}
