import { noClient } from '../../../../src/shared/client.js';
import { digestOf } from '../../../../src/shared/config/api-keys.js';
import type { WorkerKey, WorkerPersonLine } from '../../../../src/shared/ipc/protocol.js';
import { authenticate } from '../../../../src/worker/access/authenticate.js';
import { KeyRing } from '../../../../src/worker/access/keys.js';
import { OpenRequests } from '../../../../src/worker/access/open-requests.js';
import type { Handler } from '../../../../src/worker/http/exchange.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { until } from '../../../support/basics/until.js';
import { RawConnection, request } from '../../../support/clients/raw-http.js';
import { serveWith } from '../../../support/doors/express-server.js';

const endsAt = new FakeClock().now() + 60_000;
const ada: WorkerKey = {
  ...{ name: 'ada', client: 'key ada', digest: digestOf('key-of-ada'), scopes: ['ask'] },
  ...{ isCapped: false, hasSubclients: false, expiresAt: endsAt },
};
const bob: WorkerKey = { ...ada, name: 'bob', client: 'key bob', digest: digestOf('key-of-bob') };
const eve: WorkerPersonLine = { name: 'eve', scopes: ['ask'], isCapped: false, expiresAt: endsAt };

interface Access {
  readonly keys?: WorkerKey[];
  readonly people?: WorkerPersonLine[];
  readonly passedMs?: number;
}

/** Ways in which the key of ada and the person eve lose their access. */
const losses: Readonly<Record<string, Access>> = {
  'its key or line is removed and another line refuses it': { keys: [bob], people: [{ ...eve, expiresAt: 0 }] },
  'its key has another value': {
    keys: [{ ...ada, digest: digestOf('new') }, bob],
    people: [{ ...eve, scopes: [] }],
  },
  'its line has a fault': { keys: [{ ...ada, expiresAt: 0 }, bob], people: [{ ...eve, expiresAt: 0 }] },
  'its line has another expiry': { keys: [{ ...ada, expiresAt: 1 }, bob], people: [{ ...eve, expiresAt: 1 }] },
  'its scope is removed': { keys: [{ ...ada, scopes: ['chat'] }, bob], people: [{ ...eve, scopes: ['chat'] }] },
  'its time is over': { passedMs: 60_000 },
};

/** Changes that take nothing from ada and eve. */
const others: Readonly<Record<string, Access>> = {
  nothing: { passedMs: 50_000 },
  'the key of another client': { keys: [ada], people: [eve, { ...eve, name: 'zoe', expiresAt: 0 }] },
  'another option': {
    keys: [{ ...ada, isCapped: true, scopes: ['ask', 'chat'] }, bob],
    people: [{ ...eve, isCapped: true, expiresAt: null }],
  },
};

const clients = { 'a key': 'X-API-Key: key-of-ada', 'a person': 'Remote-User: eve' } as const;

/** What the handler of an open request has done. */
const states: Readonly<Record<string, Handler>> = {
  'an upload': () => {},
  'a download': (_req, res) => void res.write('bytes'),
  'a change of keys': (_req, res) => {
    res.locals.changesKeys = true;
  },
  'a job': (_req, res) => {
    res.locals.job = { hasStarted: true, figures: () => ({}) as never };
  },
};

/** Opens a request of this client in this state, and changes the keys. */
async function openRequest(client: keyof typeof clients, state: Handler) {
  const [clock, keys] = [new FakeClock(), new KeyRing()];
  keys.setFirstKeys({ keys: [ada, bob], personLines: [eve] });
  const personOf = ({ headers }: { headers: Record<string, unknown> }) =>
    headers['remote-user'] === undefined ? null : { name: String(headers['remote-user']), groups: [] };
  const authority = {
    ...{ keys, clock, peopleOf: () => ({ personOf, report: async () => {} }), wrongKeys: { count: async () => {} } },
    ...{
      users: { admitCaller: async () => noClient, name: async () => noClient },
      openRequests: new OpenRequests(keys, clock),
    },
  };
  const server = await serveWith([authenticate(authority, 'ask'), state], { clock });
  const connection = await RawConnection.open(server.port);
  connection.send(request('POST /', [clients[client], 'Content-Length: 9'], 'half'));
  await until(() => clock.pending > 0, 'the request to be accepted');
  const change = async ({ keys: changed = [ada, bob], people = [eve], passedMs = 0 }: Access) => {
    keys.replace({ keys: changed, personLines: people });
    await clock.advance(passedMs);
  };
  const close = async () => {
    connection[Symbol.dispose]();
    await server[Symbol.asyncDispose]();
  };
  return { clock, connection, change, [Symbol.asyncDispose]: close };
}

const cases = Object.keys(clients).flatMap((client) => Object.keys(states).map((state) => [client, state] as const));

describe.each(cases)('An open request of %s, %s,', (client, state) => {
  const open = () => openRequest(client as keyof typeof clients, states[state] as Handler);

  it.each(Object.keys(losses))('ends after %s', async (loss) => {
    await using opened = await open();
    const { clock, connection } = opened;
    await opened.change(losses[loss] as Access);
    await clock.advance(500);
    if (state !== 'an upload') {
      expect(clock.pending).toBe(1);
      await clock.advance(3000);
    }
    if (state === 'a download') expect((await connection.answer()).headers['content-length']).toBeUndefined();
    else
      expect(await connection.answer()).toMatchObject({
        status: 401,
        headers: { 'www-authenticate': 'Bearer realm="prompt-relay"' },
        body: { error: 'unauthorized' },
      });
    await connection.closed();
    await until(() => clock.pending === 0, 'the end of the checks');
  });

  it.each(Object.keys(others))('goes on after a change of %s', async (change) => {
    await using opened = await open();
    await opened.change(others[change] as Access);
    await opened.clock.advance(5000);
    expect(opened.clock.pending).toBe(1);
  });
});
