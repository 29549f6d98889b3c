import { pageText, pdfOf, pdfWith, slowPdf } from '../basics/pdf.js';
import { type Asker, post, type Send, uploaded } from './asker.js';
import { hostileBatches } from './hostile-batches.js';
import { hostileUploads } from './hostile-uploads.js';

/** Requests of one client that could use much memory or time in the service. */

const megabyte = 1024 ** 2;

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
  const id = await uploaded(asker, bytes);
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

/** Returns requests with this body. */
function repeat(asker: Asker, path: string, body: object): Send {
  const text = JSON.stringify(body);
  return async (signal) => (await post(asker, path, text, signal)).status;
}

/** References one stored PDF twenty times, which takes long to inspect. */
async function referToSlowPdf(asker: Asker): Promise<Send> {
  const id = await uploaded(asker, slowPdf());
  const files = Array.from({ length: 20 }, () => ({ file_id: id }));
  return repeat(asker, '/ask', { prompt: 'What?', model: 'echo', files });
}

/** Sends twenty such PDFs, each different from all others. */
function sendSlowPdfs(asker: Asker): Send {
  let count = 0;
  return async (signal) => {
    const files = Array.from({ length: 20 }, () => ({ data: slowPdf(String(count++)).toString('base64') }));
    return (await post(asker, '/ask', { prompt: 'What?', model: 'echo', files }, signal)).status;
  };
}

/** Sends a PDF of one long page. */
function sendLongPage(asker: Asker): Send {
  const page = Buffer.alloc(20 * megabyte, pageText('word '.repeat(12)));
  const file = { name: 'a.pdf', data: pdfWith(page).toString('base64') };
  return repeat(asker, '/ask', { prompt: 'What?', model: 'echo', files: [file] });
}

/** Offers this number of tools, whose schemas have many names. */
function offerTools(asker: Asker, count: number, schema: (names: readonly string[]) => object, names: number): Send {
  const all = Array.from({ length: names }, (_, index) => `n${index}`);
  const offered = Array.from({ length: count }, (_, index) => ({
    type: 'function',
    function: { name: `look${index}`, parameters: { type: 'object', ...schema(all) } },
  }));
  const body = { model: 'eliza', tools: offered, messages: [{ role: 'user', content: 'Hi' }] };
  return repeat(asker, '/v1/chat/completions', body);
}

const valuesOf = (names: readonly string[], value: object) => Object.fromEntries(names.map((name) => [name, value]));

/** Lets the model search for a name of `hostileResults`. */
function search(asker: Asker, query: string): Send {
  const content = `Look it up.\ncall web_search ${JSON.stringify({ query })}`;
  const body = { model: 'demo/eliza', messages: [{ role: 'user', content }], web_search_options: {} };
  return repeat(asker, '/v1/chat/completions', body);
}

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
  'requests with 20 references to a PDF that takes long to inspect': referToSlowPdf,
  'requests with 20 PDFs that take long to inspect': async (asker: Asker) => sendSlowPdfs(asker),
  'requests with a PDF whose page has 20 MB': async (asker: Asker) => sendLongPage(asker),
  'requests with a tool of 5,500 dependencies': async (asker: Asker) =>
    offerTools(asker, 1, (names) => ({ dependencies: valuesOf(names, {}) }), 5500),
  'requests with 10 tools of 1,000 properties': async (asker: Asker) =>
    offerTools(asker, 10, (names) => ({ properties: valuesOf(names, { type: 'null' }) }), 1000),
  'searches whose result has 1 MB of text': async (asker: Asker) => search(asker, 'long'),
  'searches whose result has 4,000 pages': async (asker: Asker) => search(asker, 'numerous'),
  'searches whose result arrives in pieces of one byte': async (asker: Asker) => search(asker, 'pieces'),
  'searches whose result never ends': async (asker: Asker) => search(asker, 'endless'),
  'searches whose result is 1 MB of brackets': async (asker: Asker) => search(asker, 'brackets'),
  ...hostileUploads,
  ...hostileBatches,
} as const satisfies Readonly<Record<string, (asker: Asker) => Promise<Send>>>;

export type ExpandingKind = keyof typeof expandingRequests;
