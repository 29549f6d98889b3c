import { CommandError, exitCodes, ServiceError } from '../../../../src/command/base/errors.js';
import type { PromptEnd } from '../../../../src/command/batch/ends.js';
import { Patience } from '../../../../src/command/batch/patience.js';
import type { BadLine, Prompt } from '../../../../src/command/batch/prompts.js';
import { type BatchesParts, findBatches, ServiceBatches } from '../../../../src/command/batch/service-batches.js';
import type { ErrorBody } from '../../../../src/shared/api/error.js';
import { type BatchBody, batchBody } from '../../../../src/shared/api/files.js';
import { noRoomForResult } from '../../../../src/shared/files.js';
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
) =>
  | { readonly answer: string }
  | { readonly code: string; readonly message?: string }
  | 'cancelled'
  | 'nothing'
  | 'broken';

/** Service that ends each batch after its first two reads, one after the other. */
class FakeService {
  readonly files = new Map<string, string>();
  /** Numbers of lines of the batches that have ended. */
  readonly sizes: number[] = [];
  readonly batches: BatchBody[] = [];
  readonly #reads = new Map<string, number>();
  /** Largest number of lines in the files of all open batches. */
  room = Number.POSITIVE_INFINITY;
  /** Largest number of lines for whose results there is room. */
  roomForResults = Number.POSITIVE_INFINITY;
  /** Number of times that an open batch is seen before it ends. */
  readsToEnd = 1;
  /** Errors of the next uploads. */
  readonly faults: Error[] = [];
  model: Model = (answer) => ({ answer });
  #fileCount = 0;

  get client(): BatchesParts['client'] {
    const client = {
      upload: async (text: string) => {
        const fault = this.faults.shift();
        if (fault !== undefined) throw fault;
        const lines = [text, ...this.files.values()].join('').split('\n').filter(Boolean);
        if (lines.length > this.room) throw refusal('payload_too_large');
        return { id: this.#store(text) };
      },
      postOnce: async (_path: string, order: { readonly input_file_id: string }) => {
        const size = this.files.get(order.input_file_id)?.split('\n').filter(Boolean).length ?? 0;
        if (size > this.roomForResults) throw refusal('payload_too_large');
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
        return reads > this.readsToEnd && batch.status === 'in_progress' ? this.#end(batch, 'completed') : batch;
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
        ? { error: { message: end.message ?? 'm', code: end.code } }
        : { id: 'chatcmpl-r', model: 'm', choices: [{ message: { content: end.answer } }] };
    return [JSON.stringify({ custom_id, response: { request_id: 'r', body: sent } })];
  }
}

function missing(): ServiceError {
  return refusal('not_found');
}

function refusal(error: ErrorBody['error'], seconds?: number): ServiceError {
  return new ServiceError({ error, message: 'm', request_id: '', ...(seconds && { retry_after_seconds: seconds }) });
}

async function* numbered(count: number, text = 'p'): AsyncGenerator<Prompt | BadLine> {
  for (let id = 0; id < count; id++) yield { id, line: id + 1, body: { messages: [user(`${text}${id}`)] }, images: [] };
}

interface Sent {
  readonly ends: Map<unknown, PromptEnd>;
  readonly synced: number[];
  readonly lost: number[];
  readonly whole: Promise<void>;
}

/** Sends prompts in batches until the sender has ended, or until the time is over. */
async function sendTo(
  service: FakeService,
  {
    count = 10,
    text = 'p',
    stopping = never,
    cutting = never,
    retriesFailures = false,
    ms = 600_000,
    slots = 1,
    atOnce = null as number | null,
    prompts = numbered(count, text),
    clock = new FakeClock(),
  } = {},
): Promise<Sent> {
  const [ends, synced, lost] = [new Map<unknown, PromptEnd>(), [] as number[], [] as number[]];
  const { client } = service;
  const parts = {
    ...{ client, clock, patience: new Patience(clock), readImages: async () => undefined },
    ...{ slots, atOnce, onLost: (lines: number) => void lost.push(lines) },
    ...{ label: 'here', retriesFailures, sink: { sync: async () => void synced.push(ends.size) } },
  };
  const place = async ({ id }: Prompt | BadLine, end: PromptEnd) => {
    if (ends.has(id)) throw new Error(`${id} has two ends`);
    ends.set(id, end);
  };
  const sender = new ServiceBatches(parts, await findBatches(client));
  const whole = sender.sendPrompts({ prompts, place, stopping, cutting });
  whole.catch(() => {});
  await clock.advance(ms);
  return { ends, synced, lost, whole };
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

  it('get the answers of a batch that has ended, although its requests have expired', async () => {
    const service = new FakeService();
    await sendTo(service, { count: 4, ms: 0 });
    for (let reads = 0; reads < 2; reads++) await service.client.getState('/v1/batches/batch-0', batchBody);
    service.files.delete('file-0');
    const sent = await sendTo(service, { count: 4 });
    await sent.whole;
    expect([service.batches.length, responses(sent)]).toEqual([1, ['p0', 'p1', 'p2', 'p3']]);
    expect([...service.files]).toEqual([]);
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
    const clock = new FakeClock();
    const first = await sendTo(forgetful, { count: 3, clock, ms: 0 });
    forgetful.batches.length = 0;
    await clock.advance(600_000);
    expect(responses(first)).toEqual(['p0', 'p1', 'p2']);
    expect(first.lost).toEqual([3]);
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

  it('are in smaller batches while the service has no room, and wait until it has', async () => {
    const service = new FakeService();
    service.room = 3;
    const sent = await sendTo(service, { count: 30, slots: 4 });
    await sent.whole;
    expect(Math.max(...service.sizes)).toBeLessThanOrEqual(3);
    expect(responses(sent).toSorted()).toEqual(Array.from({ length: 30 }, (_, id) => `p${id}`).toSorted());
    const [full, clock] = [new FakeService(), new FakeClock()];
    full.room = 0;
    const waiting = await sendTo(full, { count: 2, clock });
    expect(waiting.ends.size).toBe(0);
    full.room = 2;
    await clock.advance(600_000);
    expect(responses(waiting).toSorted()).toEqual(['p0', 'p1']);
  });

  it('are in smaller batches while there is no room for their results', async () => {
    const service = new FakeService();
    service.roomForResults = 3;
    const sent = await sendTo(service, { count: 10, slots: 4 });
    await sent.whole;
    expect(Math.max(...service.sizes)).toBeLessThanOrEqual(3);
    expect(responses(sent).toSorted()).toEqual(tenAnswers);
    expect([...service.files]).toEqual([]);
  });

  it('fail if a batch of their own is too long for the service', async () => {
    const service = new FakeService();
    service.room = 0;
    const sent = await sendTo(service, { count: 1, text: 'p'.repeat(17 * 1024 * 1024) });
    await sent.whole;
    expect(responses(sent)).toEqual(['payload_too_large']);
  });

  it('are sent again if there was no room for their result', async () => {
    const service = new FakeService();
    let asked = 0;
    service.model = (answer) => (asked++ === 0 ? { code: 'payload_too_large', message: noRoomForResult } : { answer });
    expect(responses(await sendTo(service, { count: 1 }))).toEqual(['p0']);
  });

  it('fail if they are too long themselves, for example with the files that they name', async () => {
    const service = new FakeService();
    service.model = (answer) => (answer === 'p1' ? { code: 'payload_too_large' } : { answer });
    const sent = await sendTo(service, { count: 2 });
    await sent.whole;
    expect(responses(sent)).toEqual(['p0', 'payload_too_large']);
  });

  it('are at most as many at once as allowed', async () => {
    const service = new FakeService();
    await (await sendTo(service, { count: 7, atOnce: 3, slots: 9 })).whole;
    expect(service.sizes).toEqual([3, 3, 1]);
  });

  it('are not held by others that have not arrived yet', async () => {
    const [service, stopping, clock] = [new FakeService(), new AbortController(), new FakeClock()];
    const slow = (async function* () {
      yield* numbered(2);
      await new Promise(() => {});
    })();
    const sent = await sendTo(service, { prompts: slow, stopping: stopping.signal, clock });
    expect(responses(sent)).toEqual(['p0', 'p1']);
    stopping.abort();
    await clock.advance(2000);
    await sent.whole;
  });

  it('are in batches that no longer grow when one has run for a minute', async () => {
    const [service, clock] = [new FakeService(), new FakeClock()];
    service.readsToEnd = 70;
    await (await sendTo(service, { count: 100, clock, ms: 3_600_000 })).whole;
    expect(Math.max(...service.sizes)).toBe(16);
  });

  it.each<[string, Error, number]>([
    ['is away', new CommandError(exitCodes.unavailable, 'no service answers'), 500],
    ['is no relay for a moment', new CommandError(exitCodes.protocol, 'bad gateway'), 500],
    ['drains', refusal('shutting_down', 5), 5000],
    ['has a limit', refusal('rate_limited', 300), 300_000],
    ['has no store', refusal('store_unavailable', 5), 5000],
  ])('wait, and are sent again, while the service %s', async (_, error, ms) => {
    const [service, clock] = [new FakeService(), new FakeClock()];
    service.faults.push(error);
    const sent = await sendTo(service, { count: 1, clock, ms: ms - 1 });
    expect(service.batches).toHaveLength(0);
    await clock.advance(10_000);
    expect(responses(sent)).toEqual(['p0']);
  });

  it('wait longer each time, up to half a minute', async () => {
    const [service, clock] = [new FakeService(), new FakeClock()];
    service.faults.push(...Array.from({ length: 9 }, () => new CommandError(exitCodes.unavailable, 'away')));
    const sent = await sendTo(service, { count: 1, clock, ms: 32_500 });
    expect(service.faults).toHaveLength(2);
    await clock.advance(120_000);
    expect(responses(sent)).toEqual(['p0']);
  });

  it('end with an error if the API key is rejected, and at once if the sending is cut', async () => {
    const service = new FakeService();
    service.faults.push(refusal('unauthorized'));
    await expect((await sendTo(service)).whole).rejects.toThrow('unauthorized');
    const cutting = new AbortController();
    service.faults.push(refusal('rate_limited', 300));
    const sent = await sendTo(service, { cutting: cutting.signal, ms: 1000 });
    cutting.abort(new Error('cut'));
    await expect(sent.whole).rejects.toThrow('cut');
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
    await expect(findBatches(client)).rejects.toThrow('not_found');
  });
});
