import { until } from '../../support/basics/until.js';
import { promptLine, untilEnded, upload } from '../../support/clients/batches.js';
import { eventsIn } from '../../support/doors/door-answers.js';
import type { TypedAnswer } from '../../support/doors/typed-answers.js';
import type { Service } from '../../support/service/service.js';

/** Answers about what the service stores for its clients, with the types that the SDKs have for them. */

const anthropic = { 'anthropic-version': '2023-06-01' };
const prompts = [{ role: 'user', content: 'Hello' }];

/** Records answers of one service. */
class Recorder {
  readonly answers: TypedAnswer[] = [];
  readonly #service: Service;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(service: Service, headers: Readonly<Record<string, string>> = {}) {
    this.#service = service;
    this.#headers = headers;
  }

  add<T>(name: string, type: string, value: T): T {
    this.answers.push({ name, type, value });
    return value;
  }

  async get<T = Id>(type: string, path: string): Promise<T> {
    return this.add(path, type, (await this.#service.get(path, this.#headers)).body) as T;
  }

  async post<T = Id>(type: string, path: string, body: unknown = ''): Promise<T> {
    return this.add(path, type, (await this.#service.post(path, body, this.#headers)).body) as T;
  }

  async delete(type: string, path: string): Promise<void> {
    this.add(path, type, (await this.#service.delete(path, this.#headers)).body);
  }

  /** Records the lines of JSON, or the events, at a path. Returns them. */
  async lines(type: string, path: string): Promise<readonly object[]> {
    const { text } = await this.#service.get(path, this.#headers);
    return eventsIn(text).map((line) => this.add(path, type, line));
  }
}

interface Id {
  readonly id: string;
}

const file = 'OpenAI.FileObject';
const batch = 'OpenAI.Batch';
const lineOf = (body: string) =>
  `OpenAiLine<200, ${body}> | OpenAiLine<400, { error: OpenAI.ErrorObject }> | OpenAiUnsent`;

/** The files and batches of OpenAI's API. */
export async function openAiBatches(service: Service): Promise<readonly TypedAnswer[]> {
  const recorder = new Recorder(service);
  const make = async (lines: readonly string[], endpoint = '/v1/chat/completions') => {
    const { id } = recorder.add('an upload', file, (await upload(service, lines.join('\n'))).body);
    const order = { input_file_id: id, endpoint, completion_window: '24h', metadata: { of: 'a test' } };
    return recorder.post(batch, '/v1/batches', order);
  };
  const record = async ({ id }: Id, body: string) => {
    const ended = await untilEnded(service, id);
    recorder.add('an ended batch', batch, ended);
    for (const each of [ended.output_file_id, ended.error_file_id])
      if (each !== null) await recorder.lines(lineOf(body), `/v1/files/${each}/content`);
    return ended;
  };
  const refused = JSON.stringify({ custom_id: 'b', method: 'POST', url: '/v1/chat/completions', body: {} });
  const chats = await make([promptLine('a', 'Hello'), refused, 'no JSON']);
  await record(chats, 'OpenAI.ChatCompletion');
  const response = { custom_id: 'a', method: 'POST', url: '/v1/responses', body: { model: 'eliza', input: 'Hi' } };
  await record(await make([JSON.stringify(response)], '/v1/responses'), 'OpenAI.Responses.Response');
  const many = Array.from({ length: 200 }, (_, index) => promptLine(String(index), 'Hello'));
  const { id } = await make(many);
  await recorder.post(batch, `/v1/batches/${id}/cancel`);
  await record({ id }, 'OpenAI.ChatCompletion');
  await recorder.get(`OpenAiPage<${batch}>`, '/v1/batches?limit=2');
  const { data } = await recorder.get<{ readonly data: readonly Id[] }>(`OpenAiPage<${file}>`, '/v1/files?limit=2');
  const [newest] = data;
  await recorder.get(file, `/v1/files/${newest?.id}`);
  await recorder.delete('OpenAI.FileDeleted', `/v1/files/${newest?.id}`);
  await recorder.get('{ error: OpenAI.ErrorObject }', `/v1/files/${newest?.id}`);
  return recorder.answers;
}

const messageBatch = 'Anthropic.Messages.MessageBatch';

/** The files and batches of Anthropic's API. */
export async function anthropicBatches(service: Service): Promise<readonly TypedAnswer[]> {
  const recorder = new Recorder(service, anthropic);
  const uploaded = await upload(service, 'text', {}, anthropic);
  const { id: fileId } = recorder.add('an upload', 'Anthropic.FileMetadata', uploaded.body);
  await recorder.get('Anthropic.FileMetadata', `/v1/files/${fileId}`);
  await recorder.get('FilePage', '/v1/files?limit=1');
  await recorder.delete('Anthropic.DeletedFile', `/v1/files/${fileId}`);
  const path = '/v1/messages/batches';
  const params = { model: 'eliza', max_tokens: 100, messages: prompts };
  const make = (requests: readonly object[]) => recorder.post(messageBatch, path, { requests });
  const requests = Array.from({ length: 200 }, (_, index) => ({ custom_id: `line-${index}`, params }));
  const { id: cancelled } = await make(requests);
  await recorder.post(messageBatch, `${path}/${cancelled}/cancel`);
  const whole = await make([...requests.slice(0, 1), { custom_id: 'bad', params: { ...params, messages: [] } }]);
  for (const id of [cancelled, whole.id]) {
    const ended = async () =>
      (await service.get(`${path}/${id}`, anthropic)).body.processing_status === 'ended' || null;
    await until(ended, 'the end of the batch');
    await recorder.get(messageBatch, `${path}/${id}`);
    await recorder.lines('Anthropic.Messages.MessageBatchIndividualResponse', `${path}/${id}/results`);
  }
  await recorder.get(`AnthropicPage<${messageBatch}>`, `${path}?limit=1`);
  await recorder.delete('Anthropic.Messages.DeletedMessageBatch', `${path}/${whole.id}`);
  await recorder.get('Anthropic.ErrorResponse', `${path}/${whole.id}`);
  return recorder.answers;
}

const response = 'OpenAI.Responses.Response';
const event = 'OpenAI.Responses.ResponseStreamEvent';

/** Responses that the service runs in the background, their streams, and the input of a stored response. */
export async function backgroundResponses(service: Service): Promise<readonly TypedAnswer[]> {
  const recorder = new Recorder(service);
  const path = '/v1/responses';
  const order = { model: 'eliza', background: true, input: 'Hello\nthink of Ada', reasoning: { summary: 'auto' } };
  const { id } = await recorder.post(response, path, order);
  const stream = await recorder.lines(event, `${path}/${id}?stream=true`);
  const after = await recorder.lines(event, `${path}/${id}?stream=true&starting_after=2`);
  recorder.add('the number of later events', `${stream.length - 3}`, after.length);
  await recorder.get(response, `${path}/${id}`);
  const { text } = await service.post(path, { ...order, stream: true });
  for (const each of eventsIn(text)) recorder.add('a background stream', event, each);
  const { id: cancelled } = await recorder.post(response, path, { ...order, input: 'Hello' });
  await recorder.post(response, `${path}/${cancelled}/cancel`);
  await recorder.lines(event, `${path}/${cancelled}?stream=true`);
  await recorder.delete("{ id: string; object: 'response'; deleted: true }", `${path}/${id}`);
  const input = [
    { role: 'user', content: 'Hello' },
    { type: 'function_call', call_id: 'call_1', name: 'note', arguments: '{}' },
    { type: 'function_call_output', call_id: 'call_1', output: 'noted' },
    { role: 'user', content: [{ type: 'input_text', text: 'And now?' }] },
  ];
  const stored = await recorder.post(response, path, { model: 'eliza', store: true, input });
  await recorder.get(response, `${path}/${stored.id}`);
  await recorder.get(
    "import('openai/resources/responses/input-items').ResponseItemList",
    `${path}/${stored.id}/input_items`,
  );
  return recorder.answers;
}

/** The models in all forms, counted tokens, and what a client of Ollama's API reads beside chats. */
export async function modelsAndMore(service: Service): Promise<readonly TypedAnswer[]> {
  const openAi = new Recorder(service);
  await openAi.get("PageResponse<OpenAI.Model> & { object: 'list' }", '/v1/models');
  await openAi.get('OpenAI.Model', '/v1/models/eliza');
  const claude = new Recorder(service, anthropic);
  await claude.get('AnthropicPage<Anthropic.ModelInfo>', '/v1/models');
  await claude.get('Anthropic.ModelInfo', '/v1/models/eliza');
  await claude.post('Anthropic.MessageTokensCount', '/v1/messages/count_tokens', { model: 'eliza', messages: prompts });
  await claude.post('Anthropic.Message', '/v1/messages', { model: 'eliza', max_tokens: 0, messages: prompts });
  const ollama = new Recorder(service);
  await ollama.get('{ models: Dated<Ollama.ModelResponse>[] }', '/api/tags');
  await ollama.get('{ models: Dated<Ollama.ModelResponse>[] }', '/api/ps');
  await ollama.get('{ version: string }', '/api/version');
  await ollama.post('OllamaShow', '/api/show', { model: 'eliza' });
  const generate = { model: 'eliza', prompt: 'Hello', stream: false };
  await ollama.post('Dated<Ollama.GenerateResponse>', '/api/generate', generate);
  const { text } = await service.post('/api/generate', { ...generate, stream: true });
  for (const line of eventsIn(text)) ollama.add('/api/generate streamed', 'Dated<Ollama.GenerateResponse>', line);
  return [...openAi.answers, ...claude.answers, ...ollama.answers];
}
