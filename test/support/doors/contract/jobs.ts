import { untilEnded } from '../../clients/background.js';
import { keys, type Running } from './house.js';

const { alice } = keys;
const async = { ...alice, prefer: 'respond-async' };

export function describeBackgroundJobs(answering: Running, stalling: Running, failing: Running): void {
  describe('with jobs that outlive their request', () => {
    it('takes them, tells of them, and forgets them', async () => {
      const service = await answering();
      const ask = await service.post('/ask', { prompt: 'Hello there' }, async);
      expect([ask.status, ask.headers.get('preference-applied')]).toEqual([202, 'respond-async']);
      expect(ask.headers.get('location')).toBe(`/jobs/${ask.body.job_id}`);
      const chat = await service.post('/chat', { message: 'My name is Ada' }, async);
      expect([chat.status, chat.body.status, chat.body.durable]).toEqual([202, 'queued', expect.any(Boolean)]);

      const ended = await untilEnded(service, ask.body.job_id, alice);
      expect(ended).toMatchObject({ status: 'succeeded', operation: 'ask', position: null });
      expect(ended.result).toMatchObject({ success: true, request_id: ask.body.request_id });
      const turn = await untilEnded(service, chat.body.job_id, alice);
      const { conversation_id } = turn.result as { conversation_id: string };
      expect((await service.get(`/chat/${conversation_id}`, alice)).status).toBe(200);

      const { body: page } = await service.get('/jobs?status=succeeded&limit=1', alice);
      const { body: rest } = await service.get(`/jobs?limit=1&cursor=${page.next_cursor}`, alice);
      const ids = [page, rest].map(({ jobs }) => (jobs as { job_id: string }[])[0]?.job_id);
      expect(ids).toEqual([chat.body.job_id, ask.body.job_id]);

      const path = `/jobs/${ask.body.job_id}`;
      const { status, text } = await service.get(`${path}/events`, alice);
      expect([status, text.includes('\nevent: done\n')]).toEqual([200, true]);
      const last = /id: (\d+)\nevent: done/.exec(text)?.[1] ?? '';
      expect((await service.get(`${path}/events`, { ...alice, 'last-event-id': last })).status).toBe(204);
      expect((await service.delete(path, alice)).body).toMatchObject({ job_id: ask.body.job_id, deleted: true });
      for (const gone of [path, `${path}/events`, '/jobs/none']) {
        expect((await service.get(gone, alice)).body.error).toBe('not_found');
      }
      expect((await service.delete(path, alice)).body.error).toBe('not_found');
    });

    it('cancels one that runs, and refuses what is not as documented', async () => {
      const service = await stalling();
      const { body } = await service.post('/ask', { prompt: 'Hello' }, async);
      const path = `/jobs/${body.job_id}`;
      expect((await service.get(path, alice)).body.status).toMatch(/queued|running/);
      expect((await service.delete(path, alice)).body).toMatchObject({ status: 'cancelled', deleted: false });
      expect((await service.get(path, alice)).body.status).toBe('cancelled');
      for (const [bad, headers] of [
        ['/jobs?status=done', {}],
        [`${path}/events`, { 'last-event-id': 'x' }],
      ] as const) {
        const answer = await service.get(bad, { ...alice, ...headers });
        expect([answer.status, answer.body.error]).toEqual([400, 'validation_error']);
      }
    });

    it('tells why one has failed', async () => {
      const service = await failing();
      const { body } = await service.post('/ask', { prompt: 'Hello' }, async);
      const { status, error } = await untilEnded(service, body.job_id, alice);
      expect([status, error]).toMatchObject(['failed', { error: 'cli_error', request_id: body.request_id }]);
      const { text } = await service.get(`/jobs/${body.job_id}/events`, alice);
      expect(text).toContain('event: error\n');
    });
  });
}
