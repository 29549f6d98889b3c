import { lineHandlers } from '../../../../src/features/batches/lines.js';
import type { BatchCalls } from '../../../../src/features/batches/shared.js';
import type { BatchApi } from '../../../../src/features/stores/contract/files.js';
import type { JobView } from '../../../../src/shared/background.js';
import { RelayError } from '../../../../src/shared/errors.js';
import { noRoomForResult } from '../../../../src/shared/files.js';
import { filledFrame } from '../../../../src/shared/text/answer-frame.js';
import type { OfflineRoutes } from '../../../../src/worker/jobs/offline-routes.js';
import { readingFiles } from '../../../support/doors/no-features.js';
import { offlineRoutes } from '../../../support/doors/offline-routes.js';
import { backgroundView } from '../../../support/jobs/background-view.js';
import { FakePrimary } from '../../../support/jobs/fake-primary.js';
import { documentInspector } from '../../../support/jobs/inspected-documents.js';
import { jobDone, plainForm } from '../../../support/jobs/job-records.js';

const chat = { model: 'default', messages: [{ role: 'user', content: 'Hi' }] };
const message = { ...chat, max_tokens: 9 };

function openAiLine(url: string, body: object, id: unknown = 'a'): string {
  return JSON.stringify({ custom_id: id, method: 'POST', url, body });
}

const limitBytes = 1000;

/** `file`: the file of the batch. `routes`: those of the APIs that the service has. */
function handlersWith(
  answers: Readonly<Record<string, unknown>> = {},
  file: string | Buffer = '',
  routes: OfflineRoutes = offlineRoutes,
) {
  const bytes = Buffer.from(file);
  const filePiece = ({ from, to }: { readonly from: number; readonly to: number }) => ({
    data: bytes.subarray(from, Math.min(to, from + 100)).toString('base64'),
  });
  const primary = new FakePrimary({ accept: { id: 'j1', createdAt: 0, isDurable: true }, filePiece, ...answers });
  const defects: unknown[] = [];
  return {
    primary,
    defects,
    ...lineHandlers({
      primary: primary.asPrimary,
      fileCalls: primary as unknown as BatchCalls,
      features: { offlineRoutes: routes, readFiles: readingFiles(primary.asPrimary, limitBytes).readFiles },
      documents: documentInspector(),
      limitBytes,
      onDefect: (error) => defects.push(error),
    }),
  };
}

const caller = { groups: ['biology'], refusesFallback: true };
const order = { batch: 'batch_1', client: 'key ada', caller, jobId: 'j1', file: 'in', hasRoom: true } as const;

/** Returns the line of a file with only this line. */
function lineOf(file: string | Buffer, id: string | null = 'a') {
  return { start: 0, end: Buffer.byteLength(file), id };
}

async function refusedBy(api: BatchApi, text: string | Buffer, id: string | null = 'a') {
  const { submitLine, defects } = handlersWith({}, text);
  const { refused } = await submitLine({ ...order, api, line: lineOf(text, id) });
  expect([refused?.outcome, defects]).toEqual(['errored', []]);
  return JSON.parse(refused?.text ?? 'null') as Record<string, unknown>;
}

describe('A line of a batch', () => {
  it.each([
    ['chat', '/v1/chat/completions', openAiLine('/v1/chat/completions', chat)],
    ['responses', '/v1/responses', openAiLine('/v1/responses', { model: 'default', input: 'Hi' })],
    ['messages', '/v1/messages', JSON.stringify({ custom_id: 'a', params: message })],
  ] as const)('becomes a background job with the given id: %s', async (api, route, text) => {
    const { submitLine, primary } = handlersWith({}, `${text}\n`);
    expect(await submitLine({ ...order, api, line: lineOf(`${text}\n`) })).toEqual({ refused: null });
    expect(primary.calls.at(-1)).toMatchObject({
      name: 'accept',
      request: {
        id: 'j1',
        job: { text: 'Hi', client: 'key ada', groups: ['biology'], fallbacks: [] },
        form: { route, line: { customId: 'a', batch: 'batch_1' } },
      },
    });
  });

  const openAi = '/v1/chat/completions';
  it.each([
    ['chat', 'no JSON', null, 'body: must be valid JSON'],
    ['chat', openAiLine('/v1/responses', chat), 'a', `url: must be ${openAi}, the endpoint of the batch`],
    ['chat', openAiLine(openAi, chat, 7), null, 'custom_id: must be text'],
    ['chat', openAiLine(openAi, { ...chat, stream: true }), 'a', 'stream: must not be true in a batch'],
    ['chat', openAiLine(openAi, {}), 'a', 'messages: must be sent'],
    [
      'responses',
      openAiLine('/v1/responses', { model: 'm', input: '', previous_response_id: 'x' }),
      'a',
      'previous_response_id: is not supported in a batch',
    ],
    [
      'messages',
      JSON.stringify({ custom_id: 'a', params: { ...message, max_tokens: 0 } }),
      'a',
      'max_tokens: must be at least 1 in a batch',
    ],
  ] as const)('is refused in the form of its API (%s): %s', async (api, text, id, words) => {
    const line = await refusedBy(api, text, id);
    expect(line.custom_id).toBe(id);
    expect(JSON.stringify(line)).toContain(words);
    const form = api === 'messages' ? { result: { type: 'errored' } } : { response: { status_code: 400 }, error: null };
    expect(line).toMatchObject(form);
  });

  it('gets the bytes of the files to which it refers', async () => {
    const view = { id: 'file-1', purpose: 'user_data', name: 'a.txt', mediaType: 'text/plain', bytes: 5 };
    const content = [{ type: 'document', source: { type: 'file', file_id: 'file-1' } }];
    const params = { ...message, messages: [{ role: 'user', content }] };
    const text = JSON.stringify({ custom_id: 'a', params });
    const filePiece = ({ id, from }: { readonly id: string; readonly from: number }) => ({
      data: id === 'in' ? Buffer.from(text).subarray(from).toString('base64') : from === 0 ? 'Ynl0ZXM=' : '',
    });
    const { submitLine, primary } = handlersWith({ file: view, filePiece });
    expect(await submitLine({ ...order, api: 'messages', line: lineOf(text) })).toEqual({ refused: null });
    const job = { images: [{ data: 'Ynl0ZXM=', name: 'a.txt' }] };
    expect(primary.calls.at(-1)).toMatchObject({ name: 'accept', request: { job } });
  });

  it('may have as many bytes as a body, without its end', async () => {
    const padded = (bytes: number) => openAiLine(openAi, chat).padEnd(bytes);
    for (const file of [padded(limitBytes), `\ufeff${padded(limitBytes - 3)}`, `${padded(limitBytes)}\n`]) {
      const { submitLine } = handlersWith({}, file);
      expect(await submitLine({ ...order, api: 'chat', line: lineOf(file) })).toEqual({ refused: null });
    }
    for (const file of [padded(limitBytes + 1), `${padded(limitBytes + 1)}\n`])
      expect(JSON.stringify(await refusedBy('chat', file))).toContain('MODEL_API_BODY_LIMIT');
  });

  it('is not read if it is too long, or if its result has no room, and keeps its id', async () => {
    for (const [end, hasRoom, status, words] of [
      [1_000_000, true, 400, 'MODEL_API_BODY_LIMIT'],
      [10, false, 413, `"message":"${noRoomForResult}"`],
    ] as const) {
      const { submitLine, primary } = handlersWith();
      const { refused } = await submitLine({ ...order, api: 'chat', line: { start: 0, end, id: 'a' }, hasRoom });
      expect(JSON.parse(refused?.text ?? '')).toMatchObject({ custom_id: 'a', response: { status_code: status } });
      expect([refused?.text.includes(words), primary.calls]).toEqual([true, []]);
    }
  });

  it('gets an error if its file was removed, if it is not UTF-8, or if it is nested too deeply', async () => {
    const removed = { filePiece: new RelayError('not_found', 'no such file') };
    const { refused } = await handlersWith(removed).submitLine({ ...order, api: 'chat', line: lineOf('{}') });
    expect(refused?.text).toContain('was removed with its file');
    expect(JSON.stringify(await refusedBy('chat', Buffer.from([0xff])))).toContain('must be valid UTF-8');
    expect(JSON.stringify(await refusedBy('chat', '['.repeat(900)))).toContain('nested at most 200 levels deep');
  });

  it('is sent again if its job cannot be accepted now, and fails if its job never can', async () => {
    const text = openAiLine(openAi, chat);
    for (const code of ['concurrency_limited', 'shutting_down', 'store_unavailable', 'rate_limited'] as const) {
      const { submitLine } = handlersWith({ accept: new RelayError(code, 'not now') }, text);
      await expect(submitLine({ ...order, api: 'chat', line: lineOf(text) })).rejects.toMatchObject({ code });
    }
    const { submitLine } = handlersWith({ accept: new RelayError('validation_error', 'no such model') }, text);
    expect((await submitLine({ ...order, api: 'chat', line: lineOf(text) })).refused?.text).toContain('no such model');
  });

  it('reports a defect, and still has a result', async () => {
    const text = openAiLine(openAi, chat);
    const { submitLine, defects } = handlersWith({ accept: new TypeError('a defect') }, text);
    const { refused } = await submitLine({ ...order, api: 'chat', line: lineOf(text) });
    expect([defects.length, refused?.text.includes('internal')]).toEqual([1, true]);
  });
});

describe('The result of a line', () => {
  const routes = new Map([
    ['chat', '/v1/chat/completions'],
    ['responses', '/v1/responses'],
    ['messages', '/v1/messages'],
  ]);

  const { writeLine, endLines } = handlersWith();
  const line = { customId: 'a', ignored: ['seed'], isLegacyCall: false };

  function jobOf(api: BatchApi, more: Partial<JobView> = {}): JobView {
    return backgroundView({ form: { ...plainForm, route: routes.get(api) ?? '', model: 'default', line }, ...more });
  }

  /** Returns the result of a line with the answer `Hello "you"`. */
  async function resultOf(api: BatchApi, end = jobDone({ text: null })) {
    const answer = { end, hasText: true };
    const { frame, outcome } = await writeLine({ api, job: jobOf(api), answer, cause: null });
    return { text: filledFrame(frame, 'Hello "you"'), frame, outcome };
  }

  async function failureOf(api: BatchApi, more: Partial<JobView>, cause: 'canceled' | null = null) {
    const { frame, outcome } = await writeLine({ api, job: jobOf(api, more), answer: null, cause });
    return { line: JSON.parse(filledFrame(frame, '')) as Record<string, unknown>, outcome };
  }

  it.each(['chat', 'responses', 'messages'] as const)('contains the answer in one line: %s', async (api) => {
    const { text, frame, outcome } = await resultOf(api);
    expect([outcome, text.includes('\n')]).toEqual(['succeeded', false]);
    expect(frame.filter((part) => typeof part !== 'string').length).toBeGreaterThan(0);
    const line = JSON.parse(text) as Record<string, Record<string, unknown>>;
    expect(line).toMatchObject({ custom_id: 'a' });
    expect(JSON.stringify(line)).toContain('Hello \\"you\\"');
    if (api === 'messages') expect(line.result).toMatchObject({ type: 'succeeded', message: { type: 'message' } });
    else
      expect(line.response).toMatchObject({ status_code: 200, request_id: 'request 1', ignored_parameters: ['seed'] });
  });

  it('contains the citations of the answer', async () => {
    const passage = { type: 'char_location' };
    const blocks = [
      { at: 0, passages: [] },
      { at: 6, passages: [passage] },
    ];
    const { text } = await resultOf('messages', jobDone({ text: null, blocks }));
    const content = [
      { type: 'text', text: 'Hello ' },
      { type: 'text', text: '"you"', citations: [passage] },
    ];
    expect(JSON.parse(text)).toMatchObject({ result: { message: { content } } });
  });

  it('contains the error of a failed job, also of one that was cancelled alone', async () => {
    const failure = { code: 'timeout', message: 'too slow' } as const;
    const failed = await failureOf('chat', { status: 'failed', failure });
    expect(failed.line).toMatchObject({ response: { status_code: 504 }, error: null });
    const alone = await failureOf('messages', { status: 'cancelled' });
    expect(alone.line).toMatchObject({ result: { type: 'errored', error: { error: { type: 'permission_error' } } } });
  });

  it('of a cancelled or expired batch names the cause', async () => {
    expect((await failureOf('chat', { status: 'cancelled' }, 'canceled')).outcome).toBe('canceled');
    const { results } = await endLines({ api: 'chat', ids: ['a', null, 'x'.repeat(513)], cause: 'expired' });
    expect(results.map(({ text }) => JSON.parse(text))).toMatchObject(
      ['a', null, null].map((custom_id) => ({ custom_id, response: null, error: { code: 'batch_expired' } })),
    );
    const ended = await endLines({ api: 'messages', ids: ['b'], cause: 'canceled' });
    expect(ended.results).toEqual([{ text: '{"custom_id":"b","result":{"type":"canceled"}}', outcome: 'canceled' }]);
  });
});

describe('A batch whose API was removed from the service', () => {
  const message = 'this service no longer has the API of the batch';
  const messagesError = { type: 'error', error: { type: 'not_found_error', message }, request_id: expect.any(String) };
  const openAiError = { message, type: 'invalid_request_error', code: 'not_found', param: null };

  it.each([
    ['chat', { response: { status_code: 404, body: { error: openAiError } }, error: null }],
    ['messages', { result: { type: 'errored', error: messagesError } }],
    ['other', { response: { status_code: 404, body: { error: openAiError } }, error: null }],
  ])('ends, because its lines fail with the reason: %s', async (api, line) => {
    const text = openAiLine('/v1/chat/completions', chat);
    const { submitLine, defects } = handlersWith({}, text, {});
    const { refused } = await submitLine({ ...order, api, line: lineOf(text) });
    expect([refused?.outcome, defects]).toEqual(['errored', []]);
    expect(JSON.parse(refused?.text ?? '')).toMatchObject({ custom_id: 'a', ...line });
  });

  it('ends, because the answers of its jobs cannot be written', async () => {
    const line = { customId: 'a', ignored: [], isLegacyCall: false };
    const job = backgroundView({ form: { ...plainForm, route: '/v1/chat/completions', line } });
    const answer = { end: jobDone({ text: null }), hasText: true };
    const { frame, outcome } = await handlersWith({}, '', {}).writeLine({ api: 'chat', job, answer, cause: null });
    expect([outcome, filledFrame(frame, 'Hello').includes(message)]).toEqual(['errored', true]);
  });

  it('can be cancelled', async () => {
    const { results } = await handlersWith({}, '', {}).endLines({ api: 'other', ids: ['a'], cause: 'canceled' });
    expect(JSON.parse(results[0]?.text ?? '')).toMatchObject({ custom_id: 'a', error: { code: 'batch_cancelled' } });
  });
});
