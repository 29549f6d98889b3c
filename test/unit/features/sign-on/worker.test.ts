import { createPart, SignOn } from '../../../../src/features/sign-on/worker.js';
import { digestOf } from '../../../../src/shared/config/api-keys.js';
import type { WorkerPersonLine } from '../../../../src/shared/ipc/protocol.js';
import { authenticate, isAccepted, maySee, trustProxies } from '../../../../src/worker/access/authenticate.js';
import { KeyRing } from '../../../../src/worker/access/keys.js';
import type { Handler } from '../../../../src/worker/http/exchange.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { passed, serveWith } from '../../../support/doors/express-server.js';
import { FakePrimary } from '../../../support/jobs/fake-primary.js';

const line = (name: string, differences: Partial<WorkerPersonLine> = {}): WorkerPersonLine => {
  return { name, scopes: ['ask', 'chat'], isCapped: false, expiresAt: null, ...differences };
};

/** Creates a service that trusts the proxies of the option, with these lines for people. */
function createParts(personLines: WorkerPersonLine[] = [], { trusted = ['127.0.0.1'], isOwnJob = false } = {}) {
  const clock = new FakeClock();
  const primary = new FakePrimary({ signedOn: {} });
  const users = {
    admitCaller: async () => 'user zoe' as const,
    name: async () => 'user zoe' as const,
    admitProxy: async () => {},
  };
  const parts = { users, ownJobs: { isOf: async () => isOwnJob }, primary: primary.asPrimary, clock };
  const signOn = new SignOn('remote-user', 'remote-groups', parts);
  const keys = new KeyRing();
  const rights = { scopes: ['ask' as const], isCapped: false, hasSubclients: false, expiresAt: null };
  keys.setFirstKeys({
    keys: [{ name: 'bob', client: 'key bob', digest: digestOf('key-of-bob'), ...rights }],
    personLines,
  });
  const openRequests = { watch: () => {} };
  const authority = { keys, users, wrongKeys: { count: async () => {} }, peopleOf: () => signOn, openRequests, clock };
  const trust: Handler = (req, _res, next) => {
    trustProxies(req.app as never, trusted);
    next();
  };
  const seen: Handler = (req, res, next) => {
    if (req.query.scope === undefined) return next();
    res.json({ sees: maySee(authority, req, 'admin'), stays: isAccepted(authority, req) });
  };
  const handlers = [trust, signOn.guard(), seen, authenticate(authority, 'ask'), passed];
  return { handlers, primary, clock };
}

/** Returns a header whose UTF-8 is sent: requests are written in Latin 1. */
const utf8 = (header: string) => Buffer.from(header).toString('latin1');
const ada = 'Remote-User: ada@example.org';

/** Serves requests of a proxy, which sends the groups of each person: none if the test names none. */
async function serveProxy(handlers: Parameters<typeof serveWith>[0]) {
  const server = await serveWith(handlers);
  const has = (headers: readonly string[], name: RegExp) => headers.some((header) => name.test(header));
  const get = (...headers: string[]) => {
    const isWhole = !has(headers, /^remote-user:/i) || has(headers, /^remote.groups:/i);
    return server.get(...headers, ...(isWhole ? [] : ['Remote-Groups:']));
  };
  return { get, getExactly: server.get, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

describe('A person whom a trusted proxy has signed on', () => {
  it('is a client, without a key', async () => {
    await using server = await serveProxy(createParts().handlers);
    expect(await server.get(ada)).toMatchObject({ status: 200, body: { client: 'sso ada@example.org' } });
    expect(await server.get('remote-user: ada', 'Remote-Groups: a,Lab Users,c:d')).toMatchObject({
      body: { client: 'sso ada' },
    });
  });

  it('is the client of the key that it sends', async () => {
    await using server = await serveProxy(createParts().handlers);
    expect(await server.get(ada, 'X-API-Key: key-of-bob')).toMatchObject({ body: { client: 'key bob' } });
    expect(await server.get(ada, 'X-API-Key: wrong-key')).toMatchObject({ status: 401 });
  });

  it('has the scopes of its line, and else those of its first group in the file', async () => {
    const lines = [
      line('*', { scopes: ['chat'] }),
      line('group:b'),
      line('group:a', { scopes: ['chat'] }),
      line('eve'),
    ];
    await using server = await serveProxy(createParts(lines).handlers);
    const status = async (...headers: string[]) => (await server.get(...headers)).status;
    expect(await status(ada)).toBe(403);
    expect(await status(ada, 'Remote-Groups: a')).toBe(403);
    expect(await status(ada, 'Remote-Groups: a,b')).toBe(200);
    expect(await status('Remote-User: eve', 'Remote-Groups: a')).toBe(200);
    expect((await server.get(ada)).body.message).toBe(
      'the access of ada@example.org lacks the scope ask: ask the operator for it',
    );
  });

  it('is refused from the day on that its line names', async () => {
    await using server = await serveProxy(createParts([line('ada', { expiresAt: 0 })]).handlers);
    expect(await server.get('Remote-User: ada')).toMatchObject({
      status: 401,
      body: { message: expect.stringMatching(/^the access of ada expired at .*Z: ask the operator for a new one$/) },
    });
    expect((await server.get('Remote-User: bob')).status).toBe(200);
  });

  it('is reported to the primary with its groups: when they change, and once a minute', async () => {
    const { handlers, primary, clock } = createParts();
    await using server = await serveProxy(handlers);
    await server.get(ada);
    await server.get(ada);
    await server.get(ada, 'Remote-Groups: a,b');
    await clock.advance(60_000);
    await server.get(ada, 'Remote-Groups: a,b');
    const client = 'sso ada@example.org';
    expect(primary.calls.map(({ request }) => request)).toEqual([
      { client, groups: [] },
      { client, groups: ['a', 'b'] },
      { client, groups: ['a', 'b'] },
    ]);
  });
});

describe('A request without such a header', () => {
  it('needs a key', async () => {
    await using server = await serveProxy(createParts().handlers);
    expect((await server.get()).status).toBe(401);
    expect(await server.get('X-API-Key: key-of-bob')).toMatchObject({ body: { client: 'key bob' } });
  });
});

describe('A header for the sign-on is refused', () => {
  const refused = { status: 400, body: { error: 'validation_error' } };

  it.each<[string, string[]]>([
    ['twice', [ada, ada]],
    ['twice, with different names', [ada, 'Remote-User: eve']],
    ['twice, in another case', [ada, 'REMOTE-USER: eve']],
    ['twice for groups', [ada, 'Remote-Groups: a', 'Remote-Groups: admins']],
    ['with a list of names', ['Remote-User: ada,eve']],
    ['with a capital letter', ['Remote-User: Ada']],
    ['with a Cyrillic letter', [utf8('Remote-User: \u0430da')]],
    ['with a letter that is wide', [utf8('Remote-User: \uff41da')]],
    ['with a letter of Latin 1', ['Remote-User: ad\u00e4']],
    ['with a blank inside', ['Remote-User: ada eve']],
    ['with a no-break space', ['Remote-User: ada\u00a0']],
    ['with a tab inside', ['Remote-User: ada\teve']],
    ['with a slash', ['Remote-User: ada/eve']],
    ['with the kind of a client', ['Remote-User: key bob']],
    ['with a name of 121 characters', [`Remote-User: ${'a'.repeat(121)}`]],
    ['without a name', ['Remote-User:']],
    ['with groups alone', ['Remote-Groups: admins']],
    ['with a blank before a group', [ada, 'Remote-Groups: a, admins']],
    ['with 201 groups', [ada, `Remote-Groups: ${Array.from({ length: 201 }, (_, index) => index).join()}`]],
    ['with an empty group', [ada, 'Remote-Groups: a,,b']],
    ['with a group of other letters', [ada, utf8('Remote-Groups: \u0430dmins')]],
    ['with _ instead of -', ['Remote_User: ada']],
    ['with _ instead of -, beside the right one', [ada, 'remote_groups: admins']],
  ])('%s', async (_, headers) => {
    await using server = await serveProxy(createParts().handlers);
    expect(await server.get(...headers)).toMatchObject(refused);
    expect((await server.get(ada)).status).toBe(200);
  });

  it.each<[string, string[]]>([
    ['the user', [ada]],
    ['the groups', ['Remote-Groups: admins']],
    ['an empty user', ['Remote-User:']],
    ['the user, and the address of the proxy as that of the client', [ada, 'X-Forwarded-For: 10.1.2.3']],
    ['the user, and a key', [ada, 'X-API-Key: key-of-bob']],
  ])('from an address that is no trusted proxy, with %s', async (_, headers) => {
    await using server = await serveProxy(createParts([], { trusted: ['10.0.0.0/8'] }).handlers);
    expect(await server.get(...headers)).toMatchObject(refused);
  });

  it('without groups, which a client could make the proxy drop', async () => {
    await using server = await serveProxy(createParts([line('*', { scopes: ['ask'] })]).handlers);
    expect(await server.getExactly(ada)).toMatchObject({
      ...refused,
      body: { details: [{ path: 'remote-groups', message: expect.stringContaining('for each person') }] },
    });
    expect((await server.getExactly(ada, 'Remote-Groups:')).status).toBe(200);
    expect((await server.getExactly(ada, 'Connection: close, Remote-Groups', 'Remote-Groups: a')).status).toBe(200);
  });

  it('from a job of this service', async () => {
    await using server = await serveProxy(createParts([], { isOwnJob: true }).handlers);
    expect(await server.get(ada)).toMatchObject(refused);
  });
});

describe('The sign-on', () => {
  it('does not exist if no header is configured', async () => {
    const primary = new FakePrimary({ signOnHeaders: { userHeader: null, groupsHeader: null } }).asPrimary;
    expect(await createPart({ primary } as never)).toEqual({ routes: [] });
  });

  it('ignores other headers', async () => {
    await using server = await serveProxy(createParts().handlers);
    const others = ['Remote-Name: Ada', 'X_Y: z', 'Remote-User2: eve'];
    expect(await server.get(ada, ...others)).toMatchObject({ body: { client: 'sso ada@example.org' } });
  });
});
