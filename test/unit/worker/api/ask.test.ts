import { once } from 'node:events';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import type { Request } from 'express';
import { systemClock } from '../../../../src/shared/clock.js';
import { cancelled, RelayError } from '../../../../src/shared/errors.js';
import type { JobDone, JobEvent, JobRequest } from '../../../../src/shared/job.js';
import { ownFormat, wantsStream } from '../../../../src/worker/api/ask.js';
import type { AsyncHandler } from '../../../../src/worker/http/exchange.js';
import type { CompletedAnswer } from '../../../../src/worker/jobs/answer-format.js';
import { SpillFolder } from '../../../../src/worker/jobs/answer-text.js';
import { ownRequest, type RequestedJob } from '../../../../src/worker/jobs/job-request.js';
import { answerWithJob, type JobParts } from '../../../../src/worker/jobs/run-job.js';
import { LogBook } from '../../../support/basics/log-book.js';
import { until } from '../../../support/basics/until.js';
import { RawConnection, request } from '../../../support/clients/raw-http.js';
import { type ExpressServer, serveWith } from '../../../support/doors/express-server.js';
import { FakePrimary } from '../../../support/jobs/fake-primary.js';
import { jobFailed } from '../../../support/jobs/job-records.js';

const order: RequestedJob = {
  operation: 'ask',
  text: 'hello',
  isEffortNeeded: true,
  stream: false,
};
const figures = { queueMs: 1, executionMs: 2, processorMs: null, peakMemoryBytes: null };
const started: JobEvent[] = [
  { type: 'job-admitted', session: null, ignoresEffort: false },
  { type: 'job-queued', position: 1, reason: 'slot' },
  { type: 'job-start', queueMs: 1 },
];
const deltas: JobEvent[] = [
  { type: 'text-delta', text: 'good ' },
  { type: 'text-delta', text: 'day' },
];
const done: JobDone = {
  type: 'job-end',
  outcome: 'ok',
  text: null,
  model: 'eliza',
  usage: { inputTokens: 1, outputTokens: 2, costUsd: null, cacheReadTokens: null, cacheWriteTokens: null },
  estimate: null,
  stopSequence: null,
  conversation: null,
  ...figures,
};
const failed: JobEvent = {
  type: 'job-end',
  outcome: 'timeout',
  failure: { code: 'timeout', message: 'too long' },
  ...figures,
};

const noSpill = { file: async () => null };

/** Serves one job with these events. */
async function serveJob(
  run: (signal: AbortSignal) => AsyncGenerator<JobEvent>,
  changes: Partial<RequestedJob> = {},
  spill: JobParts['spill'] = noSpill,
) {
  const primary = new FakePrimary({}, (_request, signal) => run(signal));
  const bodyOf = ({ text, end, requestId }: CompletedAnswer) => ({ text, model: end.model, id: requestId });
  const parts = { primary: primary.asPrimary, spill, clock: systemClock };
  const handler: AsyncHandler = (_req, res) =>
    answerWithJob(parts, res, ownRequest({ ...order, ...changes }), ownFormat(bodyOf));
  return { server: await serveWith([handler]), primary };
}

async function* events(...list: readonly JobEvent[]): AsyncGenerator<JobEvent> {
  yield* list;
}

/** Yields these events, then waits until it is cancelled. */
async function* hanging(signal: AbortSignal, ...list: readonly JobEvent[]): AsyncGenerator<JobEvent> {
  yield* list;
  await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
}

// biome-ignore lint/correctness/useYield: fails before its first event
async function* throwing(error: Error): AsyncGenerator<JobEvent> {
  throw error;
}

const conversation = {
  id: 'a-conversation',
  messageCount: 2,
  tokensUsed: 3,
  createdAt: 0,
  lastActivityAt: 0,
  expiresAt: 1,
};

/** Returns the header that names the conversation; null without such a header. */
async function namedConversation(...given: Parameters<typeof serveJob>): Promise<string | null> {
  await using server = (await serveJob(...given)).server;
  return (await fetch(`http://127.0.0.1:${server.port}/`)).headers.get('x-conversation-id');
}

async function recordOf({ log }: ExpressServer) {
  const find = () => log.entries.find(({ event }) => event === 'http_request_completed');
  return (await until(find, 'the record')).fields;
}

/** Returns the whole text of a streamed answer. */
async function streamOf(server: ExpressServer): Promise<string> {
  return (await fetch(`http://127.0.0.1:${server.port}/`)).text();
}

describe('The conversation header', () => {
  const admitted: JobEvent = {
    type: 'job-admitted',
    session: null,
    ignoresEffort: false,
    conversationId: conversation.id,
  };

  it('is part of a plain answer and of a stream', async () => {
    expect(await namedConversation(() => events(admitted, { ...done, conversation }))).toBe(conversation.id);
    const streamed = { stream: true };
    expect(await namedConversation(() => events(admitted, { ...done, conversation }), streamed)).toBe(conversation.id);
  });

  it('is absent after a failure, which creates no conversation, and from an answer without a conversation', async () => {
    expect(await namedConversation(() => events(admitted, failed))).toBeNull();
    expect(await namedConversation(() => events(...started, done))).toBeNull();
  });
});

describe('A job with a plain answer', () => {
  it('is requested with all fields that the primary needs', async () => {
    const { server, primary } = await serveJob(() => events(...started, done), { model: 'echo' });
    await using _ = server;
    await server.get('X-Request-Id: mine');
    const expected: JobRequest = {
      operation: 'ask',
      requestId: 'mine',
      client: '',
      conversationId: null,
      text: 'hello',
      images: [],
      system: null,
      model: 'echo',
      schema: null,
      effort: null,
      isEffortNeeded: true,
      stop: [],
      history: [],
      chain: null,
      isStreamed: false,
    };
    expect(primary.calls).toEqual([{ name: 'run', request: expected }]);
  });

  it('is answered with the joined deltas, and logged with its figures', async () => {
    const { server } = await serveJob(() => events(...started, ...deltas, done));
    await using _ = server;
    expect(await server.get('X-Request-Id: mine')).toMatchObject({
      status: 200,
      body: { text: 'good day', model: 'eliza', id: 'mine' },
    });
    expect(await recordOf(server)).toMatchObject({ outcome: 'ok', queue_ms: 1, execution_ms: 2 });
  });

  it('is answered with the final text if the CLI has corrected itself', async () => {
    const { server } = await serveJob(() => events(...started, ...deltas, { ...done, text: 'good night' }));
    await using _ = server;
    expect((await server.get()).body.text).toBe('good night');
  });

  it('is answered with its failure', async () => {
    const { server } = await serveJob(() => events(...started, ...deltas, failed));
    await using _ = server;
    expect(await server.get()).toMatchObject({ status: 504, body: { error: 'timeout', message: 'too long' } });
    expect(await recordOf(server)).toMatchObject({ outcome: 'timeout', error: 'timeout' });
  });

  it('is not logged as a job if it was refused', async () => {
    const { server } = await serveJob(() => throwing(new RelayError('concurrency_limited', 'full')));
    await using _ = server;
    expect((await server.get()).status).toBe(429);
    expect(await recordOf(server)).not.toHaveProperty('outcome');
  });

  it('is answered with internal_error if its stream has no end event, which is a defect', async () => {
    const { server } = await serveJob(() => events(...started));
    await using _ = server;
    expect(await server.get()).toMatchObject({ status: 500, body: { error: 'internal_error' } });
    expect(server.log.events).toContain('internal_error');
  });

  it('is cancelled when its client disconnects, and logged as cancelled', async () => {
    const signals: AbortSignal[] = [];
    const { server } = await serveJob((signal) => {
      signals.push(signal);
      return hanging(signal, ...started);
    });
    await using _ = server;
    using connection = await RawConnection.open(server.port);
    connection.send(request('GET /'));
    const signal = await until(() => signals[0], 'the job');
    connection.reset();
    expect(await recordOf(server)).toMatchObject({ status_code: 499, outcome: 'cancelled' });
    expect(signal.aborted).toBe(true);
    expect(server.log.events).not.toContain('internal_error');
  });

  it('reads its event stream to the end after the end of the job', async () => {
    let hasEnded = false;
    async function* toTheEnd(): AsyncGenerator<JobEvent> {
      yield* events(...started, done);
      hasEnded = true;
    }
    const { server } = await serveJob(toTheEnd);
    await using _ = server;
    expect((await server.get()).status).toBe(200);
    expect(hasEnded).toBe(true);
  });
});

describe('A job with a streamed answer', () => {
  it('sends each event as it arrives, and the whole answer last', async () => {
    const { server } = await serveJob(() => events(...started, ...deltas, done), { stream: true });
    await using _ = server;
    expect((await streamOf(server)).split('\n\n')).toEqual([
      'event: queued\ndata: {"position":1,"reason":"slot"}',
      'event: started\ndata: {"queue_ms":1}',
      'event: delta\ndata: {"text":"good "}',
      'event: delta\ndata: {"text":"day"}',
      expect.stringMatching(/^event: done\ndata: \{"text":"good day","model":"eliza","id":"[^"]+"\}$/),
      '',
    ]);
  });

  it('has an ordinary error response if it was refused', async () => {
    const refused = () => throwing(new RelayError('concurrency_limited', 'full'));
    const { server } = await serveJob(refused, { stream: true });
    await using _ = server;
    expect(await server.get()).toMatchObject({ status: 429, body: { error: 'concurrency_limited' } });
  });

  it('has an ordinary error response if it ended before its start, and is logged as a job', async () => {
    const failure = { code: 'cli_error', message: 'used up', reason: 'quota', retryAfterSeconds: 7 } as const;
    const held = () => events(jobFailed('cli_error', { failure }));
    const { server } = await serveJob(held, { stream: true });
    await using _ = server;
    const { status, headers, body } = await server.get();
    expect([status, headers['retry-after']]).toEqual([500, '7']);
    expect(body).toMatchObject({ error: 'cli_error', reason: 'quota', retry_after_seconds: 7 });
    expect(await recordOf(server)).toMatchObject({ status_code: 500, outcome: 'cli_error', error: 'cli_error' });
  });

  it('ends with an error event, which is counted', async () => {
    const { server } = await serveJob(() => events(...started, ...deltas, failed), { stream: true });
    await using _ = server;
    expect(await streamOf(server)).toMatch(/event: error\ndata: \{"error":"timeout","message":"too long",.*\}\n\n$/);
    expect(await recordOf(server)).toMatchObject({ status_code: 200, outcome: 'timeout', error: 'timeout' });
  });

  it('ends with internal_error if it has a defect, which is logged', async () => {
    async function* broken(): AsyncGenerator<JobEvent> {
      yield* started;
      throw new TypeError('secret');
    }
    const { server } = await serveJob(broken, { stream: true });
    await using _ = server;
    expect(await streamOf(server)).toMatch(/event: error\ndata: \{"error":"internal_error","message":"internal error"/);
    await recordOf(server);
    expect(server.log.events).toContain('internal_error');
  });

  it('is cut off if the job was cancelled after its start', async () => {
    async function* lost(): AsyncGenerator<JobEvent> {
      yield* started;
      throw cancelled('the channel has closed');
    }
    const { server } = await serveJob(lost, { stream: true });
    await using _ = server;
    await expect(streamOf(server)).rejects.toThrow();
    expect(server.log.events).not.toContain('internal_error');
  });
});

describe('An answer that is too long for memory', () => {
  const piece = 'a "piece" of 20 units'.repeat(500);
  const long: JobEvent[] = Array.from({ length: 200 }, () => ({ type: 'text-delta', text: piece }));
  const whole = piece.repeat(200);
  const spill = new SpillFolder(tmpdir(), new LogBook());

  it('is sent like any other plain answer', async () => {
    const { server } = await serveJob(() => events(...started, ...long, done), {}, spill);
    await using _ = server;
    const response = await fetch(`http://127.0.0.1:${server.port}/`);
    expect(Number(response.headers.get('content-length'))).toBeGreaterThan(whole.length);
    expect(await response.json()).toMatchObject({ text: whole, model: 'eliza' });
    expect(await recordOf(server)).toMatchObject({ status_code: 200, outcome: 'ok' });
  });

  it('is the last event of its stream, in one piece', async () => {
    const { server } = await serveJob(() => events(...started, ...long, done), { stream: true }, spill);
    await using _ = server;
    const [last, ...rest] = (await streamOf(server)).split('\n\n').reverse().slice(1);
    expect(rest).toHaveLength(started.length - 1 + long.length); // the stream omits the admission
    expect(JSON.parse(last?.replace('event: done\ndata: ', '') ?? '')).toMatchObject({ text: whole });
  });

  it('is abandoned when its client disconnects', async () => {
    const { server } = await serveJob(
      () => events(...started, ...Array.from({ length: 12 }, () => long).flat(), done),
      {},
      spill,
    );
    await using _ = server;
    const socket = connect(server.port, '127.0.0.1');
    socket.write(request('GET /'));
    await once(socket, 'readable');
    socket.resetAndDestroy();
    expect(await recordOf(server)).toMatchObject({ status_code: 499 });
    expect(server.log.events).not.toContain('internal_error');
  });
});

describe('A request for a stream', () => {
  it.each<[boolean | undefined, string | false, boolean]>([
    [true, 'application/json', true],
    [false, 'text/event-stream', false],
    [undefined, 'text/event-stream', true],
    [undefined, 'application/json', false],
    [undefined, false, false],
  ])('prefers the field %p to the header, which prefers %p', (field, preferred, expected) => {
    expect(wantsStream({ accepts: () => preferred } as unknown as Request, field)).toBe(expected);
  });
});
