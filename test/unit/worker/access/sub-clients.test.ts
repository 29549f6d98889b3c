import { subClientByHeader } from '../../../../src/worker/access/authenticate.js';
import { asHolder } from '../../../support/doors/express-server.js';
import { always, answerEvents, begun, type SdkDoor, sdkDoor } from '../../../support/doors/sdk-door.js';
import { jobDone } from '../../../support/jobs/job-records.js';

const chat = { model: 'eliza', messages: [{ role: 'user', content: 'Hi' }] };
const header = { 'X-OpenWebUI-User-Id': 'zoe' };

/** Creates the OpenAI API for the holder of a key. */
function heldBy(hasSubclients: boolean): Promise<SdkDoor> {
  const run = always(...begun, ...answerEvents('Hello'), jobDone());
  return sdkDoor(run, { before: [asHolder('key ui', { hasSubclients }), subClientByHeader()] });
}

async function clientOf(door: SdkDoor, body: object, headers: Record<string, string> = {}): Promise<string> {
  expect((await door.post('/v1/chat/completions', { ...chat, ...body }, headers)).status).toBe(200);
  return door.job.client;
}

describe('A key with sub-clients', () => {
  it('distinguishes them by the header, or otherwise by the body', async () => {
    await using door = await heldBy(true);
    expect(await clientOf(door, {}, header)).toBe('key ui/zoe');
    expect(await clientOf(door, { user: 'joe' })).toBe('key ui/joe');
    expect(await clientOf(door, { user: 'joe' }, header)).toBe('key ui/zoe');
    expect(await clientOf(door, {})).toBe('key ui');
    expect(await clientOf(door, { user: '' })).toBe('key ui');
    await door.post('/v1/responses', { model: 'eliza', input: 'Hi', user: 'eve' });
    expect(door.job.client).toBe('key ui/eve');
  });

  it('reports the user field as ignored only if it is not used', async () => {
    await using door = await heldBy(true);
    const ignored = async (headers: Record<string, string>) =>
      (await door.post('/v1/chat/completions', { ...chat, user: 'joe' }, headers)).headers.get('x-ignored-parameters');
    expect([await ignored({}), await ignored(header)]).toEqual([null, 'user']);
  });
});

it('Any other key is one client, whatever user its requests name', async () => {
  await using door = await heldBy(false);
  expect(await clientOf(door, { user: 'joe' }, header)).toBe('key ui');
});
