import { tmpdir } from 'node:os';
import { cliError, RelayError, toWire } from '../../../../src/shared/errors.js';
import type { JobDone, JobEvent } from '../../../../src/shared/job.js';
import { SpillFolder } from '../../../../src/worker/jobs/answer-text.js';
import { LogBook } from '../../../support/basics/log-book.js';
import { always, answerEvents, begun, type DoorOptions, sdkDoor, streamed } from '../../../support/doors/sdk-door.js';
import { jobDone, jobFailed } from '../../../support/jobs/job-records.js';

const chat = { model: 'eliza', messages: [{ role: 'user', content: 'Hi' }] };
const response = { model: 'eliza', input: 'Hi' };
const tool = { type: 'function', function: { name: 'f' } };
const refused = jobFailed('cli_error', { failure: toWire(cliError('refused', 'the model refuses')) });

function admitted(differences: object = {}): JobEvent {
  return { type: 'job-admitted', session: 'live', ignoresEffort: false, ...differences };
}

async function post(events: readonly JobEvent[], body: object = {}) {
  await using door = await sdkDoor(always(...events));
  return await door.post('/v1/chat/completions', { ...chat, ...body });
}

async function postResponse(events: readonly JobEvent[], body: object = {}, options: DoorOptions = {}) {
  await using door = await sdkDoor(always(...events), options);
  return await door.post('/v1/responses', { ...response, ...body });
}

const events = [...begun, ...answerEvents('good ', 'day'), jobDone({ model: 'eliza-2' })];

describe('An SDK endpoint', () => {
  it.each(['/v1/chat/completions', '/v1/responses'])(
    'reports errors in the format of its API, whatever headers the client sends: %s',
    async (path) => {
      await using door = await sdkDoor(always());
      const { status, body } = await door.post(path, {}, { 'anthropic-version': '2023-06-01' });
      expect([status, body]).toEqual([400, { error: expect.objectContaining({ type: 'invalid_request_error' }) }]);
    },
  );

  it('requests a normal job, with the history of the caller', async () => {
    await using door = await sdkDoor(always(...events));
    await door.post('/v1/chat/completions', { ...chat, stop: 'X', reasoning_effort: 'low', stream: true });
    expect(door.job).toMatchObject({
      operation: 'ask',
      conversationId: null,
      text: 'Hi',
      model: 'eliza',
      effort: 'low',
      isEffortNeeded: false,
      stop: ['X'],
      history: [],
      chain: { before: expect.any(String), asked: expect.any(String) },
      isStreamed: true,
    });
  });

  it('returns the model that answered, and the id of the request', async () => {
    const { headers, body } = await post(events);
    expect(body).toMatchObject({ model: 'eliza-2', id: `chatcmpl-${headers.get('x-request-id')}` });
    expect(body).toMatchObject({ choices: [{ message: { content: 'good day' } }] });
  });

  const estimate = { inputTokens: 3, outputTokens: 4 };
  const reported = { inputTokens: 30, outputTokens: 5, costUsd: 1, cacheReadTokens: 20, cacheWriteTokens: 2 };

  it.each<[string, Partial<JobDone>, object]>([
    ['nothing', {}, { input_tokens: 0, output_tokens: 0 }],
    ['an estimate', { estimate }, { input_tokens: 3, output_tokens: 4, total_tokens: 7 }],
    [
      'what the CLI reports',
      { usage: reported, estimate },
      { input_tokens: 30, output_tokens: 5, input_tokens_details: { cached_tokens: 20, cache_write_tokens: 2 } },
    ],
  ])('reports tokens: %s', async (_, end, usage) => {
    expect((await postResponse([...begun, ...answerEvents('x'), jobDone(end)])).body).toMatchObject({ usage });
  });

  it.each([
    [[], {}, null, 'live'],
    [[], { seed: 1, user: 'joe' }, 'user, seed', 'live'],
    [[], { reasoning_effort: 'high', seed: 1 }, 'seed', 'live'],
    [[{ ignoresEffort: true }], { reasoning_effort: 'high', seed: 1 }, 'seed, reasoning_effort', 'live'],
    [[{ session: 'replay' }], {}, null, 'replay'],
    [[{ session: null }], { stream: true, n: 1 }, null, null],
  ])(
    'reports in headers the ignored fields, and whether a process continued: %j %j',
    async ([first = {}], body, ignored, session) => {
      const { status, headers } = await post([admitted(first), ...events.slice(1)], body);
      expect([status, headers.get('x-ignored-parameters'), headers.get('x-session')]).toEqual([200, ignored, session]);
    },
  );
});

describe('A stream of an SDK endpoint', () => {
  it('starts when the job is admitted, with comments on the queue, and its first event comes from the model', async () => {
    const queued: JobEvent = { type: 'job-queued', position: 3, reason: 'slot' };
    const { status, headers, text } = await post([admitted(), queued, ...events.slice(1)], { stream: true });
    expect([status, headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8']);
    const texts = streamed(text).map((each) => (typeof each === 'string' ? each : ''));
    expect(texts).toEqual([': queued 3', '', '', '', '', 'data: [DONE]']);
  });

  it('is an error response if the job was not admitted', async () => {
    const full = new RelayError('concurrency_limited', 'full', { retryAfterSeconds: 4 });
    // biome-ignore lint/correctness/useYield: fails before its first event
    await using door = await sdkDoor(async function* () {
      throw full;
    });
    const answer = await door.post('/v1/responses', { ...response, stream: true });
    expect(answer).toMatchObject({ status: 429, body: { error: { code: 'concurrency_limited' } } });
    expect([answer.headers.get('retry-after'), answer.headers.get('x-should-retry')]).toEqual(['4', null]);
  });

  it.each([
    ['/v1/chat/completions', chat, {}],
    ['/v1/responses', response, { type: 'response.failed' }],
  ])('contains a failure after its start, and ends with it: %s', async (path, body, last) => {
    await using door = await sdkDoor(always(...begun, ...answerEvents('good '), jobFailed('timeout')));
    const { status, text } = await door.post(path, { ...body, stream: true });
    expect(status).toBe(200);
    const error = { code: 'timeout', message: 'it failed' };
    expect(streamed(text).at(-1)).toMatchObject('type' in last ? { ...last, response: { error } } : { error });
  });

  it('repeats a text that is too long for memory, in each event that contains it', async () => {
    const spill = new SpillFolder(tmpdir(), new LogBook());
    const piece = 'a "piece" ä😀\n'.repeat(500);
    const long = answerEvents(...Array.from({ length: 100 }, () => piece));
    const { text } = await postResponse([...begun, ...long, jobDone()], { stream: true }, { spill });
    const whole = piece.repeat(100);
    expect(streamed(text).slice(-4)).toMatchObject([
      { type: 'response.output_text.done', text: whole },
      { part: { text: whole } },
      { item: { content: [{ text: whole }] } },
      { type: 'response.completed', response: { output: [{ content: [{ text: whole }] }] } },
    ]);
  });

  it('ends with the final text if the CLI has corrected itself', async () => {
    const corrected = [...begun, ...answerEvents('good day'), jobDone({ text: 'good night' })];
    const { text } = await postResponse(corrected, { stream: true });
    expect(streamed(text).at(-1)).toMatchObject({ response: { output: [{ content: [{ text: 'good night' }] }] } });
  });
});

describe('A refusal by the model', () => {
  it('is an answer, not an error', async () => {
    const choice = { message: { content: 'I ' }, finish_reason: 'content_filter' };
    const { status, body } = await post([...begun, ...answerEvents('I '), refused]);
    expect([status, body]).toMatchObject([200, { choices: [choice] }]);
  });

  it.each([{ response_format: { type: 'json_object' } }, { tools: [tool], tool_choice: 'required' }])(
    'is an answer for structured output too: %j',
    async (body) => {
      for (const stream of [false, true]) {
        const { status, text } = await post([...begun, refused], { ...body, stream });
        expect([status, text]).toEqual([200, expect.stringContaining('"finish_reason":"content_filter"')]);
      }
    },
  );
});
