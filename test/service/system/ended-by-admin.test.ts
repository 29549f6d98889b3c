import { type AnswerGate, createAnswerGate } from '../../support/agents/answer-gate.js';
import { shared } from '../../support/basics/shared.js';
import { until } from '../../support/basics/until.js';
import { askInBackground, statusOf, untilEnded, untilStatus } from '../../support/clients/background.js';
import { headersOf, writeNamedKeys } from '../../support/doors/named-keys.js';
import { untilTreeGone } from '../../support/jobs/jobs.js';
import { type Service, startWithProgram } from '../../support/service/service.js';

const [operator, alice, bob] = [headersOf('operator'), headersOf('alice'), headersOf('bob')];

interface RunningJob {
  readonly id: string;
  readonly client: string;
}

async function runningAt(service: Service): Promise<readonly RunningJob[]> {
  const { body } = await service.get('/status', operator);
  return (body.slots as { running: readonly RunningJob[] }).running;
}

const keys = shared(writeNamedKeys);
const gate = shared(createAnswerGate);
/** Has two slots. The program answers while the gate is open. */
const gated = shared(async () =>
  startWithProgram((await gate()).command, { ...(await keys()).env, MODEL_API_MAX_CONCURRENT: '2' }),
);

/** Runs a test while the gate is closed. */
async function withService(test: (service: Service, gate: AnswerGate) => Promise<void>): Promise<void> {
  await (await gate()).close();
  await test(await gated(), await gate());
}

describe('A client with jobs', () => {
  it('lists the ids of its waiting and running jobs, and cancels them', () =>
    withService(async (service, gate) => {
      const answers = ['one', 'two', 'three'].map((prompt) => service.post('/ask', { prompt }, alice));
      const jobs = await until(async () => {
        const { body } = await service.get('/jobs', alice);
        const found = body.jobs as readonly { readonly job_id: string; readonly status: string }[];
        return found.length === 3 ? found : null;
      }, 'three jobs');
      expect(jobs.map(({ status }) => status).sort()).toEqual(['queued', 'running', 'running']);
      expect((await service.get('/jobs', bob)).body.jobs).toEqual([]);
      const { body } = await service.get('/jobs?all=true&status=queued', operator);
      expect(body.jobs).toMatchObject([{ client: 'key alice', background: false }]);
      for (const { job_id } of jobs) {
        expect((await service.get(`/jobs/${job_id}`, bob)).status).toBe(404);
        expect((await service.get(`/jobs/${job_id}/events`, alice)).status).toBe(404);
        expect((await service.delete(`/jobs/${job_id}`, alice)).body).toMatchObject({ status: 'cancelled' });
      }
      for (const answer of answers) expect((await answer).status).toBe(403);
      expect((await service.get('/jobs', alice)).body.jobs).toEqual([]);
      await gate.open();
    }));
});

describe('An administrator', () => {
  it('cancels a job of another client: its caller gets an answer, its processes end, its slot is free', () =>
    withService(async (service, gate) => {
      const plain = service.post('/ask', { prompt: 'plain' }, { ...alice, 'idempotency-key': 'one' });
      const streamed = service.post('/v1/chat/completions', streamedChat, alice);
      const running = await until(async () => {
        const found = await runningAt(service);
        return found.length === 2 ? found : null;
      }, 'two running jobs');
      expect(running.map(({ client }) => client)).toEqual(['alice', 'alice']);
      for (const { id } of running) {
        expect((await service.delete(`/jobs/${id}`, bob)).status).toBe(404);
        expect((await service.delete(`/jobs/${id}`, operator)).body).toMatchObject({
          status: 'cancelled',
          deleted: false,
        });
      }
      const message = 'an administrator has ended the job';
      expect(await plain).toMatchObject({ status: 403, body: { error: 'forbidden', message } });
      expect((await streamed).text).toContain(message);
      await untilTreeGone(service);
      expect((await service.delete(`/jobs/${running[0]?.id}`, operator)).status).toBe(404);
      const again = await service.post('/ask', { prompt: 'plain' }, { ...alice, 'idempotency-key': 'one' });
      expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([403, 'true']);
      await gate.open();
      expect((await service.post('/ask', { prompt: 'the next' }, alice)).body.response).toBe('the next');
      const record = await service.log('job_ended_by_admin');
      expect(record).toMatchObject({
        by: 'key operator',
        job_id: running[0]?.id,
        client: 'key alice',
        outcome: 'cancelled',
      });
      const request = await service.log('http_request_completed', ({ request_id }) => request_id === record.request_id);
      expect(request).toMatchObject({ outcome: 'cancelled', error: 'forbidden', client: 'key alice' });
    }));

  it('lists and cancels the background jobs of all clients, but cannot read them', () =>
    withService(async (service, gate) => {
      const ids = [];
      for (const [prompt, who] of [
        ['one', alice],
        ['two', bob],
        ['three', alice],
      ] as const)
        ids.push(await askInBackground(service, prompt, who));
      await untilStatus(service, ids[0], 'running', alice);
      expect((await service.get('/jobs?all=true', alice)).status).toBe(403);
      const { body } = await service.get('/jobs?all=true', operator);
      const listed = body.jobs as readonly { job_id: string; client: string }[];
      expect(listed.map(({ job_id, client }) => [job_id, client])).toEqual([
        [ids[2], 'key alice'],
        [ids[1], 'key bob'],
        [ids[0], 'key alice'],
      ]);
      expect((await runningAt(service)).map(({ id }) => id).toSorted()).toEqual(ids.slice(0, 2).toSorted());
      expect((await service.get('/jobs', operator)).body.jobs).toEqual([]);
      expect((await service.get(`/jobs/${ids[0]}`, operator)).status).toBe(404);
      for (const id of [ids[2], ids[0]]) {
        expect((await service.delete(`/jobs/${id}`, operator)).body).toMatchObject({ status: 'cancelled' });
        expect(await untilEnded(service, id, alice)).toMatchObject({
          status: 'cancelled',
          cancelled_by: 'administrator',
        });
      }
      await gate.open();
      await untilStatus(service, ids[1], 'succeeded', bob);
      expect((await service.delete(`/jobs/${ids[1]}`, operator)).body).toMatchObject({
        status: 'succeeded',
        deleted: false,
      });
      expect(await statusOf(service, ids[1], bob)).toBe('succeeded');
      for (const [id, cancelled_by, outcome] of [
        [ids[2], 'key operator', 'cancelled'],
        [ids[0], 'key operator', 'cancelled'],
        [ids[1], undefined, 'ok'],
      ]) {
        const end = await service.log('background_job_ended', ({ job_id }) => job_id === id);
        expect([end.cancelled_by, end.outcome]).toEqual([cancelled_by, outcome]);
      }
    }));
});

const streamedChat = { model: 'default', stream: true, messages: [{ role: 'user', content: 'streamed' }] };
