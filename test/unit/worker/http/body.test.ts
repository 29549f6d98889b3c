import { z } from 'zod';
import { legacyPayload } from '../../../../src/shared/api/chat.js';
import { systemClock } from '../../../../src/shared/clock.js';
import { stringifyExactly } from '../../../../src/shared/text/exact-json.js';
import { queryOf, readBody } from '../../../../src/worker/http/body.js';
import { BodyMemory } from '../../../../src/worker/http/body-memory.js';
import type { AsyncHandler } from '../../../../src/worker/http/exchange.js';
import { chunk, jsonPost, RawConnection, request } from '../../../support/clients/raw-http.js';
import { answerOf, serveWith } from '../../../support/doors/express-server.js';

const limitBytes = 100;
const schema = z.strictObject({ prompt: z.string('must be a string'), model: z.string().optional() });
const echo: AsyncHandler = async (req, res) =>
  void res.json(await readBody(req, res, new BodyMemory(limitBytes, systemClock), schema));
const good = '{"prompt":"hello"}';
const chunked = 'Transfer-Encoding: chunked';

/** Reads a body of any object. */
const readObject: AsyncHandler = async (req, res) =>
  void res.json(await readBody(req, res, new BodyMemory(1_000_000, systemClock), z.looseObject({})));
const deep = `${'['.repeat(300)}${']'.repeat(300)}`;

const answerTo = (bytes: Buffer) => answerOf([echo], bytes);

describe('JSON in a string of a body', () => {
  it.each<[string, object]>([
    ['arguments', { arguments: deep }],
    ['guided_json', { guided_json: deep }],
    ['the input of a call', { messages: [{ content: [{ type: 'tool_use', name: 'look', input: deep }] }] }],
    ['the arguments of a flat call', { messages: [{ tool_calls: [{ name: 'look', args: deep }] }] }],
  ])('has the limits of the whole body: %s', async (_, body) => {
    expect(await answerOf([readObject], jsonPost('/', JSON.stringify(body)))).toMatchObject({ status: 400 });
  });

  it('has no limits where it is a text', async () => {
    const body = { input: deep, content: [{ type: 'custom_tool_call', input: deep }], args: deep };
    expect(await answerOf([readObject], jsonPost('/', JSON.stringify(body)))).toMatchObject({ status: 200 });
  });
});

describe('A body', () => {
  it.each<[string, Buffer]>([
    ['with its length', jsonPost('/', good)],
    ['in chunks', jsonPost('/', chunk('{"prompt"') + chunk(':"hello"}') + chunk(''), [chunked])],
    [
      'with its charset',
      request('POST /', ['Content-Type: application/JSON; Charset="UTF-8"', 'Content-Length: 18'], good),
    ],
    ['of exactly the limit', jsonPost('/', good.padEnd(limitBytes))],
  ])('is read %s', async (_, bytes) => {
    expect(await answerTo(bytes)).toMatchObject({ status: 200, body: { prompt: 'hello' } });
  });

  it.each<[string, string, string]>([
    ['no JSON', 'hello', 'body: must be valid JSON'],
    ['no object', '[]', 'body: must be a JSON object'],
    ['null', 'null', 'body: must be a JSON object'],
    ['a missing field', '{}', 'prompt: must be sent'],
    ['a field of the wrong type', '{"prompt":5}', 'prompt: must be a string'],
    ['an unknown field', '{"prompt":"a","x":1}', 'x: unknown field'],
    ['a prototype', '{"prompt":"a","__proto__":{}}', '__proto__: unknown field'],
    ['the older payload', '{"messages":[]}', `messages: ${legacyPayload}`],
  ])('is rejected if it contains %s', async (_, text, message) => {
    const body = { error: 'validation_error', message, details: expect.arrayContaining([]) };
    expect(await answerTo(jsonPost('/', text))).toMatchObject({ status: 400, body });
  });

  it('is read in several turns of the event loop if it is large, and no character is split', async () => {
    const prompt = 'aé漢😀'.repeat(400_000);
    let turns = 0;
    let isRead = false;
    const count = () => {
      if (!isRead) setImmediate(count);
      turns++;
    };
    const read: AsyncHandler = async (req, res) => {
      req.once('end', count);
      const { prompt: text } = await readBody(req, res, new BodyMemory(10_000_000, systemClock), schema);
      isRead = true;
      res.json({ isSame: text === prompt });
    };
    const answer = await answerOf([read], jsonPost('/', JSON.stringify({ prompt })));
    expect(answer).toMatchObject({ status: 200, body: { isSame: true } });
    expect(turns).toBeGreaterThanOrEqual(5); // for 4 MB, the parser and the check
  });

  it('preserves the inputs of earlier calls exactly, and reads other numbers as JavaScript does', async () => {
    const big = '12345678901234567890';
    const text = `{"prompt":"a","n":${big},"messages":[
      {"content":[{"type":"tool_use","input":{"id":${big},"x":1.0}},{"type":"other","input":{"id":${big}}}]},
      {"content":"b","tool_calls":[{"function":{"name":"look","arguments":{"id":${big}}}},null,{"function":5}]},null]}`;
    const read: AsyncHandler = async (req, res) =>
      void res.send(stringifyExactly(await readBody(req, res, new BodyMemory(10_000, systemClock), z.looseObject({}))));
    const answer = await answerOf([read], jsonPost('/', text));
    const rounded = JSON.stringify(Number(big));
    const expected = text.replace(/\n */g, '').replace(`"n":${big}`, `"n":${rounded}`);
    expect(answer.text).toBe(expected.replace(`"other","input":{"id":${big}`, `"other","input":{"id":${rounded}`));
  });

  it('is rejected with all its faults, up to twenty, and never with a value', async () => {
    const wide = z.strictObject({});
    const all: AsyncHandler = async (req, res) =>
      void res.json(await readBody(req, res, new BodyMemory(10_000, systemClock), wide));
    const fields = Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`f${n}${'x'.repeat(100)}`, 'secret']));
    const { status, body, text } = await answerOf([all], jsonPost('/', JSON.stringify(fields)));
    expect([status, (body.details as unknown[]).length]).toEqual([400, 20]);
    expect((body.details as { path: string }[])[0]?.path).toHaveLength(64);
    expect(text).not.toContain('secret');
  });

  it('is rejected with a short error if a name in it is as long as the body', async () => {
    const named = z.strictObject({ metadata: z.record(z.string(), z.string()) });
    const all: AsyncHandler = async (req, res) =>
      void res.json(await readBody(req, res, new BodyMemory(1_000_000, systemClock), named));
    const metadata = { ['.1'.repeat(200_000)]: 5, ['n'.repeat(200_000)]: { arguments: '['.repeat(300) } };
    const { status, text } = await answerOf([all], jsonPost('/', JSON.stringify({ metadata })));
    expect([status, text.length < 2000]).toEqual([400, true]);
  });

  it('is rejected if it has too many values to check quickly', async () => {
    const list = z.object({ list: z.array(z.object({})) });
    const all: AsyncHandler = async (req, res) =>
      void res.json((await readBody(req, res, new BodyMemory(1_000_000, systemClock), list)).list.length);
    const send = (length: number, value: unknown) =>
      answerOf([all], jsonPost('/', JSON.stringify({ list: Array(length).fill(value) })));
    expect((await send(49_999, {})).status).toBe(200);
    const tooMany = { status: 400, body: { message: 'body: must contain at most 50000 values' } };
    expect(await send(50_000, {})).toMatchObject(tooMany);
    expect(await send(400_000, 5)).toMatchObject(tooMany);
  });

  it.each<[string, Buffer, string]>([
    ['no type', request('POST /', ['Content-Length: 2'], '{}'), 'Content-Type: must be application/json'],
    ['another type', typed('text/plain'), 'Content-Type: must be'],
    ['another charset', typed('application/json; charset=utf-16'), 'Content-Type: the charset must be utf-8'],
    ['an encoding', jsonPost('/', good, ['Content-Encoding: gzip']), 'Content-Encoding: must not be sent'],
    ['bad UTF-8', jsonPost('/', Buffer.from([0x7b, 0xff, 0x7d])), 'body: must be valid UTF-8'],
  ])('is rejected with %s', async (_, bytes, message) => {
    const answer = await answerTo(bytes);
    expect([answer.status, answer.body.message]).toEqual([400, expect.stringContaining(message)]);
  });

  function typed(type: string): Buffer {
    return request('POST /', [`Content-Type: ${type}`, 'Content-Length: 2'], '{}');
  }
});

describe('A body that is too large', () => {
  it.each([
    ['by its length, before any of it arrives', jsonPost('/', '', ['Content-Length: 101'])],
    ['once too much has arrived, before its end', jsonPost('/', chunk('x'.repeat(101)), [chunked])],
  ])('is rejected %s', async (_, bytes) => {
    const message = 'the body is larger than 100 bytes (MODEL_API_BODY_LIMIT)';
    expect(await answerTo(bytes)).toMatchObject({ status: 413, body: { error: 'payload_too_large', message } });
  });
});

describe('A client that waits for 100 Continue', () => {
  const waiting = ['Content-Type: application/json', `Content-Length: ${good.length}`, 'Expect: 100-continue'];

  it('receives it if the headers are valid', async () => {
    await using server = await serveWith([echo]);
    using connection = await RawConnection.open(server.port);
    connection.send(request('POST /', waiting));
    expect((await connection.answer()).status).toBe(100);
    connection.send(good);
    expect(await connection.answer()).toMatchObject({ status: 200, body: { prompt: 'hello' } });
  });
});

const digits = z.string().regex(/^\d+$/, 'must be a number');

describe('A query parameter', () => {
  it('has the sent value, or undefined if none was sent', () => {
    expect(queryOf({ query: { limit: '7' } }, 'limit', digits)).toBe('7');
    expect(queryOf({ query: {} }, 'limit', digits)).toBeUndefined();
  });

  it.each<[unknown, string]>([
    ['many', 'limit: must be a number'],
    [['1', '2'], 'limit: must be sent once'],
    [{ a: '1' }, 'limit: must be sent once'],
  ])('is rejected by name: %j', (limit, message) => {
    const read = () => queryOf({ query: { limit } as never }, 'limit', digits);
    expect(read).toThrow(expect.objectContaining({ code: 'validation_error', message }));
  });
});
