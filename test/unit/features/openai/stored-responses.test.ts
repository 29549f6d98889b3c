import { responseLimits, StoredResponses } from '../../../../src/features/openai/stored-responses.js';
import { MemoryResponses } from '../../../../src/features/stores/memory/memory-store.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { headOf, turnOf } from '../../../support/stores/response-store-contract.js';

const config = { maxConversations: 2, conversationBytes: 400_000, conversationTtlMs: 1000 };
const limits = { ...responseLimits(config), maxTextBytes: 50_000 };
const client = 'key ada';

function create(store = new MemoryResponses()) {
  const clock = new FakeClock();
  const responses = new StoredResponses(store, limits, clock);
  const put = (id: string, previous: string | null = null, bytes = 100) =>
    responses.putResponse({
      id,
      client,
      previous,
      messages: turnOf(id),
      head: headOf(id, bytes),
      body: `{"id":"${id}"}`,
    });
  return { clock, responses, put, store };
}

describe('Stored responses', () => {
  it('have a body, and a text from the beginning of the conversation', async () => {
    const { responses, put, store } = create();
    await put('a');
    await put('b', 'a');
    expect(await responses.readBody({ id: 'b', client }, 0)).toEqual({ text: '{"id":"b"}', bytes: 10 });
    expect(await responses.readMessages({ id: 'b', client })).toEqual([...turnOf('a'), ...turnOf('b')]);
    expect(store.counts.count).toBe(2);
  });

  it('are not visible to other clients, and no longer exist once they are removed', async () => {
    const { responses, put } = create();
    await put('a');
    const theirs = { id: 'a', client: 'key bob' as const };
    for (const asked of [
      responses.readBody(theirs, 0),
      responses.readMessages(theirs),
      responses.removeResponse(theirs),
    ]) {
      await expect(asked).rejects.toMatchObject({ code: 'not_found' });
    }
    await responses.removeResponse({ id: 'a', client });
    await expect(responses.readBody({ id: 'a', client }, 0)).rejects.toMatchObject({ code: 'not_found' });
    await expect(put('b', 'a')).rejects.toMatchObject({ code: 'not_found' });
  });

  it('are refused if their text alone exceeds the limits', async () => {
    const { put } = create();
    await put('a');
    await put('b', 'a');
    const refused = { code: 'validation_error', details: [{ path: 'previous_response_id' }] };
    await expect(put('c', 'b')).rejects.toMatchObject(refused);
  });

  it('cannot be continued if their text is larger than a conversation may be', async () => {
    const { responses, put } = create();
    await put('a', null, 50_000);
    expect(await responses.readHead({ id: 'a', client })).toEqual(headOf('a', 50_000));
    await put('b', 'a', 50_001);
    const refused = { code: 'validation_error', details: [{ path: 'previous_response_id' }] };
    await expect(responses.readHead({ id: 'b', client })).rejects.toMatchObject(refused);
  });

  it('list what they have answered, up to 2 MB', async () => {
    const { responses, put } = create();
    const limit = 2 * 1024 ** 2;
    await put('a', null, limit);
    await put('b', 'a', limit + 1);
    expect(await responses.input({ id: 'a', client })).toEqual(turnOf('a').slice(0, -1));
    const refused = { code: 'validation_error', details: [{ path: 'response_id' }] };
    await expect(responses.input({ id: 'b', client })).rejects.toMatchObject(refused);
  });

  it('can be continued if an earlier version stored them', async () => {
    const store = new MemoryResponses();
    store.readHead = async () => '';
    const { responses, put } = create(store);
    await put('a');
    const head = await responses.readHead({ id: 'a', client });
    expect(head).toMatchObject({ messageCount: 2, hasImages: true, openCalls: [{ id: 'c', name: 'look' }] });
    expect(head.bytes).toBeGreaterThan(100);
  });

  it('expire some time after the last one that continues their text, without a sweep', async () => {
    const { clock, responses, put } = create();
    await put('a');
    await clock.advance(600);
    await put('b', 'a');
    await clock.advance(600);
    expect((await responses.readBody({ id: 'a', client }, 0)).text).toBe('{"id":"a"}');
    await clock.advance(400);
    await expect(responses.readMessages({ id: 'b', client })).rejects.toMatchObject({ code: 'not_found' });
  });
});
