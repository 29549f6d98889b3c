import { type IdleSession, planSessions } from '../../../../src/primary/cli/pool/session-policy.js';

interface Named extends IdleSession {
  readonly name: string;
}

function session(name: string, sinceMs: number, isGuess = false): Named {
  return { name, sinceMs, isGuess };
}

/** Names of the sessions that end, and when to look again. */
function plan(sessions: readonly Named[], { maxSessions = 10, idleMs = 1000, nowMs = 0 }) {
  const { end, nextMs } = planSessions(sessions, { maxSessions, idleMs }, nowMs);
  return { end: end.map(({ name }) => name).toSorted(), nextMs };
}

describe('the plan for sessions', () => {
  it('ends none while there is room and time, and looks again when the oldest will have been idle for too long', () => {
    const sessions = [session('a', 300), session('b', 100), session('c', 200)];
    expect(plan(sessions, { nowMs: 500 })).toEqual({ end: [], nextMs: 1100 });
  });

  it('never looks again where there is no session', () => {
    expect(plan([], {})).toEqual({ end: [], nextMs: Number.POSITIVE_INFINITY });
  });

  it('keeps the most recent ones where there are too many, whatever their order', () => {
    const sessions = [session('b', 200), session('d', 400), session('a', 100), session('c', 300)];
    expect(plan(sessions, { maxSessions: 2, nowMs: 500 })).toEqual({ end: ['a', 'b'], nextMs: 1300 });
  });

  it('keeps conversations rather than single questions, but always the last one that was asked', () => {
    const sessions = [session('a', 100), session('b', 200, true), session('c', 300, true), session('d', 400, true)];
    expect(plan(sessions, { maxSessions: 2, nowMs: 500 }).end).toEqual(['b', 'c']);
    expect(plan(sessions, { maxSessions: 3, nowMs: 500 }).end).toEqual(['b']);
    expect(plan(sessions, { maxSessions: 1, nowMs: 500 }).end).toEqual(['a', 'b', 'c']);
  });

  it('ends one that is idle for too long, and no sooner', () => {
    const sessions = [session('a', 0), session('b', 1)];
    expect(plan(sessions, { nowMs: 999 })).toEqual({ end: [], nextMs: 1000 });
    expect(plan(sessions, { nowMs: 1000 })).toEqual({ end: ['a'], nextMs: 1001 });
    expect(plan(sessions, { nowMs: 1001 })).toEqual({ end: ['a', 'b'], nextMs: Number.POSITIVE_INFINITY });
  });

  it('ends all of them where there may be none', () => {
    const sessions = [session('a', 100), session('b', 200)];
    expect(plan(sessions, { maxSessions: 0, nowMs: 300 })).toEqual({
      end: ['a', 'b'],
      nextMs: Number.POSITIVE_INFINITY,
    });
  });

  it('leaves the list that it is given as it was', () => {
    const sessions = Object.freeze([session('a', 100), session('b', 200)]);
    expect(plan(sessions, { maxSessions: 1 }).end).toEqual(['a']);
    expect(sessions.map(({ name }) => name)).toEqual(['a', 'b']);
  });
});
