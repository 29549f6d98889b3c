import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { jsonPost, request } from '../../support/clients/raw-http.js';
import { answerTo, expectSound, failure } from '../../support/doors/door.js';
import { type Service, startService } from '../../support/service/service.js';

const good = '{"prompt":"hello","model":"echo"}';
const noKey = failure('unauthorized', 'an API key is needed: send X-API-Key or Authorization: Bearer');
const badKey = failure('unauthorized', 'the API key is not valid');
const manyKeys = failure('unauthorized', 'the request carries different API keys: send one');

function statusOf(service: Service, key: string): Promise<number> {
  return answerTo(service, jsonPost('/ask', good, [`X-API-Key: ${key}`])).then(({ status }) => status);
}

describe('A service with keys', () => {
  let folder: TemporaryFolder;
  let service: Service;
  beforeAll(async () => {
    folder = await temporaryFolder();
    const keys = '# the team\n\nada  key-of-ada\nbob\tkey-of-bob\r\nopen-sesame\n';
    await writeFile(join(folder.path, 'api_key'), keys);
    service = await startService({ env: { CREDENTIALS_DIRECTORY: folder.path } });
  });
  afterAll(async () => {
    await expectSound(service, { 'x-api-key': 'open-sesame' });
    await service.stop();
    await folder[Symbol.asyncDispose]();
  });

  it('reads them from its credential', async () => {
    for (const key of ['key-of-ada', 'key-of-bob', 'open-sesame']) expect(await statusOf(service, key)).toBe(200);
    for (const key of ['ada', 'default', '#', 'ada key-of-ada']) expect(await statusOf(service, key)).toBe(401);
    expect(JSON.stringify(service.logs)).not.toMatch(/key-of|sesame/);
  });

  it.each([
    ['X-API-Key', ['X-API-Key: open-sesame']],
    ['Bearer', ['Authorization: Bearer open-sesame']],
    ['bearer in other letters', ['authorization: bEARER  open-sesame']],
    ['both', ['X-API-Key: open-sesame', 'Authorization: Bearer open-sesame']],
    ['X-API-Key twice', ['X-API-Key: open-sesame', 'x-api-key: open-sesame']],
    ['X-API-Key beside another scheme', ['X-API-Key: open-sesame', 'Authorization: Basic eDp5']],
  ])('accepts a request with the key: %s', async (_how, headers) => {
    expect(await answerTo(service, jsonPost('/ask', good, headers))).toMatchObject({ status: 200 });
  });

  it.each<[string, string[], object]>([
    ['no key', [], noKey],
    ['no key, for a stream', ['Accept: text/event-stream'], noKey],
    ['another scheme', ['Authorization: Basic b3Blbi1zZXNhbWU='], noKey],
    ['a scheme without a key', ['Authorization: Bearer'], noKey],
    ['a key without a scheme', ['Authorization: open-sesame'], noKey],
    ['a key in the query', [], noKey],
    ['a wrong key', ['X-API-Key: open-sesam'], badKey],
    ['a wrong bearer', ['Authorization: Bearer open-sesame2'], badKey],
    ['an empty key', ['X-API-Key:'], noKey],
    ['the key in other letters', ['X-API-Key: Open-Sesame'], badKey],
    ['a key beyond ASCII', ['X-API-Key: \u00f6pen'], badKey],
    ['two keys in one line', ['X-API-Key: open-sesame, open-sesame'], badKey],
    ['a good and a wrong key', ['X-API-Key: open-sesame', 'X-API-Key: other'], manyKeys],
    ['a good key and a wrong bearer', ['X-API-Key: open-sesame', 'Authorization: Bearer other'], manyKeys],
    ['a wrong key and a good bearer', ['X-API-Key: other', 'Authorization: Bearer open-sesame'], manyKeys],
    ['a good and a wrong bearer', ['Authorization: Bearer open-sesame', 'Authorization: Bearer other'], manyKeys],
  ])('rejects a request without the right key: %s', async (what, headers, expected) => {
    const path = what.includes('query') ? '/ask?api_key=open-sesame&key=open-sesame' : '/ask';
    const { status, headers: answered, body, text } = await answerTo(service, jsonPost(path, good, headers));
    expect([status, body]).toEqual([401, expected]);
    expect(answered['www-authenticate']).toBe('Bearer realm="prompt-relay"');
    expect(text).not.toContain('sesam');
  });

  it.each(['GET /health', 'GET /version', 'GET /nowhere'])('requires no key for %s', async (line) => {
    const { status, headers } = await answerTo(service, request(line));
    expect([status, headers['www-authenticate']]).toEqual([line.endsWith('nowhere') ? 404 : 200, undefined]);
  });

  const length = 'Content-Length: 99999999';
  const wrong = 'X-API-Key: wrong';
  const right = 'X-API-Key: open-sesame';
  it.each<[string, Buffer, number]>([
    ['Host', request('BREW /nowhere', ['Host: evil.example', wrong, length]), 400],
    ['Host', request('DELETE /nowhere', ['Host: evil.example', wrong, length]), 403],
    ['Origin', request('DELETE /ask', ['Origin: http://evil.example', wrong, length]), 403],
    ['path', request('DELETE /nowhere', [wrong, length]), 404],
    ['method', request('DELETE /ask', [wrong, length]), 405],
    ['key', request('POST /ask', [wrong, length]), 401],
    ['size', request('POST /ask', [right, length, 'Content-Type: text/plain']), 413],
    ['type', request('POST /ask', [right, 'Content-Length: 4', 'Content-Type: text/plain'], 'nope'), 400],
    ['JSON', jsonPost('/ask', '{"prompt":', [right]), 400],
    ['fields', jsonPost('/ask', '{"prompt":"","model":"gpt-4"}', [right]), 400],
    ['model', jsonPost('/ask', '{"prompt":"a","model":"gpt-4"}', [right]), 400],
  ])('checks a request in a fixed order, and reports the first fault only: %s', async (_first, bytes, expected) => {
    expect((await answerTo(service, bytes)).status).toBe(expected);
  });
});
