import { createAnswerGate } from '../../support/agents/answer-gate.js';
import { shared } from '../../support/basics/shared.js';
import { until } from '../../support/basics/until.js';
import { askInBackground, statusOf, untilEnded, untilStatus } from '../../support/clients/background.js';
import { follow, namesOf, type StreamEvent, textOf } from '../../support/clients/event-stream.js';
import { jsonPost, request } from '../../support/clients/raw-http.js';
import { metric } from '../../support/documents/exposition.js';
import { answerTo } from '../../support/doors/door.js';
import { untilJobs, untilTreeGone } from '../../support/jobs/jobs.js';
import { type Service, startService, startWithProgram } from '../../support/service/service.js';

const demo = shared(startService);
const gate = shared(createAnswerGate);
/** Has one slot. The program answers while the gate is open. */
const gated = shared(async () => startWithProgram((await gate()).command, { MODEL_API_MAX_CONCURRENT: '1' }));

/** Returns the events after this one, of a job that has ended. */
async function eventsOf(service: Service, id: unknown, after: number | null = null): Promise<StreamEvent[]> {
  return (await follow(service, id, after)).remainingEvents();
}

describe('A background job', () => {
  it('is sent in full to a reader that resumes at any event', async () => {
    const service = await demo();
    const id = await askInBackground(service, 'Hello, my name is 🚀 Ada 🚀.');
    const { result } = await untilEnded(service, id);
    const { response } = result as { response: string };
    const all = await eventsOf(service, id);
    expect([namesOf(all)[0], textOf(all), all.at(-1)?.data]).toEqual(['started', response, result]);
    for (let after = 0; after <= response.length + 1; after++) {
      const rest = await eventsOf(service, id, after);
      expect(textOf(rest)).toBe(response.slice(Math.max(0, after - 1)));
      expect(rest.at(-1)?.event).toBe('done');
    }
    const ids = all.flatMap((event) => event.id ?? []);
    expect(ids).toEqual([...new Set(ids)].toSorted((a, b) => a - b));
    expect((await follow(service, id, ids.at(-1))).status).toBe(204);
  });

  it('runs after the waiting callers, is cancelled with all its processes, and is counted once', async () => {
    const service = await gated(); // counted from the start
    const ids = [await askInBackground(service, 'one'), await askInBackground(service, 'two')];
    await untilStatus(service, ids[0], 'running');
    const caller = service.post('/ask', { prompt: 'me first' });
    await until(async () => (await metric(service, 'jobs_queued')) === 1, 'a caller that waits');
    expect((await service.get(`/jobs/${ids[1]}`)).body).toMatchObject({ status: 'queued', position: 2 });
    expect((await service.delete(`/jobs/${ids[0]}`)).body).toMatchObject({ status: 'cancelled', deleted: false });
    await until(async () => (await metric(service, 'jobs_queued')) === 0, 'the caller to have the slot');
    expect(await statusOf(service, ids[1])).toBe('queued');
    await (await gate()).open();
    expect((await caller).body.response).toBe('me first');
    expect(await untilEnded(service, ids[1])).toMatchObject({ status: 'succeeded', result: { response: 'two' } });
    await untilTreeGone(service);
    const counted = (outcome: string) => metric(service, `jobs_total{operation="ask",outcome="${outcome}"}`);
    expect([await counted('ok'), await counted('cancelled')]).toEqual([2, 1]);
    const { body } = await service.get('/usage');
    expect(body.usage).toMatchObject([{ jobs: { ok: 2, cancelled: 1 } }]);
    const ends = service.logs.filter(({ event }) => event === 'background_job_ended');
    expect(ends.map(({ job_id, outcome }) => [job_id, outcome])).toEqual([
      [ids[0], 'cancelled'],
      [ids[1], 'ok'],
    ]);
    await (await gate()).close();
  });

  it('says why it has its model, and how long it has waited', async () => {
    const service = await demo();
    const { why } = await untilEnded(service, await askInBackground(service, 'Hello'));
    expect(why).toEqual([
      expect.stringMatching(
        /^demo answers it.*, because the request names no model, and this is the default of its client\.$/,
      ),
      expect.stringMatching(/^It got its slot after /),
    ]);
  });

  it('is a turn of its conversation, in the order of the turns', async () => {
    const service = await demo();
    const { body } = await service.post('/chat', { message: 'My name is Ada' });
    const { conversation_id } = body;
    const async = { prefer: 'respond-async' };
    const turn = await service.post('/chat', { message: 'What is my name?', conversation_id }, async);
    const { result } = await untilEnded(service, turn.body.job_id);
    expect(result).toMatchObject({ conversation_id, message_count: 4, response: expect.stringContaining('Ada') });
    const unknown = await service.post('/chat', { message: 'Hi', conversation_id: 'x'.repeat(24) }, async);
    expect([unknown.status, unknown.body.reason]).toEqual([400, 'conversation_unknown']);
  });

  it('is requested with the Prefer header in any standard notation', async () => {
    const service = await demo();
    const body = JSON.stringify({ prompt: 'Hello' });
    const statusWith = async (...headers: string[]) =>
      (await answerTo(service, jsonPost('/ask', body, headers))).status;
    expect(await statusWith('Prefer: wait=5', 'Prefer: respond-async')).toBe(202);
    expect(await statusWith('prefer: RESPOND-ASYNC;wait=1')).toBe(202);
    expect(await statusWith('Prefer: x="respond-async, respond-async"')).toBe(200);
    expect(await statusWith('Prefer: wait=5,\r\n respond-async')).toBe(400); // obsolete line folding
    const head = await answerTo(service, request('HEAD /jobs'), true);
    expect(head.status).toBe(200);
  });
});

it('The Responses API creates, reads, cancels and deletes a background job', async () => {
  const service = await gated();
  const [{ id: model }] = (await service.get('/v1/models')).body.data as [{ id: string }];
  const begin = () => service.post('/v1/responses', { model, input: 'Hello', background: true });
  const [first, second] = [await begin(), await begin()];
  expect([first.status, first.body.object, first.body.status]).toEqual([202, 'response', 'queued']);
  expect(first.body.id).toBe(`resp_${first.body.job_id}`);
  expect(first.body.created_at).toEqual(expect.any(Number)); // as in every response
  const [path, other] = [`/v1/responses/${first.body.id}`, `/v1/responses/${second.body.id}`];
  await untilStatus(service, first.body.job_id, 'running');
  expect((await service.get(path)).body).toMatchObject({ status: 'in_progress', created_at: expect.any(Number) });
  expect((await service.post(`${other}/cancel`, '')).body).toMatchObject({ id: second.body.id, status: 'cancelled' });
  await (await gate()).open();
  const { result } = await untilEnded(service, first.body.job_id);
  expect(result).toMatchObject({ object: 'response', status: 'completed', id: first.body.id, background: true });
  expect((await service.get(path)).body).toEqual(result);
  expect((await service.post(`${path}/cancel`, '')).body).toEqual(result); // the job had ended
  expect((await service.delete(path)).body).toMatchObject({ id: first.body.id, deleted: true });
  expect(await service.get(path)).toMatchObject({ status: 404, body: { error: { code: 'not_found' } } });
  const ask = await askInBackground(service, 'Hello');
  expect((await service.get(`/v1/responses/resp_${ask}`)).status).toBe(404);
  await untilEnded(service, ask);
});

it('A background response is streamed, survives its reader, and continues with the same events after any of them', async () => {
  const service = await gated();
  await (await gate()).close();
  const [{ id: model }] = (await service.get('/v1/models')).body.data as [{ id: string }];
  const body = { model, input: 'Hello, my name is Ada', background: true, stream: true };
  const left = new AbortController();
  const post = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
  const { body: stream } = await fetch(`${service.url}/v1/responses`, { ...post, signal: left.signal });
  const first = await stream?.getReader().read();
  const id = /"id":"(resp_\w[\w-]*)"/.exec(Buffer.from(first?.value ?? []).toString())?.[1];
  const path = `/v1/responses/${id}?stream=true`;
  left.abort();
  const live = service.get(path);
  await untilStatus(service, id?.slice('resp_'.length), 'running');
  await (await gate()).open();
  const blocks = ({ text }: { readonly text: string }) => text.split('\n\n').filter((block) => /^event/.test(block));
  const events = blocks(await live);
  expect(events.at(-1)).toContain('"status":"completed"');
  const numbers = events.map((event) => Number(/"sequence_number":(\d+)/.exec(event)?.[1]));
  expect(numbers).toEqual(events.map((_, index) => index));
  for (const after of numbers) {
    expect(blocks(await service.get(`${path}&starting_after=${after}`))).toEqual(events.slice(after + 1));
  }
  const beyond = await service.get(`${path}&starting_after=${numbers.length}`);
  expect([beyond.status, beyond.body.error]).toMatchObject([400, { param: 'starting_after' }]);
  expect((await service.get(path.replace('?stream=true', '?starting_after=1'))).status).toBe(400);
  const keyed = await service.post('/v1/responses', body, { 'idempotency-key': 'one' });
  expect([keyed.status, keyed.body.error]).toMatchObject([400, { param: 'stream' }]);
});

it('Without keys there is no administrator, and a caller can cancel its job', async () => {
  const service = await gated();
  await (await gate()).close();
  const answer = service.post('/ask', { prompt: 'mine' });
  await untilJobs(service, 1, 0);
  const { body } = await service.get('/status');
  const { running } = body.slots as { running: readonly [{ readonly id: string }] };
  expect((await service.get('/jobs?all=true')).status).toBe(403);
  expect((await service.delete(`/jobs/${running[0].id}`)).body).toMatchObject({ status: 'cancelled' });
  expect(await answer).toMatchObject({ status: 403, body: { message: 'the job was cancelled by its own client' } });
  expect(service.logs.some(({ event }) => event === 'job_ended_by_admin')).toBe(false);
});
