import { ServiceError } from '../../../../src/command/base/errors.js';
import type { PromptEnd } from '../../../../src/command/batch/ends.js';
import { Patience } from '../../../../src/command/batch/patience.js';
import type { BadLine, Prompt } from '../../../../src/command/batch/prompts.js';
import { type BatchesParts, findBatches, ServiceBatches } from '../../../../src/command/batch/service-batches.js';
import { type BatchBody, batchBody } from '../../../../src/shared/api/files.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { user } from '../../../support/doors/sdk-messages.js';

const never = new AbortController().signal;

interface Line {
  readonly custom_id: string;
  readonly body: { readonly messages: readonly { readonly content: string }[] };
}

/** Answers a line with its prompt, or with the code of an error. */
type Model = (
  prompt: string,
) => { readonly answer: string } | { readonly code: string } | 'cancelled' | 'nothing' | 'broken';

/** Service that ends each batch after its first two reads, one after the other. */
class FakeService {
  readonly files = new Map<string, string>();
  /** Numbers of lines of the batches that have ended. */
  readonly sizes: number[] = [];
  readonly batches: BatchBody[] = [];
  readonly #reads = new Map<string, number>();
  model: Model = (answer) => ({ answer });
  #fileCount = 0;

  get client(): BatchesParts['client'] {
    const client = {
      upload: async (text: string) => ({ id: this.#store(text) }),
      postOnce: async (_path: string, order: object) => {
        const counts = { total: 0, completed: 0, failed: 0 };
        const files = { output_file_id: null, error_file_id: null, request_counts: counts };
        const id = `batch-${this.batches.length}`;
        this.batches.push({ id, object: 'batch', status: 'in_progress', metadata: null, ...files, ...order } as never);
        return this.batches.at(-1);
      },
      getState: async (path: string) => {
        if (path.startsWith('/v1/batches?')) return { data: this.batches.toReversed() };
        const id = path.split('/').at(-1) ?? '';
        if (path.startsWith('/v1/files/') && this.files.has(id)) return { id };
        const batch = this.batches.find((known) => known.id === id);
        if (batch === undefined) throw missing();
        const reads = (this.#reads.get(id) ?? 0) + 1;
        this.#reads.set(id, reads);
        return reads > 1 && batch.status === 'in_progress' ? this.#end(batch, 'completed') : batch;
      },
      post: async (path: string) => {
        const batch = this.batches.find(({ id }) => path.includes(id)) as BatchBody;
        return batch.status === 'in_progress' ? this.#end(batch, 'cancelled') : batch;
      },
      getText: async (path: string) => {
        const text = this.files.get(path.split('/').at(-2) ?? '');
        if (text === undefined) throw missing();
        return text;
      },
      delete: async (path: string) => void this.files.delete(path.split('/').at(-1) ?? ''),
    };
    return client as unknown as BatchesParts['client'];
  }

  #store(text: string): string {
    const id = `file-${this.#fileCount++}`;
    this.files.set(id, text);
    return id;
  }

  #end(batch: BatchBody, status: BatchBody['status']): BatchBody {
    const lines = (this.files.get(batch.input_file_id) ?? '').trim().split('\n');
    this.sizes.push(lines.length);
    const results = lines.flatMap((text) => this.#resultOf(JSON.parse(text) as Line));
    const ended = { status, output_file_id: this.#store(results.join('\n')), error_file_id: null };
    return Object.assign(batch, ended);
  }

  #resultOf({ custom_id, body }: Line): string[] {
    const end = this.model(body.messages[0]?.content ?? '');
    if (end === 'nothing') return [];
    if (end === 'broken') return ['{"custom_id":', '{"custom_id":1}'];
    if (end === 'cancelled') return [JSON.stringify({ custom_id, response: null })];
    const sent =
      'code' in end
        ? { error: { message: 'm', code: end.code } }
        : { id: 'chatcmpl-r', model: 'm', choices: [{ message: { content: end.answer } }] };
    return [JSON.stringify({ custom_id, response: { request_id: 'r', body: sent } })];
  }
}

function missing(): ServiceError {
  return new ServiceError({ error: 'not_found', message: 'no such thing', request_id: '' });
}

async function* numbered(count: number, text = 'p'): AsyncGenerator<Prompt | BadLine> {
  for (let id = 0; id < count; id++) yield { id, line: id + 1, body: { messages: [user(`${text}${id}`)] }, images: [] };
}

interface Sent {
  readonly ends: Map<unknown, PromptEnd>;
  readonly synced: number[];
  readonly whole: Promise<void>;
}

/** Sends prompts in batches until the sender has ended, or until the time is over. */
async function sendTo(
  service: FakeService,
  { count = 10, text = 'p', stopping = never, retriesFailures = false, ms = 600_000 } = {},
): Promise<Sent> {
  const [clock, ends, synced] = [new FakeClock(), new Map<unknown, PromptEnd>(), [] as number[]];
  const { client } = service;
  const parts = {
    ...{ client, clock, patience: new Patience(clock), readImages: async () => undefined },
    ...{ slots: 1, label: 'here', retriesFailures, sink: { sync: async () => void synced.push(ends.size) } },
  };
  const place = async ({ id }: Prompt | BadLine, end: PromptEnd) => {
    if (ends.has(id)) throw new Error(`${id} has two ends`);
    ends.set(id, end);
  };
  const sender = new ServiceBatches(parts, (await findBatches(client)) ?? []);
  const whole = sender.send({ prompts: numbered(count, text), place, stopping, cutting: never });
  whole.catch(() => {});
  await clock.advance(ms);
  return { ends, synced, whole };
}

function responses({ ends }: Sent): unknown[] {
  return [...ends.values()].map((end) => ('response' in end ? end.response : end.error.code));
}

const tenAnswers = Array.from({ length: 10 }, (_, id) => `p${id}`);

describe('Prompts that are sent as batches', () => {
  it('fill batches that grow, and whose files are removed when their answers are stored', async () => {
    const service = new FakeService();
    const sent = await sendTo(service, { count: 30 });
    await sent.whole;
    expect(service.sizes).toEqual([4, 8, 16, 2]);
    expect(responses(sent)).toEqual(Array.from({ length: 30 }, (_, id) => `p${id}`));
    expect(sent.synced.slice(0, 4)).toEqual([4, 12, 28, 30]);
    expect([...service.files]).toEqual([]);
  });

  it('get the answers of batches that a killed run has left, unless the prompt has changed', async () => {
    const service = new FakeService();
    const ofAnotherOutput = { input_file_id: 'x', metadata: { output: 'there' } };
    await service.client.postOnce('/v1/batches', ofAnotherOutput, '', batchBody, never);
    await sendTo(service, { count: 6, ms: 0 });
    expect(service.sizes).toEqual([]);
    const sent = await sendTo(service, { count: 10 });
    await sent.whole;
    expect(service.sizes).toEqual([4, 2, 4]);
    expect(responses(sent)).toEqual(tenAnswers);
    expect([...service.files]).toEqual([]);
    await sendTo(service, { count: 2, ms: 0 });
    expect(responses(await sendTo(service, { count: 2, text: 'q' }))).toEqual(['q0', 'q1']);
  });

  it.each([
    [false, 'cli_error'],
    [true, 'p0'],
  ])('are sent again after a failure in an earlier run only on request: %s', async (retriesFailures, expected) => {
    const service = new FakeService();
    await sendTo(service, { count: 1, ms: 0 });
    let asked = 0;
    service.model = (answer) => (asked++ === 0 ? { code: 'crashed' } : { answer });
    expect(responses(await sendTo(service, { count: 1, retriesFailures }))).toEqual([expected]);
  });

  it.each([
    ['that a later attempt may answer', 'insufficient_quota', 'p0'],
    ['that may pass with a login', 'auth', 'p0'],
    ['of the model', 'crashed', 'cli_error'],
    ['that has ended the service several times', 'host_lost', 'cli_error'],
  ])('are sent again only after a failure %s', async (_, code, expected) => {
    const service = new FakeService();
    let asked = 0;
    service.model = (answer) => (asked++ === 0 ? { code } : { answer });
    const sent = await sendTo(service, { count: 1 });
    await sent.whole;
    expect(responses(sent)).toEqual([expected]);
  });

  it('fail if their batch has no result for them, and are sent again if the batch has disappeared', async () => {
    const service = new FakeService();
    service.model = (answer) => (answer === 'p1' ? 'nothing' : { answer });
    const sent = await sendTo(service, { count: 3 });
    expect(responses(sent)).toEqual(['p0', 'internal_error', 'p2']);
    const broken = new FakeService();
    broken.model = (answer) => (answer === 'p1' ? 'broken' : { answer });
    expect(responses(await sendTo(broken, { count: 3 }))).toEqual(['p0', 'internal_error', 'p2']);
    const forgetful = new FakeService();
    const first = sendTo(forgetful, { count: 3 });
    forgetful.batches.length = 0;
    expect(responses(await first)).toEqual(['p0', 'p1', 'p2']);
  });

  it('are cancelled with their batches when the run stops, but the answers of the batches are placed', async () => {
    const service = new FakeService();
    const stopping = new AbortController();
    service.model = (answer) => (answer === 'p0' ? { answer } : 'cancelled');
    const whole = sendTo(service, { count: 30, stopping: stopping.signal });
    setImmediate(() => stopping.abort());
    expect(responses(await whole)).toEqual(['p0']);
    expect(service.batches.map(({ status }) => status)).toEqual(['cancelled', 'cancelled']);
  });

  it('end with an error if another program cancels the batch', async () => {
    const service = new FakeService();
    service.model = (answer) => (answer === 'p0' ? { answer } : 'cancelled');
    const sent = sendTo(service, { count: 3 });
    setImmediate(() => void service.client.post('/v1/batches/batch-0/cancel', null as never));
    await expect((await sent).whole).rejects.toThrow('another program has cancelled the batch');
  });
});

describe('A service', () => {
  it('lists its batches in pages, all of which are read', async () => {
    const pages = ['b1', 'b2', 'b3'].map((id, index) => ({ data: [{ id }], has_more: index < 2 }));
    const paths: string[] = [];
    const getState = async (path: string) => {
      paths.push(path);
      return pages.shift();
    };
    const found = await findBatches({ getState } as unknown as BatchesParts['client']);
    expect(found?.map(({ id }) => id)).toEqual(['b1', 'b2', 'b3']);
    expect(paths.slice(1).map((path) => path.split('after=')[1])).toEqual(['b1', 'b2']);
  });

  it('has no batches if it stores no files', async () => {
    const client = { getState: () => Promise.reject(missing()) } as unknown as BatchesParts['client'];
    expect(await findBatches(client)).toBeNull();
  });
});
