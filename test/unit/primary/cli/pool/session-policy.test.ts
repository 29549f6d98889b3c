import { type IdleSession, planSessions } from '../../../../../src/primary/cli/pool/session-policy.js';
import type { ClientText } from '../../../../../src/shared/client.js';

interface Named extends IdleSession {
  readonly name: string;
}

const idle = { isWaiting: false, isAwaited: false, isRenewed: false, client: 'key ada' as const };

/** Returns a session of a conversation that continues. */
function session(name: string, sinceMs: number, differences: Partial<Named> = {}): Named {
  return { ...idle, name, sinceMs, guess: null, ...differences };
}

const question = (name: string, sinceMs: number, client: ClientText = 'key ada') =>
  session(name, sinceMs, { client, guess: { kind: 'question', client } });
const side = (name: string, sinceMs: number, client: ClientText = 'key ada') =>
  session(name, sinceMs, { client, guess: { kind: 'side', client } });
const waiting = (name: string, sinceMs: number, client: ClientText = 'key ada') =>
  session(name, sinceMs, { isWaiting: true, client });
const renewed = (name: string, sinceMs: number, client: ClientText = 'key ada') =>
  session(name, sinceMs, { isRenewed: true, client });

/** Returns the names of the sessions to end, and the time of the next check. */
function plan(sessions: readonly Named[], { maxSessions = 10, idleMs = 1000, nowMs = 0 }) {
  const { end, nextMs } = planSessions(sessions, { maxSessions, idleMs }, nowMs);
  return { end: end.map(({ name }) => name).toSorted(), nextMs };
}

describe('The plan for sessions', () => {
  it('ends none while there is space and time, and checks again when the oldest will have been idle too long', () => {
    const sessions = [session('a', 300), session('b', 100), session('c', 200)];
    expect(plan(sessions, { nowMs: 500 })).toEqual({ end: [], nextMs: 1100 });
  });

  it('never checks again if there is no session', () => {
    expect(plan([], {})).toEqual({ end: [], nextMs: Infinity });
  });

  it('retains the most recent ones if there are too many, in any order', () => {
    const sessions = [session('b', 200), session('d', 400), session('a', 100), session('c', 300)];
    expect(plan(sessions, { maxSessions: 2, nowMs: 500 })).toEqual({ end: ['a', 'b'], nextMs: 1300 });
  });

  it('ends no conversation in favour of a single question, however new that is', () => {
    const sessions = [session('a', 100), question('b', 200), question('c', 300), side('d', 400)];
    expect(plan(sessions, { maxSessions: 3, nowMs: 500 }).end).toEqual(['d']);
    expect(plan(sessions, { maxSessions: 2, nowMs: 500 }).end).toEqual(['b', 'd']);
    expect(plan(sessions, { maxSessions: 1, nowMs: 500 }).end).toEqual(['b', 'c', 'd']);
  });

  it('ends the newest question immediately if conversations have all places', () => {
    const conversations = ['a', 'b', 'c', 'd'].map((name, index) => session(name, index));
    expect(plan([...conversations, question('e', 100, 'key eve')], { maxSessions: 4, nowMs: 100 }).end).toEqual(['e']);
    expect(plan([...conversations, session('f', 100)], { maxSessions: 4, nowMs: 100 }).end).toEqual(['a']);
  });

  it('retains the first question of a conversation while four side requests follow it', () => {
    const sessions = [question('hello', 0), side('s1', 10), side('s2', 20), side('s3', 30), side('s4', 40)];
    expect(plan(sessions, { maxSessions: 4, nowMs: 50 }).end).toEqual(['s1']);
    expect(plan(sessions, { maxSessions: 1, nowMs: 50 }).end).toEqual(['s1', 's2', 's3', 's4']);
  });

  it('retains the question that follows its side request', () => {
    const sessions = [side('title 1', 0), question('1', 10), side('title 2', 20), question('2', 30)];
    expect(plan(sessions, { maxSessions: 2, nowMs: 50 }).end).toEqual(['title 1', 'title 2']);
  });

  it('retains the questions of two clients whose side requests arrive in between', () => {
    const ofAda = [question('a', 0), side('a1', 10), side('a2', 30), side('a3', 50)];
    const ofBob = [
      question('b', 20, 'key bob'),
      side('b1', 40, 'key bob'),
      side('b2', 60, 'key bob'),
      side('b3', 70, 'key bob'),
    ];
    expect(plan([...ofAda, ...ofBob], { maxSessions: 2, nowMs: 100 }).end).toHaveLength(6);
    expect(plan([...ofAda, ...ofBob], { maxSessions: 3, nowMs: 100 }).end).toEqual(['a1', 'a2', 'a3', 'b1', 'b2']);
  });

  it('retains one question of each client before the second of any, the newest of clients with many', () => {
    const burst = Array.from({ length: 6 }, (_, index) => question(`e${index}`, 100 + index, 'key eve'));
    const sessions = [question('a', 0), question('b', 50, 'key bob'), ...burst];
    expect(plan(sessions, { maxSessions: 4, nowMs: 200 }).end).toEqual(['e0', 'e1', 'e2', 'e3']);
    expect(plan(sessions, { maxSessions: 3, nowMs: 200 }).end).toEqual(['e0', 'e1', 'e2', 'e3', 'e4']);
    expect(plan(sessions, { maxSessions: 2, nowMs: 200 }).end).toEqual(['a', 'e0', 'e1', 'e2', 'e3', 'e4']);
  });

  it('ends renewed processes first, and the second of a client before the first of any', () => {
    const sessions = [
      side('s', 0),
      renewed('a1', 30),
      renewed('a2', 40),
      renewed('b', 10, 'key bob'),
      question('q', 5),
    ];
    expect(plan(sessions, { maxSessions: 4, nowMs: 50 }).end).toEqual(['a1']);
    expect(plan(sessions, { maxSessions: 3, nowMs: 50 }).end).toEqual(['a1', 'a2']);
    expect(plan(sessions, { maxSessions: 1, nowMs: 50 }).end).toEqual(['a1', 'a2', 'b', 's']);
    expect(plan(sessions, { nowMs: 1011 }).end).toEqual(['b', 'q', 's']);
  });

  it.each([
    ['open calls', (name: string, sinceMs: number) => waiting(name, sinceMs, 'key eve')],
    ['questions', (name: string, sinceMs: number) => question(name, sinceMs, 'key eve')],
    ['side requests', (name: string, sinceMs: number) => side(name, sinceMs, 'key eve')],
  ])('leaves a client its only renewed process while another one has left %s', (_, leave) => {
    const left = [1, 2, 3, 4].map((sinceMs) => leave(`e${sinceMs}`, sinceMs));
    const sessions = [
      ...left,
      renewed('b1', 5, 'key bob'),
      renewed('b2', 6, 'key bob'),
      renewed('app', 7, 'key bob/app'),
    ];
    expect(plan(sessions, { maxSessions: 4, nowMs: 10 }).end).toEqual(['b1', 'b2', 'e1']);
    const conversations = [1, 2, 3, 4].map((sinceMs) => session(`c${sinceMs}`, sinceMs, { client: 'key eve' }));
    expect(plan([...conversations, ...sessions], { maxSessions: 4, nowMs: 10 }).end).toContain('app');
  });

  it('ends the renewed processes of a client before its open calls', () => {
    const sessions = [
      waiting('w1', 1, 'key eve'),
      waiting('w2', 2, 'key eve'),
      renewed('e', 3, 'key eve'),
      session('a', 4),
    ];
    expect(plan(sessions, { maxSessions: 3, nowMs: 10 }).end).toEqual(['e']);
  });

  it('gives the place of one that has been idle too long to another', () => {
    const sessions = [session('a', 0), question('b', 900)];
    expect(plan(sessions, { maxSessions: 1, nowMs: 1000 })).toEqual({ end: ['a'], nextMs: 1900 });
  });

  it('ends one that has been idle too long, and no sooner', () => {
    const sessions = [session('a', 0), session('b', 1)];
    expect(plan(sessions, { nowMs: 999 })).toEqual({ end: [], nextMs: 1000 });
    expect(plan(sessions, { nowMs: 1000 })).toEqual({ end: ['a'], nextMs: 1001 });
    expect(plan(sessions, { nowMs: 1001 })).toEqual({ end: ['a', 'b'], nextMs: Infinity });
  });

  it('ends all of them if none are allowed', () => {
    const sessions = [session('a', 100), session('b', 200)];
    expect(plan(sessions, { maxSessions: 0, nowMs: 300 })).toEqual({ end: ['a', 'b'], nextMs: Infinity });
  });

  it('prefers a process that waits for results to any conversation, however old its turn is', () => {
    const asking = { ...question('w', 0), isWaiting: true };
    const sessions = [session('a', 300), asking, session('b', 400), question('c', 500)];
    expect(plan(sessions, { maxSessions: 2, nowMs: 600 }).end).toEqual(['a', 'c']);
    expect(plan(sessions, { maxSessions: 1, nowMs: 600 }).end).toEqual(['a', 'b', 'c']);
  });

  it('retains the most recent of the waiting ones', () => {
    const sessions = [100, 300, 200].map((sinceMs) => waiting(`w${sinceMs}`, sinceMs));
    expect(plan(sessions, { maxSessions: 2, nowMs: 400 }).end).toEqual(['w100']);
  });

  it('limits one key holder to its share of open calls while others have a conversation or a question', () => {
    const calls = (client: ClientText, ...times: readonly number[]) =>
      times.map((sinceMs) => waiting(`${client.slice(4)}${sinceMs}`, sinceMs, client));
    const greedy = calls('key eve', 100, 200, 300, 400);
    const ofBob = (name: string, sinceMs: number) => ({
      ...question(name, sinceMs, 'key bob'),
      client: 'key bob' as const,
    });
    expect(plan(greedy, { maxSessions: 4, nowMs: 500 }).end).toEqual([]);
    expect(plan([...greedy, ofBob('b1', 450)], { maxSessions: 4, nowMs: 500 }).end).toEqual(['eve100']);
    const two = [ofBob('b1', 450), ofBob('b2', 460), ofBob('b3', 470)];
    expect(plan([...greedy, ...two], { maxSessions: 4, nowMs: 500 }).end).toEqual(['b1', 'eve100', 'eve200']);
    const all = [...greedy, ...calls('key bob', 10, 20), ...calls('key joe', 30)];
    expect(plan(all, { maxSessions: 4, nowMs: 500 }).end).toEqual(['bob10', 'eve100', 'eve200']);
    expect(plan(all, { maxSessions: 2, nowMs: 500 }).end).toHaveLength(5);
    const fromBob = { ...side('s', 450, 'key bob'), client: 'key bob' as const };
    expect(plan([...greedy, fromBob], { maxSessions: 4, nowMs: 500 }).end).toEqual(['s']);
  });

  it('divides the share of a key holder among its clients', () => {
    const calls = (client: ClientText, ...times: readonly number[]) =>
      times.map((sinceMs) => waiting(`${client} ${sinceMs}`, sinceMs, `key app/${client}`));
    const greedy = calls('key eve', 100, 200, 300, 400);
    const question = session('joe', 450, { client: 'key app/joe' });
    expect(plan([...greedy, question], { maxSessions: 4, nowMs: 500 }).end).toEqual(['key eve 100']);
    const other = session('bob', 10, { client: 'key bob' as const });
    expect(plan([...greedy, question, other], { maxSessions: 4, nowMs: 500 }).end).toEqual([
      'key eve 100',
      'key eve 200',
    ]);
  });

  it('ends one that a queued job will continue only as the last resort', () => {
    const awaited = { ...side('s', 0), isAwaited: true };
    const both = session('both', 10, { isWaiting: true, isAwaited: true });
    const sessions = [session('a', 500), waiting('w', 400), awaited, both];
    expect(plan(sessions, { maxSessions: 3, nowMs: 600 }).end).toEqual(['a']);
    expect(plan(sessions, { maxSessions: 2, nowMs: 600 }).end).toEqual(['a', 'w']);
    expect(plan(sessions, { maxSessions: 1, nowMs: 600 }).end).toEqual(['a', 's', 'w']);
  });

  it('ends one that waits, or is awaited, when that takes too long', () => {
    const sessions = [waiting('w', 0), session('a', 0, { isAwaited: true })];
    expect(plan(sessions, { nowMs: 999 })).toEqual({ end: [], nextMs: 1000 });
    expect(plan(sessions, { nowMs: 1000 }).end).toEqual(['a', 'w']);
  });

  it('does not change the list it receives', () => {
    const sessions = Object.freeze([session('a', 100), session('b', 200)]);
    expect(plan(sessions, { maxSessions: 1 }).end).toEqual(['a']);
    expect(sessions.map(({ name }) => name)).toEqual(['a', 'b']);
  });
});
