import { join } from 'node:path';
import { untilJobs } from '../support/jobs.js';
import { programs } from '../support/service.js';
import { keys, type Open, oneKey } from './house.js';

const ask = { path: '/ask', body: { prompt: 'Hello' } } as const;
const chat = { path: '/chat', body: { message: 'Hello' } } as const;
const { alice } = keys;

export function describeFailures(open: Open): void {
  describe('when jobs fail', () => {
    it('says why the model CLI failed, and that the service itself is broken where it is', async () => {
      const defect = `--require=${join(programs, 'breaks-at-a-prompt.js')}`;
      await using service = await open('fails', { MODEL_API_STANDBY: '0', NODE_OPTIONS: defect });
      for (const { path, body } of [ask, chat]) {
        const { status, body: error } = await service.post(path, body);
        expect([status, error.error]).toEqual([500, 'cli_error']);
        expect([error.reason, error.details]).toEqual(['overloaded', undefined]);
      }
      const breaks = 'Bring out the defect';
      for (const { path, body } of [
        { ...ask, body: { prompt: breaks } },
        { ...chat, body: { message: breaks } },
      ]) {
        const { status, body: error } = await service.post(path, body);
        expect([status, error.error, error.message]).toEqual([500, 'internal_error', 'internal error']);
      }
    });

    it('says that there is no model CLI, and is not healthy in strict mode', async () => {
      await using service = await open('missing', { ...oneKey, MODEL_API_STRICT_HEALTH: 'true' });
      for (const { path, body } of [ask, chat]) {
        const { status, body: error } = await service.post(path, body, alice);
        expect([status, error.error]).toEqual([500, 'spawn_error']);
      }
      for (const answer of [await service.post('/health/recheck', '', alice), await service.get('/health')]) {
        expect([answer.status, answer.body.status, answer.body.strict_mode]).toEqual([503, 'degraded', true]);
        expect(answer.body.readiness).toMatchObject({ model_cli: { status: 'not_ready', error: expect.any(String) } });
      }
    });

    it.each([
      { first: ask, second: chat },
      { first: chat, second: ask },
    ])('ends those that take too long: $first.path running, $second.path waiting', async ({ first, second }) => {
      const limits = { MODEL_API_TIMEOUT: '4', MODEL_API_QUEUE_TIMEOUT_MS: '1500' };
      await using service = await open('stalls', {
        ...limits,
        MODEL_API_MAX_CONCURRENT: '1',
        MODEL_API_MAX_QUEUE: '1',
      });
      const running = service.post(first.path, first.body);
      await untilJobs(service, 1, 0);
      const waiting = service.post(second.path, second.body);
      await untilJobs(service, 1, 1);
      const refused = await service.post(first.path, first.body);
      expect([refused.status, refused.body.error]).toEqual([429, 'concurrency_limited']);
      const late = await waiting;
      expect([late.status, late.body.error]).toEqual([504, 'queue_timeout']);
      const stalled = await running;
      expect([stalled.status, stalled.body.error]).toEqual([504, 'timeout']);
      await untilJobs(service, 0, 0);
    });
  });
}
