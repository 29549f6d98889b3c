import { answerTo, expectSound, failure, invalid } from '../../support/door.js';
import { jsonPost, request } from '../../support/raw-http.js';
import { type Service, startService } from '../../support/service.js';

let service: Service;

beforeAll(async () => {
  service = await startService();
});
afterAll(async () => {
  await expectSound(service);
  await service.stop();
});

const legacy = 'a list of messages is not accepted: send message, and conversation_id to continue';
const onlyNew = 'is only accepted for a new conversation: leave out conversation_id, or system';
const noSuch = { ...invalid('conversation_id', 'no such conversation'), reason: 'conversation_unknown' };
const noText = invalid('conversation_id', 'must be a string');
const missing = failure('not_found', 'no such conversation');
const badEscape = invalid('path', 'contains an invalid percent escape');

/** Returns a body with several faults. The message contains the first one. */
function all(head: string, ...details: [path: string, message: string][]) {
  const { request_id } = failure('', '');
  return {
    error: 'validation_error',
    message: head,
    request_id,
    details: details.map(([path, message]) => ({ path, message })),
  };
}

describe('The body of POST /chat', () => {
  it.each<[string, object, object]>([
    [
      'the older payload',
      { messages: [{ role: 'user', content: 'Hi' }] },
      all(`messages: ${legacy}`, ['message', 'must be sent'], ['messages', legacy]),
    ],
    ['messages beside a message', { message: 'Hi', messages: [] }, invalid('messages', legacy)],
    ['messages that are null', { message: 'Hi', messages: null }, invalid('messages', legacy)],
    ['a role', { message: 'Hi', role: 'assistant' }, invalid('role', 'unknown field')],
    [
      'a prompt',
      { prompt: 'Hi' },
      all('message: must be sent', ['message', 'must be sent'], ['prompt', 'unknown field']),
    ],
    [
      'a system text for an old conversation',
      { message: 'Hi', system: 'Be brief.', conversation_id: 'x' },
      invalid('system', onlyNew),
    ],
    ['an id that is null', { message: 'Hi', conversation_id: null }, noText],
    ['an id that is a number', { message: 'Hi', conversation_id: 1 }, noText],
    ['an id that is a list', { message: 'Hi', conversation_id: ['x'] }, noText],
    ['an id that is an object', { message: 'Hi', conversation_id: { toString: 'x' } }, noText],
    ['an empty id', { message: 'Hi', conversation_id: '' }, noSuch],
    ['a blank id', { message: 'Hi', conversation_id: ' ' }, noSuch],
    ['an id with NUL', { message: 'Hi', conversation_id: '\0' }, noSuch],
    ['an id that is half a character', { message: 'Hi', conversation_id: '\ud83d' }, noSuch],
    ['an id of 10 kB', { message: 'Hi', conversation_id: 'x'.repeat(10_240) }, noSuch],
    ['an id of 900 kB', { message: 'Hi', conversation_id: 'x'.repeat(900_000) }, noSuch],
    ['__proto__ for an id', { message: 'Hi', conversation_id: '__proto__' }, noSuch],
    ['constructor for an id', { message: 'Hi', conversation_id: 'constructor' }, noSuch],
    ['an id in another field', { message: 'Hi', id: 'x' }, invalid('id', 'unknown field')],
    [
      'a model that is not there, for an id that is not',
      { message: 'Hi', conversation_id: 'x', model: 'gpt-4' },
      invalid('model', 'must be one of eliza, echo'),
    ],
  ])('is rejected: %s', async (_what, sent, expected) => {
    const { status, body } = await answerTo(service, jsonPost('/chat', JSON.stringify(sent)));
    expect([status, body]).toEqual([400, expected]);
  });
});

describe.each(['GET', 'DELETE'])('The path of %s /chat/{id}', (method) => {
  it.each<[string, string, number, object]>([
    ['half an escape', '/chat/%', 400, badEscape],
    ['an escape that is none', '/chat/%zz', 400, badEscape],
    ['an escape that is no UTF-8', '/chat/%ff', 400, badEscape],
    ['a cut UTF-8 sequence', '/chat/%e2%82', 400, badEscape],
    ['a surrogate in UTF-8', '/chat/%ed%a0%80', 400, badEscape],
    ['NUL', '/chat/%00', 404, missing],
    ['a slash in an escape', '/chat/a%2fb', 404, missing],
    ['dots', '/chat/%2e%2e%2fask', 404, missing],
    ['__proto__', '/chat/__proto__', 404, missing],
    ['10 kB', `/chat/${'x'.repeat(10_240)}`, 404, missing],
    ['10 kB of escapes', `/chat/${'%78'.repeat(3413)}`, 404, missing],
    ['a query', '/chat/x?id=y', 404, missing],
    ['no id', '/chat/', 404, failure('not_found', 'no such path')],
    ['one more part', '/chat/x/y', 404, failure('not_found', 'no such path')],
  ])('is rejected: %s', async (_what, path, expectedStatus, expected) => {
    const { status, body } = await answerTo(service, request(`${method} ${path}`));
    expect([status, body]).toEqual([expectedStatus, expected]);
  });
});
