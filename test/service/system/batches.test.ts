import { until } from '../../support/basics/until.js';
import { type BatchBody, promptLine, upload } from '../../support/clients/batches.js';
import { headersOf, type NamedKeys, writeNamedKeys } from '../../support/doors/named-keys.js';
import { type Service, startService } from '../../support/service/service.js';

let keys: NamedKeys;
let service: Service;

const alice = headersOf('alice');
const anthropic = { ...alice, 'anthropic-version': '2023-06-01' };

beforeAll(async () => {
  keys = await writeNamedKeys();
  service = await startService({ env: { ...keys.env, MODEL_API_FILES: 'memory', MODEL_API_MAX_BATCH_LINES: '40' } });
});

afterAll(async () => {
  await service?.stop();
  await keys?.[Symbol.asyncDispose]();
});

async function endOf(id: unknown): Promise<BatchBody> {
  return until(async () => {
    const { body } = await service.get(`/v1/batches/${id}`, alice);
    return ['completed', 'cancelled'].includes(String(body.status)) ? (body as unknown as BatchBody) : null;
  }, 'the end of the batch');
}

async function linesIn(file: string | null) {
  const text = file === null ? '' : (await service.get(`/v1/files/${file}/content`, alice)).text;
  return text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Record<string, unknown>]));
}

function create(file: unknown, more: object = {}) {
  const order = { input_file_id: file, endpoint: '/v1/chat/completions', completion_window: '24h', ...more };
  return service.post('/v1/batches', order, alice);
}

describe('A file', () => {
  it('is uploaded, listed, downloaded and deleted by its client alone', async () => {
    const text = 'bytes of any kind: \u0000ü';
    const { status, body } = await upload(service, text, { purpose: 'user_data' }, alice);
    expect([status, body]).toMatchObject([200, { object: 'file', filename: 'prompts.jsonl', purpose: 'user_data' }]);
    const path = `/v1/files/${body.id}`;
    const content = await service.get(`${path}/content`, alice);
    expect([content.text, content.headers.get('content-type')]).toEqual([text, 'application/octet-stream']);
    for (const [method, at] of [
      ['GET', path],
      ['GET', `${path}/content`],
      ['DELETE', path],
    ] as const)
      expect((await fetch(service.url + at, { method, headers: headersOf('bob') })).status).toBe(404);
    expect((await service.get('/v1/files', headersOf('bob'))).body).toMatchObject({ data: [], has_more: false });
    const listed = await service.get('/v1/files?purpose=user_data&limit=1', alice);
    expect(listed.body).toMatchObject({ object: 'list', data: [{ id: body.id }], first_id: body.id });
    expect((await service.get(path, anthropic)).body).toMatchObject({ type: 'file', size_bytes: 22 });
    expect((await service.delete(path, alice)).body).toMatchObject({ id: body.id, deleted: true });
    expect((await service.get(path, alice)).status).toBe(404);
  });
});

describe('A batch', () => {
  it('answers each line in the form of its endpoint, and names the errors in a file of their own', async () => {
    const lines = [promptLine('good', 'Hello'), 'no JSON', promptLine('good too', 'Hello')].join('\n');
    const file = await upload(service, lines, { purpose: 'batch' }, alice);
    const { body } = await create(file.body.id, { metadata: { of: 'a test' } });
    expect(body).toMatchObject({ object: 'batch', status: 'validating', request_counts: { total: 3 } });
    expect((await service.get(`/v1/batches/${body.id}`, headersOf('bob'))).status).toBe(404);
    const batch = await endOf(body.id);
    expect(batch).toMatchObject({ status: 'completed', request_counts: { total: 3, completed: 2, failed: 1 } });
    const answers = await linesIn(batch.output_file_id);
    expect(answers.map((line) => line.custom_id).toSorted()).toEqual(['good', 'good too']);
    expect(answers[0]).toMatchObject({ response: { status_code: 200, body: { object: 'chat.completion' } } });
    expect(await linesIn(batch.error_file_id)).toMatchObject([{ custom_id: null, response: { status_code: 400 } }]);
    const { body: listed } = await service.get('/v1/batches?limit=1', alice);
    expect(listed).toMatchObject({ data: [{ id: body.id, metadata: { of: 'a test' } }], has_more: false });
  });

  it('is cancelled, and its client sees why each of its lines has no answer', async () => {
    const lines = Array.from({ length: 30 }, (_, index) => promptLine(`line ${index}`, 'Hello'));
    const file = await upload(service, lines.join('\n'), { purpose: 'batch' }, alice);
    const { body } = await create(file.body.id);
    expect((await create(file.body.id)).body).toMatchObject({ error: { param: 'input_file_id' } }); // too many lines
    expect((await service.delete(`/v1/files/${file.body.id}`, alice)).status).toBe(400);
    const { body: cancelling } = await service.post(`/v1/batches/${body.id}/cancel`, '', alice);
    expect(['cancelling', 'cancelled']).toContain(cancelling.status);
    const batch = await endOf(body.id);
    const [answers, others] = [await linesIn(batch.output_file_id), await linesIn(batch.error_file_id)];
    expect([batch.status, answers.length + others.length]).toEqual(['cancelled', 30]);
    expect(others).toContainEqual(
      expect.objectContaining({ error: expect.objectContaining({ code: 'batch_cancelled' }) }),
    );
  });

  it('is refused if two of its lines have the same id', async () => {
    const lines = [promptLine('twice', 'Hello'), promptLine('twice', 'Hello')].join('\n');
    const file = await upload(service, lines, { purpose: 'batch' }, alice);
    const { status, body } = await create(file.body.id);
    expect([status, body.error]).toMatchObject([
      400,
      { param: 'input_file_id', message: expect.stringContaining('line 2') },
    ]);
  });

  it.each([
    ['a file that does not exist', { input_file_id: 'file-x' }, 404, null],
    ['another endpoint', { endpoint: '/v1/embeddings' }, 400, 'endpoint'],
    ['another window', { completion_window: '1h' }, 400, 'completion_window'],
    ['an unknown field', { priority: 1 }, 400, 'priority'],
  ])('is refused: %s', async (_, more, status, param) => {
    const { status: found, body } = await create('file-y', more);
    expect([found, (body.error as Record<string, unknown>).param]).toEqual([status, param]);
  });

  it('of messages has its results in one place, and is deleted with them', async () => {
    const params = { model: 'default', max_tokens: 9, messages: [{ role: 'user', content: 'Hello' }] };
    const requests = [
      { custom_id: 'good', params },
      { custom_id: 'bad', params: {} },
    ];
    const twice = await service.post('/v1/messages/batches', { requests: [requests[0], requests[0]] }, anthropic);
    expect(twice.body).toMatchObject({ type: 'error', error: { type: 'invalid_request_error' } });
    const { body: made } = await service.post('/v1/messages/batches', { requests }, anthropic);
    const path = `/v1/messages/batches/${made.id}`;
    const ended = await until(async () => {
      const { body } = await service.get(path, anthropic);
      return body.processing_status === 'ended' ? body : null;
    }, 'the end of the batch');
    expect(ended).toMatchObject({
      request_counts: { processing: 0, succeeded: 1, errored: 1, canceled: 0, expired: 0 },
    });
    expect(ended.results_url).toBe(`${service.url}${path}/results`);
    const { text } = await service.get(`${path}/results`, anthropic);
    const results = text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(results.toSorted((a, b) => String(a.custom_id).localeCompare(String(b.custom_id)))).toMatchObject([
      { custom_id: 'bad', result: { type: 'errored', error: { type: 'error' } } },
      { custom_id: 'good', result: { type: 'succeeded', message: { role: 'assistant' } } },
    ]);
    expect((await service.get('/v1/messages/batches', anthropic)).body).toMatchObject({ data: [{ id: made.id }] });
    expect((await service.get(`/v1/batches/${made.id}`, alice)).status).toBe(400);
    expect((await service.delete(path, anthropic)).body).toEqual({ id: made.id, type: 'message_batch_deleted' });
    expect((await service.get(path, anthropic)).status).toBe(404);
  });
});
