import { type ClientText, holderOf } from '../../../shared/client.js';
import type { SessionGuess } from '../process/cli-process.js';

/** Data of a session that decide whether it ends. */
export interface IdleSession {
  /** Time since which the session waits, monotonic. */
  readonly sinceMs: number;
  /** Whether the session waits for the results of calls. */
  readonly isWaiting: boolean;
  /** Whether a waiting job will continue this session. */
  readonly isAwaited: boolean;
  /** Kind of a session that may never be continued; null for a known conversation. */
  readonly guess: SessionGuess | null;
  /** Client to which the session belongs. */
  readonly client: ClientText;
  /** Whether the process was renewed. Such a process has no conversation, so its end loses nothing. */
  readonly isRenewed: boolean;
}

export interface SessionSettings {
  readonly maxSessions: number;
  /** Time without a turn after which a session ends, milliseconds. */
  readonly idleMs: number;
}

export interface SessionPlan<S extends IdleSession> {
  readonly end: readonly S[];
  /** When the next session will have been idle for too long, monotonic; infinite without sessions. */
  readonly nextMs: number;
}

/**
 * Returns the sessions to end: sessions that were idle for too long, and the least valuable ones beyond the maximum.
 */
export function planSessions<S extends IdleSession>(
  sessions: readonly S[],
  { maxSessions, idleMs }: SessionSettings,
  nowMs: number,
): SessionPlan<S> {
  const recent = sessions.filter(({ sinceMs }) => nowMs - sinceMs < idleMs);
  const left = mostWanted(recent, maxSessions).slice(0, maxSessions);
  return {
    end: sessions.filter((session) => !left.includes(session)),
    nextMs: Math.min(...left.map(({ sinceMs }) => sinceMs + idleMs)),
  };
}

/**
 * Sorts the sessions by value, the most valuable first. First come sessions that a waiting job will continue, then
 * sessions in the middle of a turn, whose end would lose more; each key holder has at most its share of these. Known
 * conversations follow, so that a single request never ends one. Then come questions, one of each client before the
 * second of any, so that a client with many questions loses its own; a renewed process counts as such a question if its
 * key holder has nothing else. Then come the sessions beyond a share. Side requests and forced calls follow, because they
 * are hardly ever continued. All other renewed processes come last, one of each client before the second of any.
 */
function mostWanted<S extends IdleSession>(sessions: readonly S[], maxSessions: number): readonly S[] {
  const newestFirst = sessions.toSorted((a, b) => b.sinceMs - a.sinceMs);
  const wanted = newestFirst.filter(({ isAwaited }) => isAwaited);
  const isHeld = ({ isWaiting, guess }: S) => isWaiting && guess?.kind !== 'call';
  const waiting = newestFirst.filter((session) => isHeld(session) && !session.isAwaited);
  const renewed = newestFirst.filter(({ isRenewed }) => isRenewed);
  const endable = newestFirst.filter((session) => !isHeld(session) && !session.isAwaited && !session.isRenewed);
  const clients = [...new Set(sessions.map(({ client }) => client))];
  const share = maxSessions / new Set(clients.map(holderOf)).size;
  const [within, beyond] = splitByShare(waiting, share, clients);
  const only = onlyOfHolders(sessions, renewed);
  const of = (kind: string) => endable.filter(({ guess }) => (guess?.kind ?? 'conversation') === kind);
  return [
    ...wanted,
    ...within,
    ...of('conversation'),
    ...inTurnOfClients([...of('question'), ...only]),
    ...beyond,
    ...of('side'),
    ...of('call'),
    ...inTurnOfClients(renewed.filter((session) => !only.includes(session))),
  ];
}

/**
 * Splits the sessions. The first part has the sessions within the share of their key holder, which is divided equally
 * among its clients; each client has at least one. The second part has all other sessions.
 */
function splitByShare<S extends IdleSession>(sessions: readonly S[], share: number, clients: readonly ClientText[]) {
  const counts = new Map<string, number>();
  const [within, beyond]: [S[], S[]] = [[], []];
  for (const session of sessions) {
    const { client } = session;
    const holder = holderOf(client);
    const siblings = clients.filter((other) => holderOf(other) === holder).length;
    const [ofHolder, ofClient] = [`${holder} together`, client].map((name) => counts.get(name) ?? 0) as [
      number,
      number,
    ];
    const isWithin = ofHolder + 1 <= Math.max(1, share) && ofClient + 1 <= Math.max(1, share / siblings);
    if (isWithin) counts.set(`${holder} together`, ofHolder + 1).set(client, ofClient + 1);
    (isWithin ? within : beyond).push(session);
  }
  return [within, beyond] as const;
}

/**
 * Returns the first renewed process of each key holder that has no other session. Without it, the calls and questions of
 * one client that are never continued could take all places, and each question of the others would need a start.
 */
function onlyOfHolders<S extends IdleSession>(sessions: readonly S[], renewed: readonly S[]): readonly S[] {
  const others = sessions.filter(({ isRenewed }) => !isRenewed);
  const taken = new Set(others.map(({ client }) => holderOf(client)));
  return renewed.filter(({ client }) => {
    const isFirst = !taken.has(holderOf(client));
    taken.add(holderOf(client));
    return isFirst;
  });
}

/** Orders the sessions in rounds: the first of each client, then the second of each, and so on. */
function inTurnOfClients<S extends IdleSession>(sessions: readonly S[]): readonly S[] {
  const counts = new Map<string, number>();
  const ranked = sessions.map((session) => {
    const { client } = session;
    const rank = counts.get(client) ?? 0;
    counts.set(client, rank + 1);
    return { session, rank };
  });
  return ranked.toSorted((a, b) => a.rank - b.rank).map(({ session }) => session);
}
