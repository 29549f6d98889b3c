import { RelayError } from '../../../../src/shared/errors.js';
import type { BatchApi } from '../../../../src/shared/files.js';
import { lineHandlers } from '../../../../src/worker/batches/lines.js';
import { FileReferences } from '../../../../src/worker/jobs/file-references.js';
import { FakePrimary } from '../../../support/jobs/fake-primary.js';
import { documentInspector } from '../../../support/jobs/inspected-documents.js';
import { jobDone } from '../../../support/jobs/job-records.js';

const chat = { model: 'default', messages: [{ role: 'user', content: 'Hi' }] };
const message = { ...chat, max_tokens: 9 };

function openAiLine(url: string, body: object, id: unknown = 'a'): string {
  return JSON.stringify({ custom_id: id, method: 'POST', url, body });
}

function handlersWith(answers: Readonly<Record<string, unknown>> = {}) {
  const primary = new FakePrimary({ accept: { id: 'j1', createdAt: 0, isDurable: true }, ...answers });
  const defects: unknown[] = [];
  return {
    primary,
    defects,
    ...lineHandlers(() => ({
      primary: primary.asPrimary,
      files: new FileReferences(primary.asPrimary, () => 1000),
      documents: documentInspector(),
      onDefect: (error) => defects.push(error),
    })),
  };
}

const caller = { groups: ['biology'], refusesFallback: true };
const order = { client: 'key ada', caller, jobId: 'j1', fault: null } as const;

async function refusedBy(api: BatchApi, text: string): Promise<Record<string, unknown>> {
  const { submitLine, defects } = handlersWith();
  const { refused } = await submitLine({ ...order, api, text });
  expect([refused?.outcome, defects]).toEqual(['errored', []]);
  return JSON.parse(refused?.text ?? 'null') as Record<string, unknown>;
}

describe('A line of a batch', () => {
  it.each([
    ['chat', '/v1/chat/completions', openAiLine('/v1/chat/completions', chat)],
    ['responses', '/v1/responses', openAiLine('/v1/responses', { model: 'default', input: 'Hi' })],
    ['messages', '/v1/messages', JSON.stringify({ custom_id: 'a', params: message })],
  ] as const)('becomes a background job with the given id: %s', async (api, route, text) => {
    const { submitLine, primary } = handlersWith();
    expect(await submitLine({ ...order, api, text })).toEqual({ refused: null });
    const [call] = primary.calls;
    expect(call).toMatchObject({
      name: 'accept',
      request: {
        id: 'j1',
        job: { text: 'Hi', client: 'key ada', groups: ['biology'], fallbacks: [] },
        form: { route, line: { customId: 'a' } },
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
    const line = await refusedBy(api, text);
    expect(line.custom_id).toBe(id);
    expect(JSON.stringify(line)).toContain(words);
    const form = api === 'messages' ? { result: { type: 'errored' } } : { response: { status_code: 400 }, error: null };
    expect(line).toMatchObject(form);
  });

  it('gets the bytes of the files to which it refers', async () => {
    const view = { id: 'file-1', purpose: 'user_data', name: 'a.txt', mediaType: 'text/plain', bytes: 5 };
    const filePiece = ({ from }: { readonly from: number }) => ({ data: from === 0 ? 'Ynl0ZXM=' : '' });
    const { submitLine, primary } = handlersWith({ file: view, filePiece });
    const content = [{ type: 'document', source: { type: 'file', file_id: 'file-1' } }];
    const params = { ...message, messages: [{ role: 'user', content }] };
    const text = JSON.stringify({ custom_id: 'a', params });
    expect(await submitLine({ ...order, api: 'messages', text })).toEqual({ refused: null });
    const job = { images: [{ data: 'Ynl0ZXM=', name: 'a.txt' }] };
    expect(primary.calls.at(-1)).toMatchObject({ name: 'accept', request: { job } });
  });

  it('that is too long gets an error that names the limit', async () => {
    const { submitLine } = handlersWith();
    const { refused } = await submitLine({ ...order, api: 'chat', text: null, fault: 'too_long' });
    expect(refused?.text).toContain('MODEL_API_BODY_LIMIT');
  });

  it('is sent again if its job cannot be accepted now, and fails if its job never can', async () => {
    const text = openAiLine(openAi, chat);
    for (const code of ['concurrency_limited', 'shutting_down', 'store_unavailable', 'rate_limited'] as const) {
      const { submitLine } = handlersWith({ accept: new RelayError(code, 'not now') });
      await expect(submitLine({ ...order, api: 'chat', text })).rejects.toMatchObject({ code });
    }
    const { submitLine } = handlersWith({ accept: new RelayError('validation_error', 'no such model') });
    expect((await submitLine({ ...order, api: 'chat', text })).refused?.text).toContain('no such model');
  });

  it('reports a defect, and still has a result', async () => {
    const { submitLine, defects } = handlersWith({ accept: new TypeError('a defect') });
    const { refused } = await submitLine({ ...order, api: 'chat', text: openAiLine(openAi, chat) });
    expect([defects.length, refused?.text.includes('internal')]).toEqual([1, true]);
  });
});

describe('The result of a line', () => {
  const routes = { chat: openAi(), responses: '/v1/responses', messages: '/v1/messages' } as const;

  function openAi() {
    return '/v1/chat/completions' as const;
  }

  function endedBy(api: BatchApi, status: string, failure: object | null = null, end = jobDone({ text: null })) {
    const line = { customId: 'a', ignored: ['seed'], isLegacyCall: false };
    const form = { route: routes[api], model: 'default', isStructured: false, line };
    const job = { id: 'j1', requestId: 'r1', status, form, failure, createdAt: 1000, startedAt: 1000, endedAt: 2000 };
    const jobAnswer = ({ from }: { readonly from: number }) => ({
      text: 'Hello "you"'.slice(from),
      end,
    });
    return handlersWith({ job, jobAnswer });
  }

  it.each(['chat', 'responses', 'messages'] as const)('contains the answer in one line: %s', async (api) => {
    const { finishLine } = endedBy(api, 'succeeded');
    const { text, outcome } = await finishLine({ api, client: 'key ada', jobId: 'j1', cause: null });
    expect([outcome, text.includes('\n')]).toEqual(['succeeded', false]);
    const line = JSON.parse(text) as Record<string, Record<string, unknown>>;
    expect(line).toMatchObject({ custom_id: 'a' });
    expect(JSON.stringify(line)).toContain('Hello \\"you\\"');
    if (api === 'messages') expect(line.result).toMatchObject({ type: 'succeeded', message: { type: 'message' } });
    else expect(line.response).toMatchObject({ status_code: 200, request_id: 'r1', ignored_parameters: ['seed'] });
  });

  it('contains the citations of the answer', async () => {
    const passage = { type: 'char_location' };
    const blocks = [
      { at: 0, passages: [] },
      { at: 6, passages: [passage] },
    ];
    const { finishLine } = endedBy('messages', 'succeeded', null, jobDone({ text: null, blocks }));
    const { text } = await finishLine({ ...order, api: 'messages', cause: null });
    const content = [
      { type: 'text', text: 'Hello ' },
      { type: 'text', text: '"you"', citations: [passage] },
    ];
    expect(JSON.parse(text)).toMatchObject({ result: { message: { content } } });
  });

  it('contains the error of a failed job, also of one that was cancelled alone', async () => {
    const failure = { code: 'timeout', message: 'too slow' } as const;
    const failed = await endedBy('chat', 'failed', failure).finishLine({ ...order, api: 'chat', cause: null });
    expect(JSON.parse(failed.text)).toMatchObject({ response: { status_code: 504 }, error: null });
    const alone = await endedBy('messages', 'cancelled').finishLine({ ...order, api: 'messages', cause: null });
    expect(JSON.parse(alone.text)).toMatchObject({
      result: { type: 'errored', error: { error: { type: 'permission_error' } } },
    });
  });

  it('of a cancelled or expired batch names the cause', async () => {
    const { finishLine, endLines } = endedBy('chat', 'cancelled');
    expect((await finishLine({ ...order, api: 'chat', cause: 'canceled' })).outcome).toBe('canceled');
    const texts = [openAiLine(openAi(), chat), 'no JSON', null];
    const { results } = await endLines({ api: 'chat', texts, cause: 'expired' });
    expect(results.map(({ text }) => JSON.parse(text))).toMatchObject(
      ['a', null, null].map((custom_id) => ({ custom_id, response: null, error: { code: 'batch_expired' } })),
    );
    const ended = await endLines({ api: 'messages', texts: ['{"custom_id":"b"}'], cause: 'canceled' });
    expect(ended.results).toEqual([{ text: '{"custom_id":"b","result":{"type":"canceled"}}', outcome: 'canceled' }]);
  });
});
