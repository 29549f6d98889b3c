import { maxRecordedBytes } from '../../../../src/features/idempotency/shared.js';
import type { AnswerStore } from '../../../../src/features/stores/contract/answers.js';
import { MemoryAnswers } from '../../../../src/features/stores/memory/memory-store.js';
import { withResolvers } from '../../../../src/shared/async.js';
import type { JobEvent } from '../../../../src/shared/job.js';
import { until } from '../../../support/basics/until.js';
import { type KeyedRoutes, keyedRoutes } from '../../../support/doors/keyed-routes.js';
import { answerEvents, begun } from '../../../support/doors/sdk-door.js';
import { jobDone, jobFailed } from '../../../support/jobs/job-records.js';

const ok = [...begun, ...answerEvents('Hel', 'lo'), jobDone({ queueMs: 5, executionMs: 7 })];
const admitted = begun[0] as JobEvent;
const refusedDisk: Partial<AnswerStore> = { keep: () => Promise.reject(new Error('disk full')) };

/** Serves jobs with these events; promises among them are awaited. */
function open(
  events: readonly (JobEvent | Promise<unknown>)[],
  store: Partial<AnswerStore> = {},
): Promise<KeyedRoutes> {
  const memory = new MemoryAnswers();
  const run = async function* () {
    for (const event of events) {
      if (event instanceof Promise) await event;
      else yield event;
    }
  };
  return keyedRoutes(run, {
    claimOrFind: (...asked) => memory.claimOrFind(...asked),
    keep: (...kept) => memory.keep(...kept),
    readAnswer: (...asked) => memory.readAnswer(...asked),
    readById: (...asked) => memory.readById(...asked),
    releaseKey: () => memory.releaseKey(),
    expireAnswers: (at) => memory.expireAnswers(at),
    ...store,
  });
}

const dialects = [
  { path: '/v1/chat/completions', body: { model: 'm', messages: [{ role: 'user', content: 'Hi' }] } },
  { path: '/v1/messages', body: { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }] } },
  { path: '/api/chat', body: { model: 'm', stream: false, messages: [{ role: 'user', content: 'Hi' }] } },
] as const;
/** Paths whose clients read headers about retries. */
const mindful: readonly string[] = ['/v1/chat/completions', '/v1/messages'];
const key = { 'idempotency-key': 'k' };

/** Sends a request twice, and expects that the second gets the answer to the first. */
async function expectReplay(send: () => ReturnType<KeyedRoutes['post']>, headers: readonly string[] = []) {
  const [first, again] = [await send(), await send()];
  expect(again).toMatchObject({ status: first.status, text: first.text, isReplayed: true });
  expect(first.isReplayed).toBe(false);
  for (const name of headers) {
    expect(first.headers.get(name)).not.toBeNull();
    expect(again.headers.get(name)).toBe(first.headers.get(name));
  }
  return [first, again] as const;
}

describe('A repeated request with an idempotency key', () => {
  it('gets the first answer unchanged, and runs no model', async () => {
    await using routes = await open(ok);
    const [first, again] = await expectReplay(() => routes.ask(), ['content-type']);
    expect(again.status).toBe(200);
    expect(again.headers.get('x-request-id')).not.toBe(first.headers.get('x-request-id'));
    expect(routes.jobs).toHaveLength(1);
  });

  it('gets the first stream, with its headers', async () => {
    await using routes = await open([admitted, { type: 'job-queued', position: 1, reason: 'slot' }, ...ok.slice(1)]);
    const headers = ['content-type', 'cache-control', 'x-accel-buffering'];
    const [first] = await expectReplay(() => routes.ask({ prompt: 'Hi', stream: true }), headers);
    expect([first.status, first.text]).toEqual([200, expect.stringContaining('event: queued')]);
    expect(routes.jobs).toHaveLength(1);
  });

  it.each(dialects)('gets the first answer of $path too, with its headers', async ({ path, body }) => {
    await using routes = await open(ok);
    for (const stream of [false, true]) {
      const sent = { ...body, stream, odd: 1 };
      const send = () => routes.post(path, sent, { 'idempotency-key': `stream ${stream}` });
      expect((await expectReplay(send, ['x-session', 'x-ignored-parameters']))[0].status).toBe(200);
    }
    expect(routes.jobs).toHaveLength(2);
  });

  it('gets the acceptance of its background job, and starts no second one', async () => {
    await using routes = await open(ok);
    const accept = () => routes.ask({ prompt: 'Hi' }, { prefer: 'respond-async' });
    expect((await expectReplay(accept, ['location', 'preference-applied']))[0].status).toBe(202);
    expect((await routes.ask()).status).toBe(422);
    expect(routes.jobs).toHaveLength(1);
  });

  it('runs again without a key', async () => {
    await using routes = await open(ok);
    for (let n = 0; n < 2; n++) await routes.post('/ask', { prompt: 'Hi' });
    expect(routes.jobs).toHaveLength(2);
  });

  it.each([{ path: '/ask', body: { prompt: 'Hi' } }, ...dialects])(
    'gets the failure of the model, with its retry headers: $path',
    async ({ path, body }) => {
      const failure = { code: 'cli_error', message: 'it crashed', reason: 'crashed' } as const;
      await using routes = await open([...begun, jobFailed('cli_error', { failure })]);
      const [, again] = await expectReplay(() => routes.post(path, body, key));
      expect(again.status).toBe(500);
      expect(again.headers.get('x-should-retry')).toBe(mindful.includes(path) ? 'false' : null);
      expect(routes.jobs).toHaveLength(1);
    },
  );

  it('gets a failure inside a stream', async () => {
    await using routes = await open([...begun, ...answerEvents('Hel'), jobFailed('timeout')]);
    const [first] = await expectReplay(() => routes.ask({ prompt: 'Hi', stream: true }));
    expect(first.text).toContain('event: error');
  });

  it('is counted with the error that it gets', async () => {
    await using routes = await open([...begun, jobFailed('timeout')]);
    await routes.ask();
    await routes.ask();
    const records = await until(() => {
      const all = routes.server.log.entries.filter(({ event }) => event === 'http_request_completed');
      return all.length === 2 ? all : null;
    }, 'two records');
    expect(records.map(({ fields }) => [fields.error, fields.outcome])).toEqual([
      ['timeout', 'timeout'],
      ['timeout', undefined],
    ]);
  });
});

describe('A request with a used key and other content', () => {
  it.each([
    ['another body', { prompt: 'Ho' }, {}],
    ['another manner', { prompt: 'Hi' }, { accept: 'text/event-stream' }],
  ])('is rejected: %s', async (_what, body, headers) => {
    await using routes = await open(ok);
    await routes.ask();
    const other = await routes.ask(body, headers);
    expect([other.status, JSON.parse(other.text)]).toMatchObject([422, { error: 'idempotency_mismatch' }]);
    expect(routes.jobs).toHaveLength(1);
  });

  it('is rejected at another path, in the format of that API', async () => {
    await using routes = await open(ok);
    await routes.ask();
    for (const { path, body } of dialects) {
      const { status, text } = await routes.post(path, body, key);
      const { error } = JSON.parse(text);
      if (mindful.includes(path)) expect([status, error.type]).toEqual([422, 'invalid_request_error']);
      else expect([status, error]).toEqual([422, expect.any(String)]);
    }
  });

  it('is answered if it is from another client', async () => {
    await using routes = await open(ok);
    await routes.ask();
    expect((await routes.ask({ prompt: 'Ho' }, { 'x-client': 'key bob' })).status).toBe(200);
  });
});

describe('A repeated request whose first is still running', () => {
  it('is refused, and gets the answer later', async () => {
    const { promise, resolve } = withResolvers();
    await using routes = await open([...begun, promise, ...ok.slice(2)]);
    const first = routes.ask();
    await until(() => routes.jobs.length === 1, 'the first job');
    const early = await routes.ask();
    expect([early.status, early.headers.get('retry-after')]).toEqual([409, '3']);
    expect(JSON.parse(early.text)).toMatchObject({ error: 'idempotency_in_progress', retry_after_seconds: 3 });
    resolve();
    const { text } = await first;
    expect(await routes.ask()).toMatchObject({ status: 200, text, isReplayed: true });
  });
});

describe('A key becomes free again', () => {
  const later = { code: 'shutting_down', message: 'bye', retryAfterSeconds: 5 } as const;

  it.each<[string, readonly JobEvent[], number]>([
    ['before it was admitted', [jobFailed('cli_error')], 500],
    ['in the queue', [admitted, jobFailed('queue_timeout')], 504],
    ['to be sent again later', [...begun, jobFailed('shutting_down', { failure: later })], 503],
  ])('after a failure %s', async (_when, events, status) => {
    await using routes = await open(events);
    for (let n = 0; n < 2; n++) expect(await routes.ask()).toMatchObject({ status, isReplayed: false });
    for (let n = 0; n < 2; n++) {
      const text = expect.not.stringContaining('Recorded');
      expect(await routes.ask({ prompt: 'Hi', stream: true })).toMatchObject({ text, isReplayed: false });
    }
    expect(routes.jobs).toHaveLength(4);
  });

  it('when its client disconnects', async () => {
    const { promise } = withResolvers();
    await using routes = await open([...begun, promise]);
    const controller = new AbortController();
    const gone = routes.post('/ask', { prompt: 'Hi' }, key, controller.signal).catch(() => 'gone');
    await until(() => routes.jobs.length === 1, 'the first job');
    controller.abort();
    expect(await gone).toBe('gone');
    await until(async () => {
      const probe = new AbortController();
      const sent = routes.post('/ask', { prompt: 'Hi' }, key, probe.signal).catch(() => 'gone');
      const isRun = await until(() => routes.jobs.length === 2, 'a second job', 500).then(
        () => true,
        () => false,
      );
      probe.abort();
      await sent;
      return isRun;
    }, 'the key to be free');
  });
});

describe('An answer that is not stored', () => {
  it('is sent, with a header that says so', async () => {
    await using routes = await open(ok, refusedDisk);
    for (let n = 0; n < 2; n++) {
      const answer = await routes.ask();
      expect(JSON.parse(answer.text)).toMatchObject({ response: 'Hello' });
      expect([answer.isReplayed, answer.headers.get('idempotency-recorded')]).toEqual([false, 'false']);
    }
    const { text } = await routes.ask({ prompt: 'Hi', stream: true });
    expect(text).toContain(': Idempotency-Recorded: false\n\nevent: done\n');
  });

  it.each([false, true])('is one that is too long (streamed: %s)', async (stream) => {
    const long = 'x'.repeat(16_000);
    const pieces = Array<string>(Math.ceil(maxRecordedBytes / long.length)).fill(long);
    await using routes = await open([...begun, ...answerEvents(...pieces), jobDone()]);
    const first = await routes.ask({ prompt: 'Hi', stream });
    expect(first.text.length).toBeGreaterThan(maxRecordedBytes);
    if (stream) expect(first.text).toContain(': Idempotency-Recorded: false\n\nevent: done\n');
    else expect(first.headers.get('idempotency-recorded')).toBe('false');
    expect((await routes.ask({ prompt: 'Hi', stream })).isReplayed).toBe(false);
    expect(routes.jobs).toHaveLength(2);
  });
});
