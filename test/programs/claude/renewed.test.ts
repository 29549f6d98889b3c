import { startWithClaude } from '../../support/agents/claude-service.js';
import {
  type MessagesApi,
  type MessagesRequest,
  refuses,
  says,
  saysAndGives,
  saysSlowly,
  startMessagesApi,
} from '../../support/agents/messages-api-stub.js';
import { until } from '../../support/basics/until.js';
import { pngBytes } from '../../support/clients/ask-page.js';
import { Exposition } from '../../support/documents/exposition.js';
import { headersOf, type KeyHolder, type NamedKeys, writeNamedKeys } from '../../support/doors/named-keys.js';
import type { Service } from '../../support/service/service.js';

/** Number of questions. RENEWED_QUESTIONS=2000 asks more. */
const questions = Number(process.env.RENEWED_QUESTIONS ?? 60);
const holders: readonly KeyHolder[] = ['operator', 'alice', 'bob'];
const canaryForm = /canary-\d+/g;
const schema = { type: 'object', properties: { a: { type: 'number' } }, required: ['a'], additionalProperties: false };
const attached = (type: string, bytes: Buffer) => ({ media_type: type, data: bytes.toString('base64') });

/** Differences of a question from a plain one. */
const kinds: Readonly<Record<string, object>> = {
  plain: {},
  model: { model: 'haiku' },
  effort: { model: 'sonnet', effort: 'low' },
  system: { system: 'Be brief.' },
  schema: { schema },
  image: { images: [attached('image/png', pngBytes)] },
  document: { files: [{ ...attached('text/plain', Buffer.from('A document.')), name: 'a.txt' }] },
  refused: {},
  left: {},
};
const names = Object.keys(kinds);

let api: MessagesApi;
let keys: NamedKeys;

beforeAll(async () => {
  api = await startMessagesApi();
  api.behave = (request) => {
    const text = JSON.stringify(request.body.messages);
    if (text.includes('refused')) return refuses(400, 'invalid_request_error', 'This request is refused.');
    if (text.includes('left')) return saysSlowly(100, ...Array.from({ length: 50 }, (_, index) => `${index} `));
    return request.body.tools?.length ? saysAndGives('', { a: 1 }) : says('Hello');
  };
  keys = await writeNamedKeys();
});
afterAll(async () => {
  await api.close();
  await keys[Symbol.asyncDispose]();
});

function startService(reuse: 'on' | 'off'): Promise<Service> {
  const env = { MODEL_API_LIVE_SESSIONS: '8', MODEL_API_MAX_CONCURRENT: '2', MODEL_API_STANDBY: '1' };
  return startWithClaude(api, { env: { ...keys.env, ...env, MODEL_API_REUSE: reuse } });
}

async function ask(service: Service, index: number, kind: string): Promise<void> {
  const body = { prompt: `canary-${index} ${kind}`, ...kinds[kind] };
  const headers = headersOf(holders[index % holders.length] ?? 'bob');
  if (kind !== 'left') {
    const { status, text } = await service.post('/ask', body, headers);
    if ((status === 200) !== (kind !== 'refused')) throw new Error(`${kind}: ${status} ${text}`);
    return;
  }
  const leaver = new AbortController();
  const json = { ...headers, 'content-type': 'application/json' };
  const init = {
    method: 'POST',
    headers: json,
    body: JSON.stringify({ ...body, stream: true }),
    signal: leaver.signal,
  };
  const response = await fetch(`${service.url}/ask`, init);
  for await (const piece of response.body ?? []) if (Buffer.from(piece).includes('"1 ')) break;
  leaver.abort();
}

/** The body without the ids of the session and the canary. The CLI adds a digest of the prompt to its version. */
function shapeOf({ body }: MessagesRequest): string {
  const text = JSON.stringify({ ...body, metadata: null }).replaceAll(canaryForm, 'canary');
  return text.replace(/(cc_version=\d+\.\d+\.\d+)\.\w+/, '$1');
}

function canariesIn({ body }: MessagesRequest): readonly string[] {
  return [...new Set(JSON.stringify(body).match(canaryForm))];
}

function sessionOf({ body }: MessagesRequest): string {
  const { metadata } = body as { readonly metadata?: { readonly user_id?: string } };
  return String(JSON.parse(metadata?.user_id ?? '{}').session_id);
}

it(`${questions} questions of three clients reach the API like those of fresh processes`, async () => {
  const shapes = new Map<string, readonly string[]>();
  {
    await using fresh = await startService('off');
    for (const kind of names) {
      const before = api.requests.length;
      await ask(fresh, 0, kind);
      shapes.set(kind, api.requests.slice(before).map(shapeOf)); // the CLI repeats a refused request in another form
    }
  }
  const before = api.requests.length;
  await using service = await startService('on');
  const left = Array.from({ length: questions }, (_, index) => index);
  const run = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift())
      await ask(service, next, names[(next * 7 + (next >> 3)) % names.length] ?? 'plain');
  };
  await Promise.all([run(), run()]);
  const requests = api.requests.slice(before);
  const clientOf = new Map<string, string>();
  for (const request of requests) {
    const [canary = '', ...others] = canariesIn(request);
    expect(others).toEqual([]);
    const index = Number(canary.slice('canary-'.length));
    const holder = holders[index % holders.length] ?? 'bob';
    expect(clientOf.get(sessionOf(request)) ?? holder).toBe(holder);
    clientOf.set(sessionOf(request), holder);
    expect(shapes.get(names[(index * 7 + (index >> 3)) % names.length] ?? 'plain')).toContain(shapeOf(request));
  }
  const scrape = new Exposition((await service.get('/metrics', headersOf('operator'))).text);
  expect(scrape.value('questions_total{cli="claude",process="renewed"}')).toBeGreaterThan(questions / 2);
  await until(async () => (await service.jobProcesses()).length <= 9, 'the processes to be as few as sessions');
}, 1_200_000);
