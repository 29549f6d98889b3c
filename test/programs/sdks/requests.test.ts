import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pdfOf } from '../../support/basics/pdf.js';
import { upload } from '../../support/clients/batches.js';
import { installSdks } from '../../support/clients/sdk-client.js';
import { pixel } from '../../support/clients/sdk-lab.js';
import { root } from '../../support/documents/sources.js';
import { type FieldAnswer, outcomes, requestFields } from '../../support/doors/request-fields.js';
import { type Service, startService } from '../../support/service/service.js';

type Fields = Readonly<Record<string, unknown>>;

/** A request of an SDK. */
interface Sdk {
  readonly type: string;
  readonly path: string;
  /** How the fields are sent. */
  readonly as: 'json' | 'query' | 'form';
  /** Fields that every request has. */
  readonly base?: Fields;
  readonly samples?: Fields;
  readonly headers?: Readonly<Record<string, string>>;
  /** Tool of the client, which requests about tools need. */
  readonly tool?: Fields;
}

const golden = join(root, 'test', 'programs', 'sdks', 'golden', 'request-fields.txt');
const headers = { 'anthropic-version': '2023-06-01' };
const user = { role: 'user', content: 'Hello' };
const schema = { type: 'object' };
const model = 'eliza';
const pdf = pdfOf({ text: 'A page of Ada' }).toString('base64');
const ofFiles = { file_data: `data:application/pdf;base64,${pdf}`, filename: 'ada.pdf' };
const chat = {
  path: '/v1/chat/completions',
  base: { model, messages: [user] },
  tool: { type: 'function', function: { name: 'note', parameters: schema } },
};
const samplesOfChat = {
  ...{ model, url: pixel, parameters: schema, schema, name: 'note' },
  '.file': ofFiles,
  '.json_schema': { name: 'note', schema },
};
const samplesOfResponses = {
  ...{ model, image_url: pixel, parameters: schema, schema, name: 'note' },
  role: 'user',
  '<input_image>': { image_url: pixel },
  '<input_file>': ofFiles,
};
const message = {
  path: '/v1/messages',
  headers,
  base: { model, max_tokens: 100, messages: [user] },
  tool: { name: 'note', input_schema: schema },
};
const samplesOfOllama = {
  '.function': { name: 'note' },
  model,
  parameters: schema,
  images: [pixel.slice(pixel.indexOf(',') + 1)],
  role: 'user',
  type: 'function',
  name: 'note',
  format: schema,
};
const image = { type: 'base64', media_type: 'image/png', data: pixel.slice(pixel.indexOf(',') + 1) };
const samplesOfMessages = {
  ...{ model, max_tokens: 100, input_schema: schema, schema, name: 'note' },
  '<image>': { source: image },
  '<document>': { source: { type: 'base64', media_type: 'application/pdf', data: pdf } },
};

/** Requests of the newest SDKs to the paths of this service, in the order of the golden file. */
function requests(file: string, response: string, stored: string): readonly Sdk[] {
  const ofBatch = { endpoint: '/v1/chat/completions', completion_window: '24h', input_file_id: file };
  const request = { custom_id: 'a', params: message.base };
  return [
    {
      ...chat,
      type: 'OpenAI.ChatCompletionCreateParams',
      as: 'json',
      samples: samplesOfChat,
    },
    {
      type: 'OpenAI.Responses.ResponseCreateParams',
      path: '/v1/responses',
      as: 'json',
      base: { model, input: 'Hello' },
      tool: { type: 'function', ...chat.tool.function },
      samples: { ...samplesOfResponses, previous_response_id: stored },
    },
    { type: 'OpenAI.Responses.ResponseRetrieveParams', path: `/v1/responses/${response}`, as: 'query' },
    {
      type: 'InputItemListParams',
      path: `/v1/responses/${stored}/input_items`,
      as: 'query',
      samples: { after: `msg_${stored.slice(5)}_0_0` },
    },
    {
      type: 'OpenAI.FileCreateParams',
      path: '/v1/files',
      as: 'form',
      base: { purpose: 'user_data' },
      samples: { purpose: 'user_data', file: null, seconds: 3600 },
    },
    { type: 'OpenAI.FileListParams', path: '/v1/files', as: 'query', samples: { purpose: 'user_data', after: file } },
    { type: 'OpenAI.BatchCreateParams', path: '/v1/batches', as: 'json', base: ofBatch, samples: { ...ofBatch } },
    { type: 'OpenAI.BatchListParams', path: '/v1/batches', as: 'query' },
    { ...message, type: 'Anthropic.Beta.MessageCreateParams', as: 'json', samples: samplesOfMessages },
    {
      ...message,
      type: 'Anthropic.MessageCountTokensParams',
      path: '/v1/messages/count_tokens',
      as: 'json',
      samples: { ...samplesOfMessages, messages: [user] },
    },
    {
      type: 'Anthropic.Messages.BatchCreateParams',
      path: '/v1/messages/batches',
      as: 'json',
      headers,
      base: { requests: [request] },
      samples: { custom_id: 'a', params: message.base },
    },
    { type: 'Anthropic.Messages.BatchListParams', path: '/v1/messages/batches', as: 'query', headers },
    {
      type: 'Anthropic.FileUploadParams',
      path: '/v1/files',
      as: 'form',
      headers,
      samples: { file: null, expires_in_seconds: 3600 },
    },
    { type: 'Anthropic.Beta.FileListParams', path: '/v1/files', as: 'query', headers, samples: { page: file } },
    { type: 'Anthropic.ModelListParams', path: '/v1/models', as: 'query', headers },
    {
      type: 'Ollama.ChatRequest',
      path: '/api/chat',
      as: 'json',
      base: { model, messages: [user], stream: false },
      samples: samplesOfOllama,
    },
    {
      type: 'Ollama.GenerateRequest',
      path: '/api/generate',
      as: 'json',
      base: { model, prompt: 'Hello', stream: false },
      samples: samplesOfOllama,
    },
    { type: 'Ollama.ShowRequest', path: '/api/show', as: 'json', base: { model }, samples: { model } },
  ];
}

/** Lists of a conversation, which must end with a question. */
const conversations = ['messages', 'input'];
const isAboutTools = /"(tools|tool_choice|function_call|additional_tools)":/;

async function send(service: Service, sdk: Sdk, fields: Fields): Promise<FieldAnswer> {
  const { path, as, base, headers } = sdk;
  const whole: Record<string, unknown> = { ...base, ...fields };
  for (const name of conversations)
    if (Array.isArray(fields[name])) whole[name] = [...(fields[name] as readonly unknown[]), user];
  const { tool } = sdk;
  if (tool !== undefined && isAboutTools.test(JSON.stringify(fields)))
    whole.tools =
      'tools' in fields
        ? [...(fields.tools as readonly unknown[]), JSON.parse(JSON.stringify(tool).replace('note', 'other'))]
        : [tool];
  const answer = await (as === 'json'
    ? service.post(path, whole, { ...headers })
    : sendFlat(service, path, as, whole, headers));
  const listed = answer.headers.get('x-ignored-parameters') ?? '';
  return { status: answer.status, text: answer.text, ignored: listed.split(', ').filter((field) => field !== '') };
}

/** Sends the fields in the query or in a form, nested ones as `outer[inner]`. */
async function sendFlat(service: Service, path: string, as: Sdk['as'], fields: Fields, headers: Sdk['headers'] = {}) {
  const flat = Object.entries(fields).flatMap(([name, value]): [string, string][] => {
    if (typeof value !== 'object' || value === null) return value === null ? [] : [[name, String(value)]];
    const isList = Array.isArray(value);
    return Object.entries(value).map(([inner, each]) => [isList ? `${name}[]` : `${name}[${inner}]`, String(each)]);
  });
  if (as === 'query') return service.get(`${path}?${new URLSearchParams(flat)}`, headers);
  const form = new FormData();
  form.set('file', new Blob(['text']), 'a.txt');
  for (const [name, value] of flat) form.set(name, value);
  const answer = await service.fetch(path, { method: 'POST', body: form, headers });
  return { status: answer.status, text: await answer.text(), headers: answer.headers };
}

let modules: string;
let service: Service;
beforeAll(async () => {
  modules = join((await installSdks()).clients, '..', 'node_modules');
  service = await startService({ env: { MODEL_API_FILES: 'memory', MODEL_API_MAX_FILES: '1000' } });
}, 600_000);
afterAll(() => service?.stop());

describe('Each field that the newest SDKs can send', () => {
  it('is served, refused by name or reported as ignored, as in the golden file', async () => {
    const { body: file } = await upload(service, '{}');
    const { body: response } = await service.post('/v1/responses', {
      model,
      input: 'Hello',
      store: true,
      background: true,
    });
    const { body: stored } = await service.post('/v1/responses', { model, input: 'Hello', store: true });
    const all = requests(String(file.id), String(response.id), String(stored.id));
    const fields = await requestFields(
      all.map(({ type, samples = {} }) => ({ type, samples })),
      modules,
    );
    const found = await Promise.all(
      all.map(async (sdk, at) => {
        const lines = await outcomes(fields[at] ?? [], (each) => send(service, sdk, each));
        return [`${sdk.type}, ${sdk.as} to ${sdk.path.replace(/resp_[^/]+/, '{id}')}`, ...lines].join('\n');
      }),
    );
    const text = `${found.join('\n\n')}\n`;
    if (process.env.UPDATE_GOLDEN !== undefined) await writeFile(golden, text);
    expect(text).toBe(await readFile(golden, 'utf8'));
  }, 120_000);
});
