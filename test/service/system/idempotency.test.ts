import { createAnswerGate } from '../../support/agents/answer-gate.js';
import { shared } from '../../support/basics/shared.js';
import { headersOf, type KeyHolder, writeNamedKeys } from '../../support/doors/named-keys.js';
import { untilJobs } from '../../support/jobs/jobs.js';
import {
  type Answer,
  type Service,
  startService,
  startWithProgram,
  twoWorkers,
} from '../../support/service/service.js';

const key = { 'idempotency-key': '"5d1d0a5e-retry"' };

const gate = shared(createAnswerGate);
/** The program answers while the gate is open. */
const gated = shared(async () => startWithProgram((await gate()).command, twoWorkers));
const keys = shared(writeNamedKeys);
const demo = shared(async () => startService({ env: (await keys()).env }));

async function modelRuns(service: Service): Promise<number> {
  const { text } = await service.get('/metrics');
  const counts = [...text.matchAll(/^model_api_jobs_total\{.*\} (\d+)$/gm)];
  return counts.reduce((sum, [, count]) => sum + Number(count), 0);
}

function isReplayed({ headers }: Answer): boolean {
  return headers.get('idempotency-replayed') === 'true';
}

describe('Requests with an Idempotency-Key', () => {
  it('run the model once even if 50 arrive at once at two workers', async () => {
    const service = await gated();
    const runs = await modelRuns(service);
    const send = () => service.post('/ask', { prompt: 'once' }, key);
    const sent = Array.from({ length: 50 }, send);
    const others = Promise.race(sent);
    expect(await others).toMatchObject({ status: 409, body: { error: 'idempotency_in_progress' } });
    await (await gate()).open();
    const answers = await Promise.all(sent);
    const first = answers.filter(({ status }) => status === 200);
    const fresh = first.filter((answer) => !isReplayed(answer));
    expect(fresh).toHaveLength(1);
    expect(new Set(first.map(({ text }) => text)).size).toBe(1);
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(50 - first.length);
    for (const again of await Promise.all(Array.from({ length: 10 }, send))) {
      expect([again.text, isReplayed(again)]).toEqual([fresh[0]?.text, true]);
    }
    expect(await modelRuns(service)).toBe(runs + 1);
    await (await gate()).close();
  });

  it('add a single turn to a conversation, streamed or not', async () => {
    const service = await demo();
    const alice = { ...headersOf('alice'), 'idempotency-key': 'first turn' };
    const begin = () => service.post('/chat', { message: 'My name is Ada' }, alice);
    const [first, second] = [await begin(), await begin()];
    expect([second.text, isReplayed(second)]).toEqual([first.text, true]);
    const { conversation_id } = first.body;
    expect(second.headers.get('x-conversation-id')).toBe(conversation_id);
    const further = { message: 'What is my name?', conversation_id, stream: true };
    const go = () => service.post('/chat', further, { ...alice, 'idempotency-key': 'further' });
    const [told, again] = [await go(), await go()];
    expect(told.text).toContain('event: done');
    expect([again.text, again.headers.get('content-type')]).toEqual([told.text, told.headers.get('content-type')]);
    expect((await service.get(`/chat/${conversation_id}`, alice)).body).toMatchObject({ message_count: 4 });
    await service.delete(`/chat/${conversation_id}`, alice);
    expect((await go()).text).toBe(told.text);
  });

  it('are stored per client, and only if the model ran', async () => {
    const service = await demo();
    const as = (name: KeyHolder) => ({ ...key, ...headersOf(name) });
    const body = { prompt: 'Hello' };
    expect((await service.post('/ask', body, key)).status).toBe(401);
    expect((await service.post('/ask', { prompt: '' }, as('alice'))).status).toBe(400);
    const bad = { ...as('alice'), 'idempotency-key': 'x'.repeat(256) };
    const { status, body: error } = await service.post('/ask', body, bad);
    expect([status, error.details]).toEqual([
      400,
      [{ path: 'Idempotency-Key', message: 'must have 1 to 255 characters' }],
    ]);
    const answers = [await service.post('/ask', body, as('alice')), await service.post('/ask', body, as('bob'))];
    expect(answers.map((answer) => [answer.status, isReplayed(answer)])).toEqual([
      [200, false],
      [200, false],
    ]);
    expect(isReplayed(await service.post('/ask', body, as('bob')))).toBe(true);
  });

  it('run again if the first client disconnected, and the conversation has no turn of the first request', async () => {
    const service = await gated();
    const [leaver, message] = [{ 'idempotency-key': 'leaver' }, 'once'];
    const controller = new AbortController();
    const gone = service.post('/chat', { message }, leaver, controller.signal).catch(() => null);
    await untilJobs(service, 1, 0);
    controller.abort();
    await gone;
    await untilJobs(service, 0, 0);
    await (await gate()).open();
    const answer = await service.post('/chat', { message }, leaver);
    expect([answer.body.message_count, isReplayed(answer)]).toEqual([2, false]);
    await (await gate()).close();
  });
});
