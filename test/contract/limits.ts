import { untilJobs } from '../support/jobs.js';
import { viewStatus } from '../support/status-viewer.js';
import { until } from '../support/until.js';
import { keys, type Open, oneKey } from './house.js';

const { alice } = keys;

export function describeLimits(open: Open): void {
  describe('at its limits', () => {
    it('takes so many requests of one address in a window, and so many viewers, and no more', async () => {
      await using service = await open('answers', { MODEL_API_RATE_LIMIT_MAX_REQUESTS: '1', MODEL_API_WORKERS: '1' });
      expect((await service.post('/ask', {})).status).toBe(400);
      for (const path of ['/ask', '/chat']) {
        const { status, headers, body } = await service.post(path, {});
        expect([status, body.error, headers.get('retry-after')]).toEqual([429, 'rate_limited', expect.any(String)]);
      }
      const viewers = await Promise.all(Array.from({ length: 200 }, () => viewStatus(service)));
      const { status, body } = await service.get('/status/stream');
      expect([status, body.error]).toEqual([429, 'concurrency_limited']);
      for (const viewer of viewers) viewer.leave();
    });

    it('forks nothing while every conversation is in use', async () => {
      await using service = await open('answers', { MODEL_API_MAX_CONVERSATIONS: '1' });
      let id = (await service.post('/chat', { message: 'Hello' })).body.conversation_id;
      await until(async () => {
        const turn = service.post('/chat', { message: 'Hello again', conversation_id: id });
        const fork = await service.post(`/chat/${id}/fork`, {});
        await turn;
        id = fork.body.conversation_id ?? id; // it came too early, and has taken the place of the other
        return fork.body.error === 'concurrency_limited';
      }, 'a fork that is refused');
    });

    it('finishes its work when it drains, takes no more, and says so', async () => {
      await using service = await open('stalls', { ...oneKey, MODEL_API_TIMEOUT: '4' });
      const running = service.post('/ask', { prompt: 'Hello' }, alice);
      await untilJobs(service, 1, 0);
      service.process.kill('SIGTERM');
      await until(async () => (await service.get('/health')).status === 503, 'the drain');
      for (const [path, body] of [['/ask', { prompt: 'Hello' }] as const, ['/chat', { message: 'Hello' }] as const]) {
        const { status, headers, body: error } = await service.post(path, body, alice);
        expect([status, error.error, headers.get('connection')]).toEqual([503, 'shutting_down', 'close']);
      }
      const { status, body } = await service.post('/health/recheck', '', alice);
      expect([status, body.status]).toEqual([503, 'draining']);
      expect((await service.get('/version')).status).toBe(200);
      expect((await running).body.error).toBe('timeout');
      expect(await service.exited).toBe(0);
    });
  });
}
