import { pdfOf } from '../basics/pdf.js';

/** Small requests of one client that could use much memory in the service. */

const megabyte = 1024 ** 2;

/** Client of a running service. */
export interface Asker {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Sends one request. Resolves with the status when the whole answer has arrived. */
type Send = (signal?: AbortSignal) => Promise<number>;

async function post({ url, headers }: Asker, path: string, body: object | string) {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const sent = { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: text };
  const answer = await fetch(url + path, sent);
  return { status: answer.status, body: JSON.parse(await answer.text()) as { readonly id: string } };
}

async function stored(asker: Asker, model: 'echo' | 'eliza', bytes: number, previous: string | null): Promise<string> {
  const body = { model, input: 'x'.repeat(bytes), previous_response_id: previous };
  const answer = await post(asker, '/v1/responses', body);
  if (answer.status !== 200) throw new Error(`a response was not stored: ${answer.status}`);
  return answer.body.id;
}

/** Reads one stored response of almost 8 MB. */
async function readStored(asker: Asker): Promise<Send> {
  const id = await stored(asker, 'echo', 7.9 * megabyte, null);
  return async (signal) => {
    const more = { headers: asker.headers, ...(signal && { signal }) };
    const answer = await fetch(`${asker.url}/v1/responses/${id}`, more);
    const { byteLength } = await answer.arrayBuffer();
    return byteLength > 7.9 * megabyte ? answer.status : 0;
  };
}

/** Lists the input of a stored response, which has one message of almost 2 MB. */
async function listInput(asker: Asker): Promise<Send> {
  const id = await stored(asker, 'eliza', 1.9 * megabyte, null);
  return async (signal) => {
    const more = { headers: asker.headers, ...(signal && { signal }) };
    const answer = await fetch(`${asker.url}/v1/responses/${id}/input_items`, more);
    const { byteLength } = await answer.arrayBuffer();
    return byteLength > 1.9 * megabyte ? answer.status : 0;
  };
}

/** Continues a text of up to six messages of 10 MB, or of fewer if the service refuses more. */
async function continueLarge(asker: Asker): Promise<Send> {
  let previous = await stored(asker, 'eliza', 10 * megabyte, null);
  for (let count = 1; count < 6; count++)
    previous = await stored(asker, 'eliza', 10 * megabyte, previous).catch(() => previous);
  return continuing(asker, previous);
}

/** Continues a text of the maximum size of a conversation. */
async function continueLegal(asker: Asker): Promise<Send> {
  return continuing(asker, await stored(asker, 'eliza', 7.9 * megabyte, null));
}

function continuing(asker: Asker, previous: string): Send {
  const body = { model: 'eliza', input: 'hello', previous_response_id: previous, store: false };
  return async () => (await post(asker, '/v1/responses', body)).status;
}

/** References one stored message of 400 KB 10,000 times. */
async function referToStored(asker: Asker): Promise<Send> {
  const id = (await stored(asker, 'echo', 400_000, null)).replace('resp_', 'msg_');
  const references = Array.from({ length: 10_000 }, () => ({ type: 'item_reference', id }));
  const body = JSON.stringify({ model: 'eliza', input: [...references, { role: 'user', content: 'hello' }] });
  return async () => (await post(asker, '/v1/responses', body)).status;
}

/** Refers to one file of this size in each of these parts. */
async function referToFile(asker: Asker, bytes: Buffer, count: number, type: 'input_file' | 'input_image') {
  const form = new FormData();
  form.set('purpose', 'user_data');
  form.set('file', new Blob([bytes]), 'a');
  const uploaded = await fetch(`${asker.url}/v1/files`, { method: 'POST', headers: asker.headers, body: form });
  const { id } = (await uploaded.json()) as { readonly id: string };
  const parts = Array.from({ length: count }, () => ({ type, file_id: id }));
  const content = [...parts, { type: 'input_text', text: 'hello' }];
  const body = JSON.stringify({ model: 'eliza', input: [{ role: 'user', content }], store: false });
  return async () => (await post(asker, '/v1/responses', body)).status;
}

const image = () => Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), Buffer.alloc(megabyte)]);
const pdf = () => pdfOf({ fillerBytes: 11 * megabyte });

const tools = [{ type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } } }];

/** Sends a history with an earlier call that has these arguments. */
function callWith(asker: Asker, json: string): Send {
  const call = { id: 'a', type: 'function', function: { name: 'look', arguments: json } };
  const messages = [
    { role: 'user', content: 'Look' },
    { role: 'assistant', content: null, tool_calls: [call] },
    { role: 'tool', tool_call_id: 'a', content: 'Nothing' },
  ];
  const body = JSON.stringify({ model: 'eliza', tools, messages });
  return async () => (await post(asker, '/v1/chat/completions', body)).status;
}

const wideJson = () => `{"a":[${'[],'.repeat(5.1 * megabyte)}[]]}`;
const deepJson = () => `{"a":${'['.repeat(5000)}${']'.repeat(5000)}}`;

/** Prepares the data for each kind of request, and returns the function that sends one. */
export const expandingRequests = {
  'reads of a stored response of 8 MB': readStored,
  'lists of an input of 2 MB': listInput,
  'requests that continue a text of 60 MB': continueLarge,
  'requests that continue a text of 8 MB': continueLegal,
  'requests with 10,000 references to a stored item': referToStored,
  'requests with 10,000 references to an image of 1 MB': (asker: Asker) =>
    referToFile(asker, image(), 10_000, 'input_image'),
  'requests that refer to a PDF of 11 MB': (asker: Asker) => referToFile(asker, pdf(), 1, 'input_file'),
  'requests with arguments of five million lists': async (asker: Asker) => callWith(asker, wideJson()),
  'requests with arguments 5,000 levels deep': async (asker: Asker) => callWith(asker, deepJson()),
} as const satisfies Readonly<Record<string, (asker: Asker) => Promise<Send>>>;

export type ExpandingKind = keyof typeof expandingRequests;
