import { join } from 'node:path';
import { temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import { upload } from '../../support/clients/batches.js';
import { headersOf, type KeyHolder, type NamedKeys, writeNamedKeys } from '../../support/doors/named-keys.js';
import { type Answer, type Service, startService } from '../../support/service/service.js';
import { startRedis } from '../../support/stores/redis-server.js';

/** Text of the file. The store splits it into pieces. */
const text = Array.from({ length: 30_000 }, (_, index) => `line ${index} of grüße`).join('\n');

/** What the model gets, and repeats. */
const asked = `<document name="prompts.jsonl">\n${text}\n</document>\n\nSum up`;

/** Bodies that refer to a file, by path. */
const requests: Readonly<Record<string, (id: string) => object>> = {
  '/ask': (id) => ({ model: 'echo', prompt: 'Sum up', files: [{ file_id: id }] }),
  '/chat': (id) => ({ model: 'echo', message: 'Sum up', files: [{ file_id: id }] }),
  '/v1/messages': (id) => ({
    ...{ model: 'echo', max_tokens: 100_000 },
    messages: [says({ type: 'document', source: { type: 'file', file_id: id } }, { type: 'text', text: 'Sum up' })],
  }),
  '/v1/chat/completions': (id) => ({
    model: 'echo',
    messages: [says({ type: 'file', file: { file_id: id } }, { type: 'text', text: 'Sum up' })],
  }),
  '/v1/responses': (id) => ({
    model: 'echo',
    input: [says({ type: 'input_file', file_id: id }, { type: 'input_text', text: 'Sum up' })],
  }),
};

function says(...content: readonly object[]): object {
  return { role: 'user', content };
}

let keys: NamedKeys;

beforeAll(async () => {
  keys = await writeNamedKeys();
});
afterAll(() => keys[Symbol.asyncDispose]());

function start(store: string): Promise<Service> {
  return startService({ env: { ...keys.env, MODEL_API_STORE: store } });
}

/** Ids of two files of the client alice. */
interface Uploads {
  readonly document: string;
  /** File of the purpose batch. */
  readonly batch: string;
}

async function uploadTo(service: Service): Promise<Uploads> {
  const [document, batch] = await Promise.all(
    ['user_data', 'batch'].map((purpose) => upload(service, text, { purpose }, headersOf('alice'))),
  );
  return { document: String(document?.body.id), batch: String(batch?.body.id) };
}

/** Sends a request with the file to each API. */
async function askAll(service: Service, id: string, holder: KeyHolder = 'alice'): Promise<[string, Answer][]> {
  const answers: [string, Answer][] = [];
  for (const [path, bodyOf] of Object.entries(requests))
    answers.push([path, await service.post(path, bodyOf(id), headersOf(holder))]);
  return answers;
}

async function expectRefusals(answers: Promise<[string, Answer][]>, status: number, message: string): Promise<void> {
  for (const [path, answer] of await answers) {
    expect([path, answer.status]).toEqual([path, status]);
    expect(answer.text).toMatch(new RegExp(`file_id: ${message}`));
  }
}

/** Checks all uses of the files on one host. The document is removed on the other host. */
async function expectUse(service: Service, { document, batch }: Uploads, other: Service): Promise<void> {
  for (const [path, { status, text: answer }] of await askAll(service, document))
    expect([path, status, answer.includes(JSON.stringify(asked).slice(1, -1))]).toEqual([path, 200, true]);
  await expectRefusals(askAll(service, document, 'bob'), 404, 'no such file');
  await expectRefusals(askAll(service, batch), 400, 'must be a file of the purpose user_data');

  const order = requests['/ask']?.(document);
  const accepted = await service.post('/ask', order, { ...headersOf('alice'), Prefer: 'respond-async' });
  expect((await other.delete(`/v1/files/${document}`, headersOf('alice'))).status).toBe(200);
  await expectRefusals(askAll(service, document), 404, 'no such file');
  const result = await until(async () => {
    const { body } = await service.get(`/jobs/${accepted.body.job_id}`, headersOf('alice'));
    return body.result as Record<string, unknown> | undefined;
  }, 'the answer of the job');
  expect(result.response).toBe(asked);
}

describe('Uploaded files in the requests of each API', () => {
  it('are found after a restart with SQLite', async () => {
    await using folder = await temporaryFolder();
    const store = `sqlite:${join(folder.path, 'state', 'store.db')}`;
    const first = await start(store);
    const files = await uploadTo(first).finally(() => first.stop());
    await using service = await start(store);
    await expectUse(service, files, service);
  });

  it('are found on another host with the same Redis, until any host removes them', async () => {
    await using redis = await startRedis();
    await using north = await start(redis.url);
    await using south = await start(redis.url);
    await expectUse(south, await uploadTo(north), north);
  });
});
