import { RelayError } from '../../../src/shared/errors.js';
import { subClientByHeader } from '../../../src/worker/doors/sub-clients.js';
import type { Handler, Reply } from '../../../src/worker/http/exchange.js';
import { jobDone } from '../../support/job-records.js';
import { always, begun, type OpenAiDoor, openAiDoor, said } from '../../support/openai-door.js';

const chat = { model: 'eliza', messages: [{ role: 'user', content: 'Hi' }] };
const header = { 'X-OpenWebUI-User-Id': 'zoe' };

/** The door for the holder of a key, and the clients from whose windows was taken. */
async function heldBy(hasSubclients: boolean, take: (client: string) => void = () => {}) {
  const taken: string[] = [];
  const own = async ({ locals }: Reply) => {
    taken.push(locals.client);
    take(locals.client);
  };
  const key = { name: 'ui', digest: '', scopes: [], isCapped: false, hasSubclients, expiresAt: null };
  const asHolder: Handler = (_req, res, next) => {
    res.locals.client = 'key ui';
    res.locals.key = key;
    next();
  };
  const byHeader: Handler = (req, res, next) => void subClientByHeader(own)(req, res, next).catch(next);
  const run = always(...begun, ...said('Hello'), jobDone());
  return { door: await openAiDoor(run, { before: [asHolder, byHeader], take: own }), taken };
}

async function clientOf(door: OpenAiDoor, body: object, headers: Record<string, string> = {}): Promise<string> {
  expect((await door.post('/v1/chat/completions', { ...chat, ...body }, headers)).status).toBe(200);
  return door.job.client;
}

describe('A key that speaks for many', () => {
  it('has them told apart by the header, else by the body', async () => {
    const { door, taken } = await heldBy(true);
    await using _ = door;
    expect(await clientOf(door, {}, header)).toBe('key ui/zoe');
    expect(await clientOf(door, { user: 'joe' })).toBe('key ui/joe');
    expect(await clientOf(door, { user: 'joe' }, header)).toBe('key ui/zoe');
    expect(await clientOf(door, {})).toBe('key ui');
    expect(await clientOf(door, { user: '' })).toBe('key ui');
    expect(taken).toEqual(['key ui/zoe', 'key ui/joe', 'key ui/zoe', 'key ui', 'key ui']);
    await door.post('/v1/responses', { model: 'eliza', input: 'Hi', user: 'eve' });
    expect(door.job.client).toBe('key ui/eve');
  });

  it('has what names them named as ignored only where it is', async () => {
    const { door } = await heldBy(true);
    await using _ = door;
    const ignored = async (headers: Record<string, string>) =>
      (await door.post('/v1/chat/completions', { ...chat, user: 'joe' }, headers)).headers.get('x-ignored-parameters');
    expect([await ignored({}), await ignored(header)]).toEqual([null, 'user']);
  });

  it('has each of them in a window of his own, before a job is asked for', async () => {
    const { door } = await heldBy(true, (client) => {
      if (client === 'key ui/joe') throw new RelayError('rate_limited', 'too many', { retryAfterSeconds: 7 });
    });
    await using _ = door;
    const refused = await door.post('/v1/chat/completions', { ...chat, user: 'joe' });
    expect(refused).toMatchObject({ status: 429, body: { error: { type: 'rate_limit_error', code: 'rate_limited' } } });
    expect(refused.headers.get('retry-after')).toBe('7');
    expect(door.primary.calls).toEqual([]);
    expect(await clientOf(door, { user: 'zoe' })).toBe('key ui/zoe');
  });
});

it('Any other key is one client, whomever its requests name', async () => {
  const { door, taken } = await heldBy(false);
  await using _ = door;
  expect(await clientOf(door, { user: 'joe' }, header)).toBe('key ui');
  expect(taken).toEqual(['key ui']);
});
