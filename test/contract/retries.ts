import { untilJobs } from '../support/jobs.js';
import type { Open } from './house.js';

const requests = [
  { path: '/ask', body: { prompt: 'Hello' }, other: { prompt: 'Good bye' } },
  { path: '/chat', body: { message: 'Hello' }, other: { message: 'Good bye' } },
] as const;

export function describeRetries(open: Open): void {
  describe('when requests with a key are sent again', () => {
    it('runs each once, and says where it is still running, where it is another one, and how it has ended', async () => {
      await using service = await open('stalls', { MODEL_API_TIMEOUT: '3' });
      const send = (path: string, body: object) => service.post(path, body, { 'Idempotency-Key': `key of ${path}` });
      const first = requests.map(({ path, body }) => send(path, body));
      await untilJobs(service, 2, 0);
      for (const { path, body, other } of requests) {
        const again = await send(path, body);
        expect([again.status, again.body.error]).toEqual([409, 'idempotency_in_progress']);
        const mismatch = await send(path, other);
        expect([mismatch.status, mismatch.body.error]).toEqual([422, 'idempotency_mismatch']);
      }
      for (const [index, { path, body }] of requests.entries()) {
        const ended = await first[index];
        const again = await send(path, body);
        expect([again.status, again.text]).toEqual([504, ended?.text]);
        expect(again.headers.get('idempotency-replayed')).toBe('true');
      }
    });
  });
}
