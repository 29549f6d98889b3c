import { join } from 'node:path';
import { shared } from '../../basics/shared.js';
import { until } from '../../basics/until.js';
import { stream, viewStatus } from '../../clients/event-stream.js';
import { untilJobs } from '../../jobs/jobs.js';
import { type Answer, programs } from '../../service/service.js';
import { Contract } from '../contract.js';
import { describeConversations } from './conversations.js';
import { describeDoor } from './door.js';
import { describeEndpoints } from './endpoints.js';
import { keys, type Open, oneKey, type Running, type Start } from './house.js';
import { describeBackgroundJobs } from './jobs.js';

/** Tests the whole HTTP contract. The last test fails if a documented answer has not occurred. */
export function describeContract(name: string, start: Start): void {
  describe(`The contract, with ${name},`, () => {
    const { contract, open, answering, stalling } = describeAnswers(start);
    describeDoor(answering);
    describeLimits(open);
    describeRetries(stalling);
    describeMessages(answering, stalling);

    it('has been seen whole: every endpoint with every status and error code of its', () => {
      // Tested elsewhere: errors of stores outside memory (test/programs/store), and a title, a key or a message that is refused
      // because memory is full of bodies; courses and reservations (test/service/system).
      const testedByOthers =
        /^(?:POST \/reservations 201|(?!.* 40[13] )[A-Z]+ \/courses\/|DELETE \/reservations\/\{id\} 200)| store_unavailable$|^POST \/store\/|^PATCH .* concurrency_limited$|^POST \/(?:keys|lent-keys|reservations|.*\/steer).* concurrency_limited$/;
      const unseen = contract.unseen.filter((answer) => !testedByOthers.test(answer));
      expect(unseen).toEqual([]);
    });
  });
}

/** Tests that part of the HTTP contract that depends on the model CLI. The demo model shows the rest. */
export function describeModelContract(name: string, start: Start): void {
  describe(`The contract of jobs, with ${name},`, () => {
    describeAnswers(start);
  });
}

function describeAnswers(start: Start) {
  const contract = new Contract();
  const open: Open = (model, env = {}) => start(model, { contract, env });
  const answering = shared(() => open('answers', { ...oneKey, MODEL_API_METRICS_AUTH: 'true' }));
  const stalling = shared(() => open('stalls', { ...oneKey, MODEL_API_TIMEOUT: '3' }));
  const breaks = { MODEL_API_STANDBY: '0', NODE_OPTIONS: `--require=${join(programs, 'breaks-at-a-prompt.js')}` };
  const failing = shared(() => open('fails', { ...oneKey, ...breaks }));
  describeEndpoints(answering);
  describeConversations(open);
  describeBackgroundJobs(answering, stalling, failing);
  describeFailures(open, failing);
  return { contract, open, answering, stalling };
}

const { alice } = keys;
const requests = [
  { path: '/ask', body: { prompt: 'Hello' }, other: { prompt: 'Good bye' } },
  { path: '/chat', body: { message: 'Hello' }, other: { message: 'Good bye' } },
] as const;

function describeRetries(stalling: Running): void {
  describe('when requests with a key are sent again', () => {
    it('runs each once, and says where it is still running, where it is another one, and how it has ended', async () => {
      const service = await stalling();
      const send = (path: string, body: object) =>
        service.post(path, body, { ...alice, 'Idempotency-Key': `key of ${path}` });
      await untilJobs(service, 0, 0);
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

function describeMessages(answering: Running, stalling: Running): void {
  describe('when messages are sent to answers', () => {
    it('takes none for an answer that has ended, or that the client does not have', async () => {
      const service = await answering();
      const { body: chat } = await service.post('/chat', { message: 'Hello' }, alice);
      const { body: job } = await service.post('/ask', { prompt: 'Hello' }, { ...alice, Prefer: 'respond-async' });
      await untilJobs(service, 0, 0);
      for (const [path, status, error] of [
        [`/chat/${chat.conversation_id}`, 409, 'turn_ended'],
        [`/jobs/${job.job_id}`, 409, 'turn_ended'],
        ['/chat/some-id', 404, 'not_found'],
        ['/jobs/some-id', 404, 'not_found'],
      ]) {
        const answer = await service.post(`${path}/steer`, { text: 'more' }, alice);
        expect([path, answer.status, answer.body.error]).toEqual([path, status, error]);
      }
    });

    it.each(['chat', 'jobs'])('takes each once: /%s', async (kind) => {
      const service = await stalling();
      await untilJobs(service, 0, 0);
      const answer = await stream(service, '/chat', { message: 'Hello' }, alice);
      await untilJobs(service, 1, 0);
      const { jobs } = (await service.get('/jobs?status=running', alice)).body;
      const [job] = jobs as readonly [{ readonly job_id: string }];
      const id = kind === 'chat' ? answer.headers.get('x-conversation-id') : job.job_id;
      let count = 0;
      const send = (text: string) =>
        service.post(`/${kind}/${id}/steer`, { text }, { ...alice, 'Idempotency-Key': `message ${count} to ${id}` });
      let both: readonly Promise<Answer>[] = [];
      await until(async () => {
        count++;
        both = [send('more'), send('more')];
        const early = await Promise.race(both);
        if (early.body.error === 'idempotency_in_progress') return early.status === 409;
        await Promise.all(both); // the first was taken before the second arrived
        return false;
      }, 'a message that arrives while it is taken');
      const other = await send('other');
      expect([other.status, other.body.error]).toEqual([422, 'idempotency_mismatch']);
      const reached = (await Promise.all(both)).map(({ body }) => body.reached);
      expect(reached.toSorted()).toEqual(['next_turn', undefined]);
      answer.leave();
    });
  });
}

function describeLimits(open: Open): void {
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

    it('forks and imports nothing while every conversation is in use', async () => {
      await using service = await open('answers', { MODEL_API_MAX_CONVERSATIONS: '1', MODEL_API_WORKERS: '1' });
      let id = (await service.post('/chat', { message: 'Hello' })).body.conversation_id;
      const fork = () => service.post(`/chat/${id}/fork`, {});
      const add = () => service.post('/chat/import', { messages: savedTurn });
      for (const begin of [fork, add]) {
        await until(async () => {
          const turn = service.post('/chat', { message: 'Hello again', conversation_id: id });
          const { body } = await begin();
          await turn;
          id = body.conversation_id ?? id; // it was too early, and has evicted the other
          return body.error === 'concurrency_limited';
        }, 'a refusal');
      }
    });

    it('takes no jobs when it drains, says so, and exits when the last job has ended', async () => {
      const limits = { MODEL_API_TIMEOUT: '60', MODEL_API_DRAIN_TIMEOUT_SECONDS: '60' };
      await using service = await open('stalls', { ...oneKey, ...limits });
      const running = service.post('/ask', { prompt: 'Hello' }, alice);
      await untilJobs(service, 1, 0);
      service.process.kill('SIGTERM');
      await until(async () => (await service.get('/health')).status === 503, 'the drain');
      const refused = [
        ['/ask', { prompt: 'Hello' }],
        ['/chat', { message: 'Hello' }],
        ['/chat/import', { messages: savedTurn }],
        ['/chat/some-id/steer', { text: 'more' }],
        ['/jobs/some-id/steer', { text: 'more' }],
      ] as const;
      for (const [path, body] of refused) {
        const { status, headers, body: error } = await service.post(path, body, alice);
        expect([status, error.error, headers.get('connection')]).toEqual([503, 'shutting_down', 'close']);
      }
      const { status, body } = await service.post('/health/recheck', '', alice);
      expect([status, body.status]).toEqual([503, 'draining']);
      expect((await service.get('/version')).status).toBe(200);
      const [job] = (await service.get('/jobs', alice)).body.jobs as [{ job_id: string }];
      expect((await service.delete(`/jobs/${job.job_id}`, alice)).body).toMatchObject({ status: 'cancelled' });
      expect((await running).body.error).toBe('forbidden');
      expect(await service.exited).toBe(0);
    });
  });
}

const savedTurn = [
  { role: 'user', content: 'Hello' },
  { role: 'assistant', content: 'Hello' },
];
const ask = { path: '/ask', body: { prompt: 'Hello' } } as const;
const chat = { path: '/chat', body: { message: 'Hello' } } as const;

function describeFailures(open: Open, failing: Running): void {
  describe('when jobs fail', () => {
    it('says why the model CLI failed, and that the service itself is broken where it is', async () => {
      const service = await failing();
      for (const { path, body } of [ask, chat]) {
        const { status, body: error } = await service.post(path, body, alice);
        expect([status, error.error]).toEqual([500, 'cli_error']);
        expect([error.reason, error.details]).toEqual(['overloaded', undefined]);
      }
      const breaks = 'Bring out the defect';
      for (const { path, body } of [
        { ...ask, body: { prompt: breaks } },
        { ...chat, body: { message: breaks } },
      ]) {
        const { status, body: error } = await service.post(path, body, alice);
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

    const limits = { MODEL_API_TIMEOUT: '4', MODEL_API_QUEUE_TIMEOUT_MS: '1500' };
    const oneSlot = { MODEL_API_MAX_CONCURRENT: '1', MODEL_API_MAX_QUEUE: '1' };
    const impatient = shared(() => open('stalls', { ...limits, ...oneSlot }));

    it.each([
      { first: ask, second: chat },
      { first: chat, second: ask },
    ])('ends those that take too long: $first.path running, $second.path waiting', async ({ first, second }) => {
      const service = await impatient();
      const running = service.post(first.path, first.body);
      await untilJobs(service, 1, 0);
      const hurried = await service.post(second.path, second.body, { Prefer: 'wait=0' });
      expect([hurried.status, hurried.body.error]).toEqual([503, 'wait_too_long']);
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
