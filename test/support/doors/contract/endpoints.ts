import { viewStatus } from '../../clients/event-stream.js';
import { request } from '../../clients/raw-http.js';
import { untilJobs } from '../../jobs/jobs.js';
import type { Service } from '../../service/service.js';
import { answerTo } from '../door.js';
import { keys, type Running } from './house.js';

const { alice } = keys;

export function describeEndpoints(answering: Running): void {
  describe('at each endpoint', () => {
    let service: Service;

    beforeAll(async () => {
      service = await answering();
    });

    it('answers a prompt', async () => {
      const { status, body } = await service.post('/ask', { prompt: 'Hello there', system: 'Be kind.' }, alice);
      expect([status, body.success, typeof body.model]).toEqual([200, true, 'string']);
      expect(body.response).toMatch(/\S/);
      const usage = body.usage as Record<string, number>;
      expect(Math.min(usage.input_tokens ?? 0, usage.output_tokens ?? 0)).toBeGreaterThan(0);
    });

    it('shows its health, and what it has done', async () => {
      await untilJobs(service, 0, 0);
      const { status, body } = await service.get('/health');
      expect(status).toBe(200);
      expect(body).toMatchObject({
        strict_mode: false,
        readiness: { model_cli: { adapter: expect.any(String) } },
        observability: {
          model_runtime: { active_requests: 0, queued_requests: 0, max_concurrent: 4, max_queue: 100 },
          workers: [{ state: 'ready' }, { state: 'ready' }],
        },
      });
    });

    it('checks its readiness when told to, and keeps the check in its history', async () => {
      const { status, body } = await service.post('/health/recheck', '', alice);
      expect([status, body.status]).toEqual([200, 'ok']);
      const { model_cli } = body.readiness as { model_cli: { status: string; checked_at: string } };
      expect(model_cli.status).toBe('ready');
      const { body: whole } = await service.get('/health/history');
      expect((whole.history as unknown[]).at(-1)).toEqual(model_cli);
      const nextPage = await service.get(`/health/history?since=${model_cli.checked_at}`);
      expect([nextPage.status, nextPage.body.history]).toEqual([200, []]);
    });

    it('tells its metrics, its version and its models', async () => {
      expect((await service.get('/metrics', alice)).text).toMatch(/^model_api_build_info\{.*\} 1$/m);
      const { body: version } = await service.get('/version');
      expect(version).toMatchObject({ name: 'prompt-relay', node: process.version });
      const { body } = await service.get('/models');
      const models = body.models as { id: string; default: boolean }[];
      expect(models).toHaveLength(body.count as number);
      expect(models.filter((model) => model.default)).toHaveLength(1);
    });

    it('tells what each client has used, by day', async () => {
      await service.post('/ask', { prompt: 'Hello there' }, alice);
      const { status, body } = await service.get('/usage', alice);
      const [row] = body.usage as { client: string; jobs: { ok: number } }[];
      expect([status, row?.client]).toEqual([200, 'default']);
      expect(row?.jobs.ok).toBeGreaterThan(0);
    });

    it('shows what it does now, and what it is set up with', async () => {
      const { status, body } = await service.get('/status', alice);
      expect(status).toBe(200);
      expect(body).toMatchObject({
        service: { status: expect.stringMatching(/^(ok|degraded)$/), drain_ends_at: null },
        slots: { max: 4 },
        queue: { max: 100 },
        workers: [{ state: 'ready' }, { state: 'ready' }],
      });
      const setup = await service.get('/setup', alice);
      expect([setup.status, setup.body.url, setup.body.keys]).toEqual([200, service.url, ['default']]);
      expect([(await service.get('/status')).status, (await service.get('/setup')).status]).toEqual([401, 401]);
      await using viewer = await viewStatus(service, alice);
      expect(Object.keys(await viewer.next('snapshot'))).toEqual(Object.keys(body));
    });

    it('makes, changes, rotates and removes a key', async () => {
      const made = await service.post('/keys', { name: 'carol', scopes: ['ask'] }, alice);
      expect([made.status, made.body.owner, made.body.scopes]).toEqual([201, 'key default', ['ask']]);
      const changed = await service.patch('/keys/carol', { rate: '60/60' }, alice);
      expect([changed.status, changed.body.rate]).toEqual([200, '60/60']);
      const rotated = await service.post('/keys/carol/rotate', {}, alice);
      expect([rotated.status, rotated.body.key === made.body.key]).toEqual([200, false]);
      expect((await service.delete('/keys/carol', alice)).status).toBe(200);
      for (const { status, body } of [
        await service.patch('/keys/carol', { rate: '60/60' }, alice),
        await service.post('/keys/carol/rotate', {}, alice),
        await service.delete('/keys/carol', alice),
      ])
        expect([status, body.error]).toEqual([404, 'not_found']);
      const { records } = (await service.get('/audit?limit=4', alice)).body;
      const acts = ['key_removed', 'key_rotated', 'key_changed', 'key_made'];
      expect(records).toMatchObject(
        acts.map((act) => ({ act, target: expect.stringMatching(/^made carol~[0-9a-f]{12}$/) })),
      );
    });

    it('lends a key for a time, and ends it', async () => {
      const lent = await service.post('/lent-keys', { seconds: 600 }, alice);
      expect([lent.status, lent.body.client]).toEqual([201, 'key default']);
      const borrowed = { 'x-api-key': String(lent.body.key) };
      expect((await service.post('/ask', { prompt: 'Hello' }, borrowed)).status).toBe(200);
      const { status, body } = await service.get('/lent-keys', alice);
      expect([status, body.keys]).toMatchObject([200, [{ id: lent.body.id }]]);
      expect((await service.post('/lent-keys', { seconds: 60 }, borrowed)).status).toBe(403);
      expect((await service.get('/lent-keys', borrowed)).status).toBe(403);
      expect((await service.delete('/lent-keys/current', borrowed)).status).toBe(200);
      expect((await service.post('/ask', { prompt: 'Hello' }, borrowed)).status).toBe(401);
      expect((await service.delete(`/lent-keys/${lent.body.id}`, alice)).status).toBe(404);
    });

    it('refuses a reservation for a group that it does not have, and finds none to cancel', async () => {
      const order = { group: 'lab', slots: 1, begins_at: '2099-01-01T10:00:00Z', seconds: 60 };
      const { status, body } = await service.post('/reservations', order, alice);
      expect([status, body.error]).toEqual([400, 'validation_error']);
      expect(await service.get('/reservations', alice)).toMatchObject({ status: 200, body: { reservations: [] } });
      expect((await service.delete('/reservations/some-id', alice)).status).toBe(404);
    });

    it('describes itself, for machines and for people', async () => {
      expect((await service.get('/openapi.yaml')).text).toMatch(/^openapi: 3\.1\.\d$/m);
      const { status, text } = await service.get('/docs');
      expect([status, text.includes('swagger-ui')]).toEqual([200, true]);
      expect((await answerTo(service, request('GET /console'))).status).toBe(302);
      expect((await service.get('/console/')).text).toContain('<title>prompt-relay</title>');
    });
  });
}
