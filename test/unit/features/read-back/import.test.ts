import { DocumentInspector } from '../../../../src/features/documents/document-inspector.js';
import { importRequest } from '../../../../src/features/read-back/import.js';
import { postImport } from '../../../../src/features/read-back/routes.js';
import type { ConversationCalls } from '../../../../src/features/read-back/shared.js';
import { maxDocuments, maxImages } from '../../../../src/shared/api/ask.js';
import { systemClock } from '../../../../src/shared/clock.js';
import { storeUnavailable } from '../../../../src/shared/errors.js';
import { BodyMemory } from '../../../../src/worker/http/body-memory.js';
import { pngBytes } from '../../../support/clients/ask-page.js';
import { request } from '../../../support/clients/raw-http.js';
import { answerOf } from '../../../support/doors/express-server.js';
import { FakePrimary } from '../../../support/jobs/fake-primary.js';

const question = { role: 'user', content: 'Hello' };
const answer = { role: 'assistant', content: 'Hi' };
const turn = [question, answer];
const withAdded = (...added: readonly [at: number, content: string][]) => ({
  ...answer,
  added_messages: added.map(([at, content]) => ({ at, content })),
});
const file = { name: 'a.txt', media_type: 'text/plain', data: 'YQ==' };
const image = { media_type: 'image/png', data: pngBytes.toString('base64') };
const snapshot = { id: 'new', messageCount: 2, tokensUsed: 3, createdAt: 0, lastActivityAt: 0, expiresAt: 1 };

/** Sends a conversation to import. The primary answers the calls for turns with `importTurn`. */
async function importing(body: object, importTurn: unknown = { ...snapshot, title: 'Hello', origins: null }) {
  const primary = new FakePrimary({ importTurn, deleteConversation: {} });
  const documents = new DocumentInspector(async () => ({ fault: 'is broken' }));
  const parts = {
    primary: primary.asPrimary as unknown as ConversationCalls,
    jobs: { bodies: new BodyMemory(10_000_000, systemClock), documents },
  };
  const text = JSON.stringify(body);
  const headers = ['Content-Type: application/json', `Content-Length: ${Buffer.byteLength(text)}`];
  const { status, body: sent } = await answerOf([postImport(parts)], request('POST /', headers, text));
  return { status, body: sent, calls: primary.calls };
}

describe('The import of a conversation', () => {
  it('adds turn after turn, with attachments and figures, to the conversation of the first one', async () => {
    const usage = { input_tokens: 3, output_tokens: null, cost_usd: 0.5 };
    const first = [
      { ...question, images: [image], files: [file] },
      { ...answer, model: 'eliza', usage },
    ];
    const ids = { conversation_id: 'old', request_id: 'old' };
    const { status, calls } = await importing({ ...ids, system: 'Be short', messages: [...first, ...turn] });
    const imported = calls.map(({ request: sent }) => sent as { images: object[] });
    const figures = { model: 'eliza', usage: { inputTokens: 3, outputTokens: null, costUsd: 0.5 } };
    expect(status).toBe(201);
    expect(imported).toMatchObject([
      { id: null, system: 'Be short', text: 'Hello', answer: 'Hi', figures },
      { id: 'new', system: null, text: 'Hello', images: [], answer: 'Hi', figures: null },
    ]);
    expect(imported[0]?.images).toMatchObject([
      { ...{ mediaType: 'image/png', data: image.data }, at: 0 },
      { ...{ mediaType: 'text/plain', name: 'a.txt' }, at: 0 },
    ]);
  });

  it('is undone if a turn cannot be stored', async () => {
    let count = 0;
    const { status, body, calls } = await importing({ messages: [...turn, ...turn, ...turn] }, () => {
      if (++count === 2) throw storeUnavailable();
      return { ...snapshot, title: 'Hello', origins: null };
    });
    expect([status, body.error]).toEqual([503, 'store_unavailable']);
    expect(calls.map(({ name }) => name)).toEqual(['importTurn', 'importTurn', 'deleteConversation']);
    expect(calls.at(-1)?.request).toEqual({ id: 'new', client: '' });
  });
});

describe('A conversation that no service has exported', () => {
  const twice = (count: number, message: object) => [{ ...question, ...message }, answer].concat(count > 1 ? turn : []);
  const many = (count: number, one: object) => Array.from({ length: count }, () => one);

  it.each<[string, object]>([
    ['no messages', { messages: [] }],
    ['no list', { messages: 'Hello' }],
    ['no field', {}],
    ['a field that is unknown', { messages: turn, title: 'Hello' }],
    ['a question without an answer', { messages: [...turn, question] }],
    ['two questions', { messages: [question, question] }],
    ['an answer first', { messages: [answer, question] }],
    ['another role', { messages: [{ role: 'system', content: 'a' }, answer] }],
    ['an empty question', { messages: [{ ...question, content: ' ' }, answer] }],
    ['NUL in a question', { messages: [{ ...question, content: 'a\0' }, answer] }],
    ['half a character', { messages: [{ ...question, content: '\ud800' }, answer] }],
    ['NUL in the system text', { system: '\0', messages: turn }],
    ['a model in two lines', { messages: [question, { ...answer, model: 'a\nb' }] }],
    ['a model with a long name', { messages: [question, { ...answer, model: 'a'.repeat(201) }] }],
    ['negative figures', { messages: [question, { ...answer, usage: { input_tokens: -1, output_tokens: 1 } }] }],
    [
      'figures that are too large',
      { messages: [question, { ...answer, usage: { input_tokens: 1e300, output_tokens: 1 } }] },
    ],
    ['too many messages', { messages: Array.from({ length: 501 }, () => turn).flat() }],
    ['too many images', { messages: twice(1, { images: many(maxImages + 1, image) }) }],
    ['too many files', { messages: twice(1, { files: many(maxDocuments + 1, file) }) }],
    ['an image that is none', { messages: twice(1, { images: [{ ...image, data: 'YQ==' }] }) }],
    ['an image of another client', { messages: twice(1, { images: [{ file_id: 'file-1' }] }) }],
    ['a file of another client', { messages: twice(2, { files: [{ file_id: 'file-1' }] }) }],
    ['a broken PDF', { messages: twice(1, { files: [{ ...file, media_type: 'application/pdf' }] }) }],
    ['images in an answer', { messages: [question, { ...answer, images: [image] }] }],
    ['added messages in no order', { messages: [question, withAdded([2, 'a'], [1, 'b'])] }],
    ['an added message behind its answer', { messages: [question, withAdded([3, 'a'])] }],
    ['an empty added message', { messages: [question, withAdded([0, ''])] }],
    ['NUL in an added message', { messages: [question, withAdded([0, 'a\0'])] }],
    ['half a character in an added message', { messages: [question, withAdded([0, '\ud800'])] }],
    ['added messages that are too long', { messages: [question, withAdded([0, 'é'.repeat(131_073)])] }],
    ['a prototype', { messages: [{ ...question, constructor: {} }, answer] }],
  ])('is refused before any turn is stored: %s', async (_, sent) => {
    const { status, body, calls } = await importing(sent);
    expect([status, body.error, calls]).toEqual([400, 'validation_error', []]);
  });

  it('has NUL and halves of characters in answers replaced, as any answer', () => {
    const { messages } = importRequest.parse({ messages: [question, { ...answer, content: 'a\0\ud800' }] });
    expect(messages[1]?.content).toBe('a\ufffd\ufffd');
  });
});
