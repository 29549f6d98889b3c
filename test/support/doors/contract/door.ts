import { request } from '../../clients/raw-http.js';
import { nativeEndpoints } from '../../documents/tables.js';
import type { Service } from '../../service/service.js';
import { answerTo } from '../door.js';
import { keys, type Running } from './house.js';

const lines = nativeEndpoints.map(({ method, route }) => `${method} ${route.replace('{id}', 'some-id')}`);
const guarded = nativeEndpoints
  .filter(({ errors }) => errors.includes('unauthorized'))
  .map(({ method, route }) => `${method} ${route.replace('{id}', 'some-id')}`);
const alice = `X-API-Key: ${keys.alice['x-api-key']}`;
const type = 'Content-Type: application/json';

export function describeDoor(answering: Running): void {
  describe('at the door', () => {
    let service: Service;

    beforeAll(async () => {
      service = await answering();
    });

    it.each(lines)('refuses a request for two hosts, and one for a foreign host: %s', async (line) => {
      const two = await answerTo(service, request(line, ['Host: localhost', 'Host: localhost']));
      expect([two.status, two.body.error]).toEqual([400, 'validation_error']);
      const foreign = await answerTo(service, request(line, ['Host: relay.example.org', alice]));
      expect([foreign.status, foreign.body.error]).toEqual([403, 'forbidden']);
      const page = await answerTo(service, request(line, ['Origin: http://relay.example.org', alice]));
      expect([page.status, page.body.error]).toEqual([403, 'forbidden']);
    });

    it.each(guarded)('wants the key, and one key: %s', async (line) => {
      for (const headers of [[], [alice, 'Authorization: Bearer other']]) {
        const { status, body } = await answerTo(service, request(line, headers));
        expect([status, body.error]).toEqual([401, 'unauthorized']);
      }
    });

    it.each(guarded)(
      'answers wrong keys with 429 once there were too many, and the right one as ever: %s',
      async (line) => {
        const guess = () => answerTo(service, request(line, ['X-API-Key: guessed']));
        let last = await guess(); // may be blocked by earlier wrong keys
        // A minute may end in this loop: ten of 20 guesses are within one minute.
        for (let wrong = 1; wrong < 20 && last.status === 401; wrong++) last = await guess();
        const { status, headers, body } = last;
        expect([status, body.error, headers['retry-after']]).toEqual([429, 'rate_limited', expect.any(String)]);
        const right = await answerTo(service, request(line, [alice]));
        expect([401, 429]).not.toContain(right.status);
      },
    );

    it.each(lines)('has no other method: %s', async (line) => {
      const path = line.split(' ')[1];
      const { status, headers, body } = await answerTo(service, request(`PUT ${path}`, [alice]));
      expect([status, body.error]).toEqual([405, 'method_not_allowed']);
      expect(headers.allow?.split(', ')).toContain(line.split(' ')[0]);
    });

    it.each(['/asks', '/ask/', '/chat/', '/Health', '/chat/some-id/more'])('has no path %s', async (path) => {
      const { status, body } = await answerTo(service, request(`GET ${path}`, [alice]));
      expect([status, body.error]).toEqual([404, 'not_found']);
    });

    it.each([
      ['POST /ask', { prompt: '' }],
      ['POST /chat', { message: 'Hi', messages: [] }],
      ['POST /chat/some-id/fork', { from: 1 }],
      ['POST /chat/some-id/steer', { text: 1 }],
      ['POST /jobs/some-id/steer', { text: 1 }],
      ['POST /chat/import', { messages: [] }],
      ['PATCH /chat/some-id', { title: 1 }],
      ['POST /keys', { name: 1 }],
      ['POST /lent-keys', { seconds: 1 }],
      ['POST /reservations', { group: 'lab' }],
      ['PATCH /keys/some-id', { rate: 1 }],
      ['POST /courses/some-id/members', { logins: [] }],
      ['PATCH /courses/some-id/members/some-id', { tokens: 1 }],
      ['POST /keys/some-id/rotate', { old_until: 1 }],
    ])('refuses what is not as documented, before it has been sent where it is too large: %s', async (line, body) => {
      const text = JSON.stringify(body);
      const bad = await answerTo(service, request(line, [type, alice, `Content-Length: ${text.length}`], text));
      expect([bad.status, bad.body.error]).toEqual([400, 'validation_error']);
      const large = await answerTo(service, request(line, [type, alice, 'Content-Length: 20000000']));
      expect([large.status, large.body.error]).toEqual([413, 'payload_too_large']);
    });

    it.each([
      ['/ask', { prompt: 'Hello' }],
      ['/chat', { message: 'Hello' }],
    ])('has no file that nobody has uploaded: %s', async (path, asked) => {
      const { status, body } = await service.post(path, { ...asked, files: [{ file_id: 'file-x' }] }, keys.alice);
      expect([status, body.error]).toEqual([404, 'not_found']);
    });

    it.each(['/health/history', '/usage'])('refuses a time that is none: %s', async (path) => {
      const { status, body } = await service.get(`${path}?since=yesterday`, keys.alice);
      expect([status, body.error]).toEqual([400, 'validation_error']);
    });
  });
}
