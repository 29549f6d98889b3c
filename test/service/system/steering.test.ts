import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf } from '../../../src/shared/config/api-keys.js';
import { temporaryFolder } from '../../support/basics/folder.js';
import { shared } from '../../support/basics/shared.js';
import { untilEnded, untilStatus } from '../../support/clients/background.js';
import { chat } from '../../support/clients/chat.js';
import { namesOf, type StreamAnswer, stream, textOf } from '../../support/clients/event-stream.js';
import { untilTreeGone } from '../../support/jobs/jobs.js';
import { type Service, script, startService } from '../../support/service/service.js';

/** The model answers with all texts that it has received, or slowly. */
const service = shared(() =>
  startService({ env: { MODEL_API_CLI_COMMAND: script('converses.pl'), MODEL_API_WORKERS: '2' } }),
);

const slowly = 'drip 400 20';

/** Begins an answer that takes long. Resolves when its first words have arrived. */
async function beginAnswer(
  to: Service,
  message = slowly,
  more: object = {},
): Promise<[answer: StreamAnswer, id: string]> {
  const answer = await stream(to, '/chat', { message, ...more });
  await answer.next('started');
  await answer.next('delta');
  return [answer, String(answer.headers.get('x-conversation-id'))];
}

interface NextTurn {
  readonly response: string;
  readonly conversation_id: string;
  readonly message_count: number;
}

async function resultOf(of: Service, jobId: unknown): Promise<NextTurn> {
  return (await untilEnded(of, jobId)).result as NextTurn;
}

/** Returns all texts that the model has had before its answer to the last one. */
function textsIn(response: unknown): readonly string[] {
  const { messages } = JSON.parse(String(response)) as { readonly messages: readonly { readonly text: string }[] };
  return messages.map(({ text }) => text);
}

async function messagesOf(of: Service, id: string): Promise<readonly Record<string, unknown>[]> {
  return (await of.get(`/chat/${id}/messages`)).body.messages as readonly Record<string, unknown>[];
}

describe('An answer that is being written', () => {
  it('ends early, and the conversation goes on with what the model had said', async () => {
    const [answer, id] = await beginAnswer(await service());
    const cut = await (await service()).post(`/chat/${id}/steer`, { interrupt: true });
    expect([cut.status, cut.body]).toMatchObject([200, { reached: null, interrupted: true, job_id: null }]);
    const events = await answer.remainingEvents();
    const said = `1 ${textOf(events)}`;
    expect([namesOf(events).at(-1), events.at(-1)?.data]).toMatchObject([
      'done',
      { response: said, incomplete: true, message_count: 2 },
    ]);
    expect(await messagesOf(await service(), id)).toMatchObject([
      { role: 'user', content: slowly },
      { role: 'assistant', content: said, interrupted: true },
    ]);
    const { response } = await chat(await service(), 'And then?', id);
    expect(textsIn(response)).toEqual([slowly, said, 'And then?']);
    await untilTreeGone(await service());
  });

  it('ends early before the model has said anything, and keeps the question', async () => {
    const answer = await stream(await service(), '/chat', { message: 'silent' });
    await answer.next('started');
    const id = String(answer.headers.get('x-conversation-id'));
    const { body } = await (await service()).post(`/chat/${id}/steer`, { interrupt: true, text: 'Are you there?' });
    expect(body).toMatchObject({ reached: 'next_turn', interrupted: true });
    expect((await answer.remainingEvents()).at(-1)?.data).toMatchObject({ response: '', incomplete: true });
    const { response } = await resultOf(await service(), body.job_id);
    expect(textsIn(response)).toEqual(['silent', '(no text)', 'Are you there?']);
  });

  it('is followed by the messages that arrive meanwhile, in their order, also in the first turn', async () => {
    const [answer, id] = await beginAnswer(await service(), 'drip 20 20');
    const steers = [];
    for (const text of ['first', 'second']) steers.push(await (await service()).post(`/chat/${id}/steer`, { text }));
    expect(steers.map(({ status, body }) => [status, body.reached, body.interrupted])).toEqual([
      [200, 'next_turn', false],
      [200, 'next_turn', false],
    ]);
    const said = `1 ${textOf(await answer.remainingEvents())}`;
    const results = [];
    for (const { body } of steers) results.push(await resultOf(await service(), body.job_id));
    const [{ response }, last] = results as [NextTurn, NextTurn];
    expect(textsIn(response)).toEqual(['drip 20 20', said, 'first']);
    expect(textsIn(last.response)).toEqual(['drip 20 20', said, 'first', response, 'second']);
    expect(last.message_count).toBe(6);
    expect((await messagesOf(await service(), id)).map(({ content }) => content)).toEqual([
      ...['drip 20 20', said, 'first', response, 'second', last.response],
    ]);
  });

  it.each([
    ['its client leaves', (answer: StreamAnswer) => answer.leave()],
    ['its client cancels it', async (_: StreamAnswer, job: string) => (await service()).delete(`/jobs/${job}`)],
  ])('is the first turn of a conversation, which a message begins instead if %s', async (_, end) => {
    const [answer, id] = await beginAnswer(await service(), slowly, { system: 'Be brief.' });
    const { body: list } = await (await service()).get('/jobs?status=running');
    const [job] = list.jobs as readonly { readonly job_id: string }[];
    const { body } = await (await service()).post(`/chat/${id}/steer`, { text: 'still there' });
    expect(body.reached).toBe('next_turn');
    await end(answer, String(job?.job_id));
    const ended = await untilEnded(await service(), body.job_id);
    expect(ended).toMatchObject({ status: 'succeeded', result: { conversation_id: id, message_count: 2 } });
    const { response } = await chat(await service(), 'And then?', id);
    expect(textsIn(response)).toEqual(['Be brief.', 'still there', expect.any(String), 'And then?']);
  });

  it('has no next turn while it waits in the background as the first turn', async () => {
    await using own = await startService({
      env: { MODEL_API_CLI_COMMAND: script('converses.pl'), MODEL_API_MAX_CONCURRENT: '1' },
    });
    const [answer] = await beginAnswer(own);
    const { body } = await own.post('/chat', { message: 'later' }, { prefer: 'respond-async' });
    const steered = await own.post(`/jobs/${body.job_id}/steer`, { text: 'more' });
    expect([steered.status, steered.body.error]).toEqual([409, 'turn_ended']);
    answer.leave();
  });

  it('is steered by the id of its job, too', async () => {
    const [answer, id] = await beginAnswer(await service());
    expect((await (await service()).get(`/chat/${id}`)).status).toBe(404); // it begins with the end of its first turn
    const { body } = await (await service()).get('/jobs?status=running');
    const [job] = body.jobs as readonly { readonly job_id: string }[];
    const steered = await (await service()).post(`/jobs/${job?.job_id}/steer`, { text: 'more', interrupt: true });
    expect(steered.body).toMatchObject({ reached: 'next_turn', interrupted: true });
    const said = `1 ${textOf(await answer.remainingEvents())}`;
    const result = await resultOf(await service(), steered.body.job_id);
    expect(textsIn(result.response)).toEqual([slowly, said, 'more']);
    expect(result.conversation_id).toBe(id);
  });

  it('takes a message once for each Idempotency-Key', async () => {
    const [answer, id] = await beginAnswer(await service(), 'drip 20 20');
    const send = async () =>
      (await service()).post(`/chat/${id}/steer`, { text: 'once' }, { 'idempotency-key': `steer-${id}` });
    const [one, two] = [await send(), await send()];
    expect(two.body).toEqual(one.body);
    await answer.remainingEvents();
    await untilEnded(await service(), one.body.job_id);
    expect(await messagesOf(await service(), id)).toHaveLength(4);
  });

  it('is not cut for a message that cannot be queued', async () => {
    const limits = { MODEL_API_MAX_CONCURRENT: '1', MODEL_API_MAX_JOBS: '1' };
    await using own = await startService({ env: { MODEL_API_CLI_COMMAND: script('converses.pl'), ...limits } });
    const [answer, id] = await beginAnswer(own, 'drip 20 20');
    expect((await own.post('/ask', { prompt: 'later' }, { prefer: 'respond-async' })).status).toBe(202);
    const refused = await own.post(`/chat/${id}/steer`, { text: 'now', interrupt: true });
    expect([refused.status, refused.body.error]).toEqual([429, 'concurrency_limited']);
    const end = (await answer.remainingEvents()).at(-1);
    expect([end?.event, end?.data.incomplete]).toEqual(['done', undefined]);
  });

  it('cannot be cut if it is no plain text', async () => {
    const schema = { type: 'object', properties: { a: { type: 'string' } } };
    const answer = await stream(await service(), '/chat', { message: slowly, schema });
    expect(namesOf([await answer.any()])).toEqual(['started']);
    const id = String(answer.headers.get('x-conversation-id'));
    const cut = await (await service()).post(`/chat/${id}/steer`, { interrupt: true });
    expect([cut.status, cut.body.details]).toMatchObject([400, [{ path: 'interrupt' }]]);
    const send = async () =>
      (await service()).post(`/chat/${id}/steer`, { text: 'cut', interrupt: true }, { 'idempotency-key': `cut-${id}` });
    expect([(await send()).status, (await send()).status]).toEqual([400, 400]);
    const { body } = await (await service()).get('/jobs');
    expect((body.jobs as readonly { readonly title: string }[]).map(({ title }) => title)).not.toContain('cut');
    answer.leave();
  });
});

describe('A message to an answer', () => {
  it('cannot have the Idempotency-Key of a message to another conversation', async () => {
    const [[one, first], [two, second]] = [await beginAnswer(await service()), await beginAnswer(await service())];
    const send = async (id: string) =>
      (await service()).post(`/chat/${id}/steer`, { text: 'more', interrupt: true }, { 'idempotency-key': first });
    expect((await send(first)).status).toBe(200);
    expect((await send(second)).body.error).toBe('idempotency_mismatch');
    two.leave();
    await one.remainingEvents();
  });

  it('is refused when the budget of its key is used up, but the answer can still be ended', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'keys');
    const key = 'the-key-of-ada-in-this-test';
    const write = (option: string) => writeFile(file, `ada:sha256:${digestOf(key)}:${option}\n`, { mode: 0o600 });
    await write('scopes=chat');
    const env = { MODEL_API_CLI_COMMAND: script('converses.pl'), MODEL_API_KEYS_FILE: file };
    await using own = await startService({ env });
    const asAda = { 'x-api-key': key };
    expect((await own.post('/chat', { message: 'Hello' }, asAda)).status).toBe(200);
    const { body } = await own.post('/chat', { message: slowly }, { ...asAda, prefer: 'respond-async' });
    await untilStatus(own, body.job_id, 'running', asAda);
    const send = async (message: object) => own.post(`/jobs/${body.job_id}/steer`, message, asAda);
    await write('tokens=1/day');
    await own.log('keys_loaded');
    const refused = await send({ text: 'more' });
    expect([refused.status, refused.body.reason]).toEqual([429, 'budget']);
    expect((await send({ interrupt: true })).status).toBe(200);
  });

  it('needs a key with the scope of the job', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'keys');
    const key = 'the-key-of-ada-in-this-test';
    const write = (scope: string) => writeFile(file, `ada:sha256:${digestOf(key)}:scopes=${scope}\n`, { mode: 0o600 });
    await write('chat');
    const env = { MODEL_API_CLI_COMMAND: script('converses.pl'), MODEL_API_KEYS_FILE: file };
    await using own = await startService({ env });
    const asAda = { 'x-api-key': key };
    const begin = async () => {
      const { body } = await own.post('/chat', { message: slowly }, { ...asAda, prefer: 'respond-async' });
      await untilStatus(own, body.job_id, 'running', asAda);
      return String(body.job_id);
    };
    const [first, second] = [await begin(), await begin()];
    const send = async (id: string, message: object) => (await own.post(`/jobs/${id}/steer`, message, asAda)).status;
    expect(await send(first, { interrupt: true })).toBe(200);
    await write('ask');
    await own.log('keys_loaded');
    expect(await send(second, { interrupt: true })).toBe(403);
    expect(await send(second, { text: 'more' })).toBe(403);
  });

  it('is refused if no answer is being written, if the conversation is unknown, and if the body is wrong', async () => {
    const { id } = await chat(await service(), 'Hello');
    const send = async (path: string, body: object, headers = {}) => {
      const { status, body: answer } = await (await service()).post(path, body, headers);
      return [status, answer.error];
    };
    expect(await send(`/chat/${id}/steer`, { text: 'late' })).toEqual([409, 'turn_ended']);
    expect(await send(`/chat/${'x'.repeat(24)}/steer`, { text: 'where?' })).toEqual([404, 'not_found']);
    expect(await send('/jobs/1-xxxxxxxx/steer', { text: 'where?' })).toEqual([404, 'not_found']);
    expect(await send(`/chat/${id}/steer`, {})).toEqual([400, 'validation_error']);
    expect(await send(`/chat/${id}/steer`, { interrupt: false })).toEqual([400, 'validation_error']);
    expect(await send(`/chat/${id}/steer`, { text: '' })).toEqual([400, 'validation_error']);
    const asked = await stream(await service(), '/ask', { prompt: slowly });
    await asked.next('started');
    const { body } = await (await service()).get('/jobs?status=running');
    const [job] = body.jobs as readonly { readonly job_id: string }[];
    expect(await send(`/jobs/${job?.job_id}/steer`, { text: 'no conversation' })).toEqual([409, 'turn_ended']);
    expect(await send(`/jobs/${job?.job_id}/steer`, { interrupt: true })).toEqual([200, undefined]);
    expect((await asked.remainingEvents()).at(-1)?.data).toMatchObject({ success: true, incomplete: true });
  });
});
