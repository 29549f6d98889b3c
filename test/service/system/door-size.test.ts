import { chunk, jsonPost, RawConnection, request } from '../../support/clients/raw-http.js';
import { expectCommon, expectSound, failure } from '../../support/doors/door.js';
import { type Service, startService } from '../../support/service/service.js';

const limit = 4096;
const chunked = 'Transfer-Encoding: chunked';
const expectation = 'Expect: 100-continue';
const refused = failure('payload_too_large', `the body is larger than ${limit} bytes (MODEL_API_BODY_LIMIT)`);

let service: Service;
let connection: RawConnection;

beforeAll(async () => {
  service = await startService({ env: { MODEL_API_BODY_LIMIT: '4kb' } });
});
beforeEach(async () => {
  connection = await RawConnection.open(service.port);
});
afterEach(() => connection[Symbol.dispose]());
afterAll(() => service.stop());

/** Returns a valid body of exactly this many bytes, and its prompt. */
function bodyOf(bytes: number): { body: string; prompt: string } {
  const prompt = 'x'.repeat(bytes - JSON.stringify({ prompt: '', model: 'echo' }).length);
  return { body: JSON.stringify({ prompt, model: 'echo' }), prompt };
}

describe('A body over the limit', () => {
  afterAll(() => expectSound(service));

  it('is refused by its Content-Length, before any of it is sent', async () => {
    connection.send(jsonPost('/ask', '', [`Content-Length: ${limit + 1}`]));
    const answer = await connection.answer();
    expect([answer.status, answer.body]).toEqual([413, refused]);
    expectCommon(answer);
  });

  it('is refused by its Content-Length, even if the request has other faults', async () => {
    connection.send(request('POST /ask', ['Content-Type: text/plain', 'Content-Length: 999999999999']));
    expect(await connection.answer()).toMatchObject({ status: 413, body: refused });
  });

  it('is refused once too much has arrived, before it is complete', async () => {
    connection.send(jsonPost('/ask', '', [chunked]));
    for (let sent = 0; sent <= limit; sent += 1024) connection.send(chunk('x'.repeat(1024)));
    const answer = await connection.answer();
    expect([answer.status, answer.body]).toEqual([413, refused]);
    expectCommon(answer);
  });

  it('may still be sent: the service discards it, and the connection stays usable', async () => {
    connection.send(jsonPost('/ask', '', ['Content-Length: 1000000']));
    expect((await connection.answer()).status).toBe(413);
    connection.send('x'.repeat(1_000_000));
    connection.send(request('GET /version'));
    expect((await connection.answer()).status).toBe(200);
  });

  it('gets no 100 Continue', async () => {
    connection.send(jsonPost('/ask', '', [`Content-Length: ${limit + 1}`, expectation]));
    const { status, headers, body } = await connection.answer();
    expect([status, body, headers.connection]).toEqual([413, refused, 'close']);
    await connection.closed();
    expect(connection.hasMore).toBe(false);
  });
});

describe('A body within the limit', () => {
  afterAll(() => expectSound(service));

  it('may have exactly the size limit', async () => {
    const { body, prompt } = bodyOf(limit);
    connection.send(jsonPost('/ask', body));
    expect(await connection.answer()).toMatchObject({ status: 200, body: { response: prompt } });
  });

  it('may have exactly the size limit when it is sent in chunks', async () => {
    const { body, prompt } = bodyOf(limit);
    connection.send(jsonPost('/ask', '', [chunked]));
    for (let at = 0; at < limit; at += 1000) connection.send(chunk(body.slice(at, at + 1000)));
    connection.send(chunk(''));
    expect(await connection.answer()).toMatchObject({ status: 200, body: { response: prompt } });
  });

  it('gets 100 Continue', async () => {
    const { body, prompt } = bodyOf(100);
    connection.send(jsonPost('/ask', '', ['Content-Length: 100', expectation]));
    expect(await connection.answer()).toMatchObject({ status: 100 });
    connection.send(body);
    expect(await connection.answer()).toMatchObject({ status: 200, body: { response: prompt } });
  });

  it.each([
    ['for its type', jsonPost('/ask', '', ['Content-Length: 100', expectation]).toString().replace('json', 'xml'), 400],
    ['for its method', request('GET /ask', ['Content-Length: 100', expectation]), 405],
    ['for its host', jsonPost('/ask', '', ['Host: evil.example', 'Content-Length: 100', expectation]), 403],
  ])('gets no 100 Continue when the request is refused %s', async (_why, bytes, expected) => {
    connection.send(bytes);
    const { status, headers } = await connection.answer();
    expect([status, headers.connection]).toEqual([expected, 'close']);
  });

  it('gets no 100 Continue over HTTP/1.0 or with an unknown expectation', async () => {
    const { body, prompt } = bodyOf(100);
    connection.send(jsonPost('/ask', body, [expectation]).toString().replace('HTTP/1.1', 'HTTP/1.0'));
    expect(await connection.answer()).toMatchObject({ status: 200, body: { response: prompt } });
    using other = await RawConnection.open(service.port);
    other.send(jsonPost('/ask', body, ['Expect: miracles']));
    expect(await other.answer()).toMatchObject({ status: 200, body: { response: prompt } });
  });
});
