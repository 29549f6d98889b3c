import { connect } from 'node:net';
import { getConversations, getMessages, readBackGuard } from '../../../../src/features/read-back/routes.js';
import type { PieceOrder } from '../../../../src/features/read-back/transcripts.js';
import { yieldToEventLoop } from '../../../../src/shared/clock.js';
import { RelayError } from '../../../../src/shared/errors.js';
import type { TranscriptItem } from '../../../../src/shared/ipc/protocol.js';
import { until } from '../../../support/basics/until.js';
import { exchange, request } from '../../../support/clients/raw-http.js';
import { answerOf, passed, serveWith } from '../../../support/doors/express-server.js';
import { FakePrimary } from '../../../support/jobs/fake-primary.js';
import { onePartAtATime } from '../../../support/stores/transcripts.js';

const gone = new RelayError('not_found', 'no such conversation');
const snapshot = {
  id: 'some-id',
  messageCount: 2,
  tokensUsed: 3,
  createdAt: 0,
  lastActivityAt: 1000,
  expiresAt: 2000,
  title: 'Hello',
  origins: 'earlier 4 other-id 6',
};

/** Serves the messages of a conversation, which `read` returns. */
async function serveMessages(read: (order: PieceOrder) => Promise<TranscriptItem>) {
  const primary = new FakePrimary({ transcript: read });
  return Object.assign(await serveWith([getMessages(primary.asPrimary)]), { primary });
}

/** Requests the list of conversations, of which the primary returns this page. */
async function list(query: string, page: object | null, ...headers: string[]) {
  const primary = new FakePrimary({}, async function* () {
    yield page as never;
  });
  const answer = await answerOf([getConversations(primary.asPrimary)], request(`GET /${query}`, headers));
  return { ...answer, calls: primary.calls };
}

const short = onePartAtATime([
  { type: 'message', role: 'user' },
  { type: 'text', text: 'Hello' },
]);

const piece: TranscriptItem = {
  parts: [{ type: 'text', text: 'a'.repeat(16 * 1024) }],
  next: { message: 0, image: -1, at: 1, messageCount: 1 },
};

describe('The list of conversations', () => {
  it('is requested with its limit and its cursor, and returned with the cursor of the next page', async () => {
    const page = { conversations: [snapshot], next: 17 };
    const { body, calls } = await list('?limit=100&cursor=99&version_of=an+id', page, 'X-Request-Id: mine');
    const asked = { client: '', before: 99, limit: 100, search: null, versionOf: 'an id' };
    expect(calls).toEqual([{ name: 'conversations', request: asked }]);
    expect(body).toEqual({
      conversations: [
        {
          conversation_id: 'some-id',
          message_count: 2,
          tokens_used: 3,
          created_at: '1970-01-01T00:00:00.000Z',
          last_activity_at: '1970-01-01T00:00:01.000Z',
          expires_at: '1970-01-01T00:00:02.000Z',
          title: 'Hello',
          origins: [
            { conversation_id: 'earlier', message_count: 4 },
            { conversation_id: 'other-id', message_count: 6 },
          ],
          open_turn: null,
        },
      ],
      next_cursor: '17',
      request_id: 'mine',
    });
  });

  it('starts with the first 50, and has no cursor after its last page', async () => {
    const { body, calls } = await list('', { conversations: [], next: null });
    expect(body).toMatchObject({ conversations: [], next_cursor: null });
    expect(calls[0]?.request).toEqual({ client: '', before: null, limit: 50, search: null, versionOf: null });
  });

  it.each([
    ...['limit=0', 'limit=101', 'limit=-1', 'limit=1e1', 'limit=', 'limit=01', 'limit=1&limit=2'],
    ...['cursor=', 'cursor=abc', 'cursor=-1', 'cursor=1.5', `cursor=${'9'.repeat(16)}`, 'cursor=1&cursor=2'],
    ...['version_of=', `version_of=${'a'.repeat(201)}`, 'version_of=a&version_of=b'],
  ])('is rejected with a clear message: %s', async (query) => {
    const { status, body, calls } = await list(`?${query}`, null);
    expect([status, body.error, calls]).toEqual([400, 'validation_error', []]);
    expect(body.message).toMatch(/^(limit|cursor|version_of): must (not )?be |^version_of: must have /);
  });
});

describe('The messages of a conversation', () => {
  it.each([
    ['', [], 'application/json; charset=utf-8', true],
    ['', ['Accept: text/html'], 'application/json; charset=utf-8', true],
    ['', ['Accept: text/markdown'], 'text/markdown; charset=utf-8', false],
    ['?format=markdown', ['Accept: application/json'], 'text/markdown; charset=utf-8', false],
    ['?format=json', ['Accept: text/markdown'], 'application/json; charset=utf-8', true],
  ])('have the requested format: %s %s', async (query, headers, type, withImages) => {
    await using server = await serveMessages(short);
    const answer = await exchange(server.port, request(`GET /${query}`, headers));
    expect(answer.headers['content-type']).toBe(type);
    expect(answer.headers['content-length']).toBe(String(Buffer.byteLength(answer.text)));
    expect(server.primary.calls[0]?.request).toMatchObject({ withImages });
  });

  it.each(['format=pdf', 'format=', 'format=json&format=json', 'download=yes', 'download='])(
    'are rejected with a clear message: %s',
    async (query) => {
      await using server = await serveMessages(short);
      const { status, body } = await exchange(server.port, request(`GET /?${query}`));
      expect([status, body.error]).toEqual([400, 'validation_error']);
    },
  );

  it('are a 404 for an unknown conversation, never as a file', async () => {
    await using server = await serveMessages(() => Promise.reject(gone));
    const { status, headers } = await exchange(server.port, request('GET /?format=markdown&download=true'));
    expect([status, headers['content-type']]).toEqual([404, 'application/json; charset=utf-8']);
    expect(headers['content-disposition']).toBeUndefined();
  });

  it('are cut off if the conversation is removed while they are sent', async () => {
    let taken = 0;
    await using server = await serveMessages(() => (++taken < 8 ? Promise.resolve(piece) : Promise.reject(gone)));
    const answer = fetch(`http://127.0.0.1:${server.port}/`).then((response) => response.text());
    await expect(answer).rejects.toThrow('terminated');
  });

  it('are read from the primary no faster than by the client, and no longer once it disconnects', async () => {
    let taken = 0;
    await using server = await serveMessages(async () => {
      taken++;
      return piece;
    });
    const client = connect(server.port, '127.0.0.1');
    client.pause().write(request('GET /'));
    let before = -1;
    await until(() => {
      const isStill = taken > 0 && taken === before;
      before = taken;
      return isStill;
    }, 'a reader that holds up its writer');
    expect(taken).toBeLessThan(2000);
    client.destroy();
    await until(() => server.log.entries.find(({ event }) => event === 'http_request_completed'), 'the record');
    const atEnd = taken;
    await yieldToEventLoop();
    expect(taken).toBe(atEnd);
    expect(server.log.entries.find(({ event }) => event === 'internal_error')).toBeUndefined();
  });

  it('are not sent for HEAD, however long they are', async () => {
    let taken = 0;
    await using server = await serveMessages(async () => {
      taken++;
      return piece;
    });
    const { status, text } = await exchange(server.port, request('HEAD /'), true);
    expect([status, text]).toEqual([200, '']);
    expect(taken).toBeLessThan(10);
  });
});

it.each([
  [true, 200, undefined],
  [false, 403, 'stored conversations cannot be read: MODEL_API_READ_BACK is false'],
])('Conversations can be read only if that is enabled (%p)', async (readBack, status, message) => {
  const answer = await answerOf([readBackGuard(readBack), passed]);
  expect([answer.status, answer.body.message]).toEqual([status, message]);
});
