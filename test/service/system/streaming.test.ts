import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startReportingModel, untilProcesses } from '../../support/agents/reporting-model.js';
import { temporaryFolder } from '../../support/basics/folder.js';
import { shared } from '../../support/basics/shared.js';
import { until } from '../../support/basics/until.js';
import { namesOf, type StreamAnswer, type StreamEvent, stream, textOf } from '../../support/clients/event-stream.js';
import { metric } from '../../support/documents/exposition.js';
import { recovers, untilJobs } from '../../support/jobs/jobs.js';
import { type Service, script, startWithPrograms } from '../../support/service/service.js';

/** Returns the names of the events, with repeated deltas as one. */
function orderOf(events: readonly StreamEvent[]): string {
  return namesOf(events)
    .join(' ')
    .replace(/delta( delta)*/, 'delta…');
}

const demo = shared(() => startWithPrograms({ splitting: script('splits-utf8.pl'), missing: '/no/such/program' }));
const oneSlot = shared(() => startReportingModel({ MODEL_API_MAX_CONCURRENT: '1', MODEL_API_MAX_QUEUE: '2' }));
const reportingService = shared(() => startReportingModel({ MODEL_API_MAX_CONCURRENT: '4' }));

function failureOf(events: readonly StreamEvent[]) {
  expect(events.at(-1)?.event).toBe('error');
  return events.at(-1)?.data;
}

describe('A streamed answer', () => {
  it.each([
    ['/ask', { prompt: 'Hello, my name is Ada.' }],
    ['/chat', { message: 'Hello, my name is Ada.', system: 'You are Bob.' }],
  ])('equals the plain answer, and is sent as it is written: %s', async (path, body) => {
    const service = await demo();
    const plain = await service.post(path, body);
    const answer = await stream(service, path, body);
    expect(answer.status).toBe(200);
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
      'x-content-type-options': 'nosniff',
    });
    const events = await answer.remainingEvents();
    expect(orderOf(events)).toBe('started delta… done');
    expect(events[0]?.data).toEqual({ queue_ms: expect.any(Number) });
    const done = events.at(-1)?.data ?? {};
    expect(Object.keys(done)).toEqual(Object.keys(plain.body));
    expect(done).toMatchObject({ success: true, response: plain.body.response, model: plain.body.model });
    expect(done.request_id).toBe(answer.headers.get('x-request-id'));
    expect(textOf(events)).toBe(done.response);
    expect(namesOf(events).filter((name) => name === 'delta').length).toBeGreaterThan(3);
  });

  it('arrives while it is written, not after its end', async () => {
    const service = await reportingService();
    await using answer = await stream(service, '/ask', { prompt: 'hang' });
    await answer.next('started');
    expect(await answer.next('delta')).toEqual({ text: 'Well' });
    await untilProcesses(service, { busy: 1 });
    answer.leave();
    await recovers(service);
  });

  it('has whole characters, however the program splits them', async () => {
    const prompt = 'Ä€😀 \u2028 ё 日本 👩‍👩‍👧 "\\n"';
    const answer = await stream(await demo(), '/ask', { prompt, model: 'splitting' });
    const events = await answer.remainingEvents();
    expect(textOf(events)).toBe(prompt);
    const deltas = events.filter(({ event }) => event === 'delta').map(({ data }) => data.text as string);
    expect(deltas.length).toBeGreaterThan(10);
    for (const text of deltas) expect(Buffer.from(text).toString()).toBe(text);
  });

  it('is requested by the body, or by Accept if the body does not specify it', async () => {
    const service = await demo();
    const typeOf = async (accept: string, body: object) => {
      const answer = await service.post('/ask', { prompt: 'Hi', ...body }, { accept });
      expect(answer.status).toBe(200);
      return answer.headers.get('content-type')?.split(';')[0];
    };
    const [events, json] = ['text/event-stream', 'application/json'];
    expect(await typeOf('*/*', { stream: true })).toBe(events);
    expect(await typeOf(json, { stream: true })).toBe(events);
    expect(await typeOf(events, {})).toBe(events);
    expect(await typeOf(`${json}, ${events};q=0.5`, {})).toBe(json);
    expect(await typeOf('*/*', {})).toBe(json);
    expect(await typeOf(events, { stream: false })).toBe(json);
  });
});

describe('A waiting job', () => {
  it('receives its queue position, each change of it, and its start', async () => {
    await using folder = await temporaryFolder();
    const gates = ['a', 'b', 'c'].map((name) => join(folder.path, name));
    const service = await oneSlot();
    const answers: StreamAnswer[] = [];
    for (const gate of gates) {
      answers.push(await stream(service, '/ask', { prompt: `wait ${gate}` }));
      await untilJobs(service, 1, answers.length - 1);
    }
    const [first, second, third] = answers as [StreamAnswer, StreamAnswer, StreamAnswer];
    expect(await second.next('queued')).toEqual({ position: 1, reason: 'slot' });
    expect(await third.next('queued')).toEqual({ position: 2, reason: 'slot' });
    await writeFile(gates[0] as string, '');
    expect(await third.next('queued')).toEqual({ position: 1, reason: 'slot' });
    for (const gate of gates) await writeFile(gate, '');
    for (const answer of [first, second, third])
      expect(namesOf(await answer.remainingEvents())).toEqual(['started', 'delta', 'done']);
  });

  it('also receives its queue position while it waits for the previous turn', async () => {
    await using folder = await temporaryFolder();
    const gate = join(folder.path, 'gate');
    const service = await reportingService();
    const { conversation_id } = (await service.post('/chat', { message: 'hello' })).body;
    await untilJobs(service, 0, 0);
    const first = service.post('/chat', { message: `wait ${gate}`, conversation_id });
    await untilJobs(service, 1, 0);
    const second = await stream(service, '/chat', { message: 'then', conversation_id });
    expect(await second.next('queued')).toEqual({ position: 1, reason: 'conversation' });
    await untilJobs(service, 1, 1);
    await writeFile(gate, '');
    const events = await second.remainingEvents();
    expect(namesOf(events)).toEqual(['started', 'delta', 'done']);
    expect(events[0]?.data.queue_ms).toBeGreaterThan(0);
    expect((await first).status).toBe(200);
    expect(events.at(-1)?.data).toMatchObject({ message_count: 6 });
  });
});

/** Expects a refusal in JSON. */
async function expectRefused(service: Service, body: object, expected: object): Promise<void> {
  const answer = await stream(service, '/ask', body);
  expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect({ status: answer.status, ...(await answer.body()) }).toMatchObject(expected);
}

describe('A job that fails after its admission', () => {
  async function failing(service: Service, prompt: string): Promise<Record<string, unknown>> {
    const answer = await stream(service, '/ask', { prompt });
    expect(answer.status).toBe(200);
    const events = await answer.remainingEvents();
    await recovers(service);
    return { order: orderOf(events), ...failureOf(events) };
  }

  const limits = { MODEL_API_TIMEOUT: '1.5', MODEL_API_MAX_CONCURRENT: '1', MODEL_API_QUEUE_TIMEOUT_MS: '300' };
  const impatient = shared(() => startReportingModel(limits));

  it('sends the normal error body as the last event', async () => {
    const service = await impatient();
    const countOf = (error: string) => metric(service, `errors_total{route="/ask",error="${error}"}`);
    const [timeouts, failures] = [await countOf('timeout'), await countOf('cli_error')];
    expect(await failing(service, 'silent')).toEqual({
      order: 'started error',
      error: 'timeout',
      message: 'the model took longer than 1500 ms (MODEL_API_TIMEOUT)',
      request_id: expect.any(String),
    });
    expect(await failing(service, 'hang')).toMatchObject({ order: 'started delta… error', error: 'timeout' });
    expect(await failing(service, 'die')).toMatchObject({
      order: 'started delta… error',
      error: 'cli_error',
      reason: 'crashed',
    });
    const last = await failing(service, 'auth');
    expect(last).toMatchObject({ order: 'started error', error: 'cli_error' });
    const record = await service.log('http_request_completed', ({ request_id }) => request_id === last.request_id);
    expect(record).toMatchObject({ status_code: 200, error: 'cli_error', outcome: 'cli_error' });
    expect([await countOf('timeout'), await countOf('cli_error')]).toEqual([timeouts + 2, failures + 2]);
  });

  it('sends an error if its program cannot start', async () => {
    const events = await (await stream(await demo(), '/ask', { prompt: 'hi', model: 'missing' })).remainingEvents();
    expect([orderOf(events), failureOf(events)]).toMatchObject(['started error', { error: 'spawn_error' }]);
  });

  it('sends an error if it waited too long', async () => {
    const service = await impatient();
    const running = await stream(service, '/ask', { prompt: 'hang' });
    await running.next('started');
    const events = await (await stream(service, '/ask', { prompt: 'hi' })).remainingEvents();
    expect(orderOf(events)).toBe('queued error');
    expect(failureOf(events)).toMatchObject({
      error: 'queue_timeout',
      message: 'waited 300 ms for a slot (MODEL_API_QUEUE_TIMEOUT_MS)',
    });
    running.leave();
    await recovers(service);
  });
});

describe('A refused request', () => {
  it('has its HTTP status: a bad body, a full queue, a shutdown, which cuts off the running job with an error', async () => {
    const service = await oneSlot(); // the last test that uses it
    await expectRefused(service, { prompt: '' }, { status: 400, error: 'validation_error' });
    await expectRefused(service, { prompt: 'hi', model: 'nope' }, { status: 400 });
    const jobs: StreamAnswer[] = [];
    for (const prompt of ['hang', 'one', 'two']) {
      jobs.push(await stream(service, '/ask', { prompt }));
      await untilJobs(service, 1, jobs.length - 1);
    }
    const full = { status: 429, error: 'concurrency_limited', retry_after_seconds: expect.any(Number) };
    await expectRefused(service, { prompt: 'hi' }, full);
    const [running, ...waiting] = jobs as [StreamAnswer, ...StreamAnswer[]];
    for (const job of waiting) job.leave();
    service.process.kill('SIGTERM');
    await service.log('shutdown_start');
    await until(async () => (await service.get('/health')).status === 503, 'the worker to know of the drain');
    await expectRefused(service, { prompt: 'hi' }, { status: 503, error: 'shutting_down' });
    service.process.kill('SIGINT'); // a second SIGTERM this soon would count as the first
    const cut = { error: 'shutting_down', retry_after_seconds: expect.any(Number) };
    expect(failureOf(await running.remainingEvents())).toMatchObject(cut);
    expect(await service.exited).toBe(1);
  });
});
