import type { ClientText } from '../../../../src/shared/client.js';
import { digestOf } from '../../../../src/shared/config/api-keys.js';
import { RelayError } from '../../../../src/shared/errors.js';
import type { WorkerKey } from '../../../../src/shared/ipc/protocol.js';
import { authenticate, authenticateOperator, isAccepted, maySee } from '../../../../src/worker/access/authenticate.js';
import { KeyRing } from '../../../../src/worker/access/keys.js';
import type { Handler } from '../../../../src/worker/http/exchange.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { answerOf, passed, serveWith } from '../../../support/doors/express-server.js';

const clock = new FakeClock();

function keyOf(name: string, key: string, differences: Partial<WorkerKey> = {}): WorkerKey {
  const scopes = ['ask', 'chat', 'admin', 'metrics'] as WorkerKey['scopes'];
  const plain = { isCapped: false, hasSubclients: false, expiresAt: null };
  return { name, client: `key ${name}`, digest: digestOf(key), scopes, ...plain, ...differences };
}

const keys = [
  keyOf('ada', 'first-key'),
  keyOf('bob', 'second-key', { scopes: ['ask'] }),
  keyOf('eve', 'expired-key', { expiresAt: clock.now() }),
  keyOf('joe', 'expiring-key', { expiresAt: clock.now() + 1 }),
];
const asPassed = { status: 200, body: { passed: true } };

const counted: string[] = [];
beforeEach(() => counted.splice(0));

function authorityWith(held: WorkerKey[] | null) {
  const ring = new KeyRing();
  ring.setFirstKeys({ keys: held, personLines: [] });
  const users = { admitCaller: async () => 'user zoe' as const, name: async () => 'user zoe' as const };
  const wrongKeys = { count: async (caller: ClientText) => void counted.push(caller) };
  return { keys: ring, users, wrongKeys, peopleOf: () => null, openRequests: { watch: () => {} }, clock };
}

const withKeys = authorityWith(keys);
const open = authorityWith(null);

/** Sends a request with these headers to a route of this scope. */
function answerTo(headers: readonly string[] = [], scope: 'ask' | 'chat' = 'ask', authority = withKeys) {
  return answerOf([authenticate(authority, scope), passed], headers);
}

describe('The API key check', () => {
  it('falls back to local users if no key is configured', async () => {
    const { body } = await answerTo(['X-API-Key: anything'], 'ask', open);
    expect(body).toEqual({ passed: true, client: 'user zoe' });
  });

  it.each([
    ['X-API-Key', 'X-API-Key: second-key'],
    ['a bearer token', 'Authorization: Bearer second-key'],
    ['a bearer token in small letters', 'authorization: bearer  second-key '],
  ])('accepts a key in %s, and identifies its client', async (_, header) => {
    expect((await answerTo([header])).body).toEqual({ passed: true, client: 'key bob' });
  });

  it.each(['X-API-Key:', 'X-API-Key:  '])('ignores an empty key next to the right one: %j', async (empty) => {
    expect(await answerTo([empty, 'Authorization: Bearer first-key'])).toMatchObject(asPassed);
    const message = expect.stringContaining('an API key is needed');
    expect(await answerTo([empty])).toMatchObject({ status: 401, body: { message } });
  });

  it('accepts the same key twice', async () => {
    expect(await answerTo(['X-API-Key: first-key', 'Authorization: Bearer first-key'])).toMatchObject(asPassed);
  });

  it.each<[string, string[], string | RegExp]>([
    ['no key', [], 'an API key is needed: send X-API-Key or Authorization: Bearer'],
    ['a key of another scheme', ['Authorization: Basic first-key'], 'an API key is needed'],
    ['a wrong key', ['X-API-Key: third-key'], 'the API key is not valid'],
    ['the name of a key', ['X-API-Key: ada'], 'the API key is not valid'],
    ['the digest of a key', [`X-API-Key: ${keys[0]?.digest}`], 'the API key is not valid'],
    [
      'an expired key',
      ['X-API-Key: expired-key'],
      /^the API key expired at \d{4}-.*Z: ask the operator for a new one$/,
    ],
    [
      'two keys',
      ['X-API-Key: first-key', 'Authorization: Bearer second-key'],
      'the request carries different API keys',
    ],
    ['two tokens', ['Authorization: Bearer first-key', 'Authorization: Bearer x'], 'the request carries different'],
  ])('rejects %s, and never shows it', async (_, headers, message) => {
    const answer = await answerTo(headers);
    expect(answer).toMatchObject({
      status: 401,
      headers: { 'www-authenticate': 'Bearer realm="prompt-relay"' },
      body: { error: 'unauthorized', message: expect.stringMatching(message) },
    });
    expect(answer.text).not.toMatch(/first-key|second-key|third-key|expired-key/);
  });

  it('counts a wrong key for the client that sent it, and does not count a right key', async () => {
    await using server = await serveWith([authenticate(withKeys, 'ask'), passed]);
    for (const key of ['third-key', 'first-key', 'expired-key', 'fourth-key']) await server.get(`X-API-Key: ${key}`);
    await server.get();
    expect(counted).toEqual(['user zoe', 'user zoe']);
    expect(server.log.entries[0]?.fields.client).toBe('user zoe');
  });

  it('answers 429 after too many wrong keys', async () => {
    const count = () => Promise.reject(new RelayError('rate_limited', 'too many', { retryAfterSeconds: 9 }));
    await using server = await serveWith([authenticate({ ...withKeys, wrongKeys: { count } }, 'ask'), passed]);
    expect(await server.get('X-API-Key: third-key')).toMatchObject({ status: 429, headers: { 'retry-after': '9' } });
    expect(await server.get('X-API-Key: first-key')).toMatchObject(asPassed);
  });

  it('accepts a key until the moment it expires', async () => {
    expect(await answerTo(['X-API-Key: expiring-key'])).toMatchObject(asPassed);
  });

  it('rejects a key without the scope, and names the scope', async () => {
    const message = 'this API key lacks the scope chat: ask the operator for it';
    const refused = await answerTo(['X-API-Key: second-key'], 'chat');
    expect(refused).toMatchObject({ status: 403, body: { error: 'forbidden', message } });
    expect(refused.log.entries.at(-1)?.fields.client).toBe('key bob');
    expect(await answerTo(['X-API-Key: first-key'], 'chat')).toMatchObject(asPassed);
  });

  it('rejects every key if the keys file is empty', async () => {
    expect((await answerTo(['X-API-Key: first-key'], 'ask', authorityWith([]))).status).toBe(401);
  });

  it('gives no client the operator scope if no key is configured', async () => {
    const answer = await answerOf([authenticateOperator(open, 'admin'), passed], ['X-API-Key: anything']);
    expect(answer).toMatchObject({ status: 401, body: { error: 'unauthorized' } });
  });

  it('gives a key with the scope operator access', async () => {
    await using server = await serveWith([authenticateOperator(withKeys, 'admin'), passed]);
    expect(await server.get('X-API-Key: first-key')).toMatchObject(asPassed);
    expect((await server.get('X-API-Key: second-key')).status).toBe(403);
    expect((await server.get()).status).toBe(401);
  });
});

describe('An open route', () => {
  const shown = (authority: typeof open): Handler => {
    return (req, res) => void res.json({ sees: maySee(authority, req, 'admin'), stays: isAccepted(authority, req) });
  };

  it('shows everything if no key is configured', async () => {
    expect((await answerOf([shown(open)])).body).toEqual({ sees: true, stays: true });
  });

  it.each<[boolean, boolean, string[]]>([
    [true, true, ['X-API-Key: first-key']],
    [false, false, []],
    [false, true, ['X-API-Key: second-key']],
    [false, false, ['X-API-Key: wrong-key']],
    [false, false, ['X-API-Key: expired-key']],
    [false, false, ['X-API-Key: first-key', 'Authorization: Bearer wrong-key']],
  ])('shows everything: %p, or the view of any key: %p, with %j', async (sees, stays, headers) => {
    expect(await answerOf([shown(withKeys)], headers)).toMatchObject({ status: 200, body: { sees, stays } });
  });
});
