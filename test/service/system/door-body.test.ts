import { gzipSync } from 'node:zlib';
import { jsonPost, RawConnection, request } from '../../support/clients/raw-http.js';
import { answerTo, expectSound, failure, invalid } from '../../support/doors/door.js';
import { type Service, startService } from '../../support/service/service.js';

let service: Service;

beforeAll(async () => {
  service = await startService();
});
afterAll(async () => {
  await expectSound(service);
  await service.stop();
});

const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
const notJson = invalid('body', 'must be valid JSON');
const notUtf8 = invalid('body', 'must be valid UTF-8');
const noObject = invalid('body', 'must be a JSON object');
const badCharset = invalid('Content-Type', 'the charset must be utf-8');
const badType = invalid('Content-Type', 'must be application/json');
const encoded = invalid('Content-Encoding', 'must not be sent');
const tooDeep = invalid('body', 'must be nested at most 200 levels deep');
const names = 'must be a model name: letters, digits and . _ : / @ [ ] -, or up to 8 of them separated by commas';
const badModel = invalid('model', names);

describe.each([
  ['/ask', 'prompt'],
  ['/chat', 'message'],
])('At %s', (path, field) => {
  const good = `{"${field}":"hello","model":"echo"}`;

  /** Builds a request. In the body, the field `prompt` is replaced by the one of this path. */
  function post(body: string | Buffer): Buffer {
    return jsonPost(path, typeof body === 'string' ? body.replaceAll('"prompt"', `"${field}"`) : body);
  }

  function typed(type: string, body: string | Buffer, ...headers: string[]): Buffer {
    return request(
      `POST ${path}`,
      [`Content-Type: ${type}`, `Content-Length: ${Buffer.byteLength(body)}`, ...headers],
      body,
    );
  }

  function quoted(...bytes: number[]): Buffer {
    return Buffer.concat([Buffer.from(`{"${field}":"`), Buffer.from(bytes), Buffer.from('"}')]);
  }

  describe('A body that is not a JSON object in UTF-8', () => {
    afterAll(() => expectSound(service));

    it.each<[string, Buffer, object]>([
      ['no JSON', post('Explain TCP'), notJson],
      ['nothing', post(''), notJson],
      ['cut JSON', post('{"prompt":"x"'), notJson],
      ['JSON behind a byte order mark', post(`\ufeff${good}`), notJson],
      ['two values', post(`${good}${good}`), notJson],
      ['an array', post(`[${good}]`), noObject],
      ['null', post('null'), noObject],
      ['a number', post('5'), noObject],
      ['a string', post('"hello"'), noObject],
      ['true', post('true'), noObject],
      ['an array 100,000 deep', post(deep), tooDeep],
      ['a broken UTF-8 sequence', post(quoted(0xc3, 0x28)), notUtf8],
      ['an overlong UTF-8 sequence', post(quoted(0xc0, 0xaf)), notUtf8],
      ['a surrogate in UTF-8', post(quoted(0xed, 0xa0, 0x80)), notUtf8],
      ['Latin-1', post(quoted(0xe4)), notUtf8],
      ['UTF-16', post(Buffer.from(good, 'utf16le')), notJson],
      ['UTF-16 with a byte order mark', post(Buffer.from(`\ufeff${good}`, 'utf16le')), notUtf8],
      ['UTF-16 that says so', typed('application/json; charset=utf-16', Buffer.from(good, 'utf16le')), badCharset],
      ['UTF-7 that says so', typed('application/json; charset=utf-7', '+AHsAIg-'), badCharset],
      ['a second charset', typed('application/json; charset=utf-8; charset=utf-7', good), badCharset],
      ['gzip that says so', typed('application/json', gzipSync(good), 'Content-Encoding: gzip'), encoded],
      ['gzip that does not say so', post(gzipSync(good)), notUtf8],
      ['an encoding of JSON that is plain', typed('application/json', good, 'Content-Encoding: br'), encoded],
      [
        'gzip that the transfer says',
        request(`POST ${path}`, ['Content-Type: application/json', 'Transfer-Encoding: gzip, chunked'], '0\r\n\r\n'),
        invalid('Transfer-Encoding', 'must be chunked, and no other'),
      ],
      ['text/plain', typed('text/plain', good), badType],
      ['a form', typed('application/x-www-form-urlencoded', `${field}=hello`), badType],
      ['a type that only begins well', typed('application/jsonlines', good), badType],
      ['no Content-Type', request(`POST ${path}`, [`Content-Length: ${good.length}`], good), badType],
      ['neither type nor body', request(`POST ${path}`), badType],
    ])('is rejected: %s', async (_what, bytes, expected) => {
      const { status, body } = await answerTo(service, bytes);
      expect([status, body]).toEqual([400, expected]);
    });
  });

  describe('A field', () => {
    afterAll(() => expectSound(service));

    it.each<[string, string, object]>([
      ['a prompt that is missing', '{}', invalid(field, 'must be sent')],
      ['a prompt that is null', '{"prompt":null}', invalid(field, 'must be a string')],
      ['a prompt that is a number', '{"prompt":5}', invalid(field, 'must be a string')],
      ['a prompt that is a list', '{"prompt":["hello"]}', invalid(field, 'must be a string')],
      ['a prompt that is an object', '{"prompt":{"text":"hello"}}', invalid(field, 'must be a string')],
      ['a prompt that is 100,000 deep', `{"prompt":${deep}}`, tooDeep],
      ['an empty prompt', '{"prompt":""}', invalid(field, 'must not be empty')],
      ['a blank prompt', '{"prompt":" \\n\\t\\u00a0\\u2003\\ufeff"}', invalid(field, 'must not be empty')],
      ['NUL', '{"prompt":"a\\u0000b"}', invalid(field, 'must not contain NUL')],
      ['a lone high surrogate', '{"prompt":"a\\ud83d"}', invalid(field, 'must not contain a lone surrogate')],
      ['a lone low surrogate', '{"prompt":"\\ude80\\ud83d"}', invalid(field, 'must not contain a lone surrogate')],
      ['a system text that is no text', '{"prompt":"a","system":1}', invalid('system', 'must be a string')],
      ['an empty system text', '{"prompt":"a","system":""}', invalid('system', 'must not be empty')],
      ['NUL in the system text', '{"prompt":"a","system":"\\u0000"}', invalid('system', 'must not contain NUL')],
      ['__proto__', '{"prompt":"a","__proto__":{"prompt":"b"}}', invalid('__proto__', 'unknown field')],
      ['constructor', '{"prompt":"a","constructor":{}}', invalid('constructor', 'unknown field')],
      ['toString', '{"prompt":"a","toString":null}', invalid('toString', 'unknown field')],
      ['the name of a field in other letters', '{"prompt":"a","Model":"echo"}', invalid('Model', 'unknown field')],
      ['an unknown field 100,000 deep', `{"prompt":"a","x":${deep}}`, tooDeep],
      ['a model that is no text', '{"prompt":"a","model":7}', invalid('model', 'must be a string')],
      ['an empty model', '{"prompt":"a","model":""}', badModel],
      ['a model that looks like a flag', '{"prompt":"a","model":"--help"}', badModel],
      ['a model with a space', '{"prompt":"a","model":"a b"}', badModel],
      ['a model with a line end', '{"prompt":"a","model":"echo\\n"}', badModel],
      ['a model that is a path', '{"prompt":"a","model":"../echo"}', badModel],
      ['a model with 10 kB', `{"prompt":"a","model":"${'m'.repeat(10_240)}"}`, badModel],
      ['a model that is not there', '{"prompt":"a","model":"gpt-4"}', invalid('model', 'must be one of eliza, echo')],
      ['a model in capitals', '{"prompt":"a","model":"ECHO"}', invalid('model', 'must be one of eliza, echo')],
    ])('is rejected: %s', async (_what, text, expected) => {
      const { status, body } = await answerTo(service, post(text));
      expect([status, body]).toEqual([400, expected]);
    });

    it('is reported with all other faults, by a shortened name, and no value is echoed', async () => {
      const unknown = Array.from({ length: 30 }, (_, n) => [`${n}-${'long'.repeat(1000)}`, `secret${n}`]);
      const text = JSON.stringify({ [field]: 5551234, model: 'secret model', ...Object.fromEntries(unknown) });
      const { status, text: answer, body } = await answerTo(service, post(text));
      expect(status).toBe(400);
      expect(body).toEqual({ ...failure('validation_error', expect.any(String)), details: expect.any(Array) });
      const details = body.details as { path: string; message: string }[];
      expect(details).toHaveLength(20);
      expect(details.map(({ path }) => path)).toEqual(expect.arrayContaining([field, 'model']));
      expect(Math.max(...details.map(({ path }) => path.length))).toBe(64);
      expect(answer).not.toMatch(/secret|5551234/);
      expect(answer.length).toBeLessThan(4096);
    });
  });

  describe('A valid body', () => {
    afterAll(() => expectSound(service));

    it.each<[string, Buffer]>([
      ['plainly', post(good)],
      ['with its charset', typed('application/json; charset=utf-8', good)],
      ['with its charset in other letters', typed('Application/JSON;charset="UTF-8"', good)],
      ['with another parameter', typed('application/json; profile=x', good)],
      ['with the encoding that is none', typed('application/json', good, 'Content-Encoding: Identity')],
    ])('is accepted: %s', async (_how, bytes) => {
      expect(await answerTo(service, bytes)).toMatchObject({ status: 200, body: { success: true, response: 'hello' } });
    });

    it.each([
      '-h',
      '--model x',
      '/cost',
      '$(id) `id` %s \\n',
      ' leading and trailing \n',
      '\r\n\ttabs\u0001',
      'grüße 🚀',
    ])('reaches the model unchanged: %j', async (prompt) => {
      const { status, body } = await answerTo(service, post(JSON.stringify({ prompt, model: 'echo' })));
      expect([status, body.response]).toEqual([200, prompt]);
    });
  });
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

describe('The rate limit', () => {
  it('is off by default', async () => {
    const { status, headers } = await answerTo(service, jsonPost('/ask', '{}'));
    expect([status, headers.ratelimit, headers['ratelimit-policy']]).toEqual([400, undefined, undefined]);
  });
});

it('A body may have 16 MiB by default', async () => {
  const { status, body } = await service.post('/ask', '{"prompt":"hello"}'.padEnd(16 * 1024 ** 2));
  expect([status, body.success]).toEqual([200, true]);
  using late = await RawConnection.open(service.port);
  late.send(jsonPost('/ask', '', [`Content-Length: ${16 * 1024 ** 2 + 1}`]));
  expect((await late.answer()).status).toBe(413);
});
