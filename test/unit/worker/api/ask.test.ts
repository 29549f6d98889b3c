import { once } from 'node:events';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import type { Request } from 'express';
import { noClient } from '../../../../src/shared/client.js';
import { systemClock } from '../../../../src/shared/clock.js';
import { cancelled } from '../../../../src/shared/errors.js';
import type { JobEvent } from '../../../../src/shared/job.js';
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
import { noFeatures } from '../../../support/doors/no-features.js';
import { FakePrimary } from '../../../support/jobs/fake-primary.js';
import { documentInspector } from '../../../support/jobs/inspected-documents.js';
import { jobDone, jobFailed, jobRequest } from '../../../support/jobs/job-records.js';

const order: RequestedJob = { operation: 'ask', text: 'hello', isEffortNeeded: true, stream: false };
const started: JobEvent[] = [
  { type: 'job-admitted', session: null, ignoresEffort: false },
  { type: 'job-queued', position: 1, reason: 'slot' },
  { type: 'job-start', queueMs: 1 },
];
const deltas: JobEvent[] = ['good ', 'day'].map((text) => ({ type: 'text-delta', text }));
const done = jobDone({ model: 'eliza', queueMs: 1, executionMs: 2 });
const failed = jobFailed('timeout', { queueMs: 1, executionMs: 2 });

const noSpill = { file: async () => null };

/** Serves one job with these events. */
async function serveJob(
  run: (signal: AbortSignal) => AsyncGenerator<JobEvent>,
  changes: Partial<RequestedJob> = {},
  spill: JobParts['spill'] = noSpill,
) {
  const primary = new FakePrimary({}, (_request, signal) => run(signal));
  const bodyOf = ({ text, end, requestId }: CompletedAnswer) => ({ text, model: end.model, id: requestId });
  const parts = {
    primary: primary.asPrimary,
    features: noFeatures,
    documents: documentInspector(),
    spill,
    clock: systemClock,
  };
  const handler: AsyncHandler = (_req, res) =>
    answerWithJob(parts, res, ownRequest({ ...order, ...changes }), ownFormat(bodyOf));
  return Object.assign(await serveWith([handler]), { primary });
}

async function* events(...list: readonly JobEvent[]): AsyncGenerator<JobEvent> {
  yield* list;
}

/** Yields these events, then waits until it is cancelled. */
async function* hanging(signal: AbortSignal, ...list: readonly JobEvent[]): AsyncGenerator<JobEvent> {
  yield* list;
  await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
}

/** Yields these events, then fails. */
async function* throwing(error: Error, ...list: readonly JobEvent[]): AsyncGenerator<JobEvent> {
  yield* list;
  throw error;
}

/** Returns the header that names the conversation; null without such a header. */
async function namedConversation(...given: Parameters<typeof serveJob>): Promise<string | null> {
  await using server = await serveJob(...given);
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
  const times = { createdAt: 0, lastActivityAt: 0, expiresAt: 1 };
  const conversation = { id: 'a-conversation', messageCount: 2, tokensUsed: 3, ...times };
  const { id } = conversation;
  const admitted: JobEvent = { type: 'job-admitted', session: null, ignoresEffort: false, conversationId: id };

  it.each([false, true])('is part of the answer, streamed or not: %p', async (stream) => {
    expect(await namedConversation(() => events(admitted, { ...done, conversation }), { stream })).toBe(id);
  });

  it('is absent after a failure, which creates no conversation, and from an answer without a conversation', async () => {
    expect(await namedConversation(() => events(admitted, failed))).toBeNull();
    expect(await namedConversation(() => events(...started, done))).toBeNull();
  });
});

describe('A job with a plain answer', () => {
  it('is requested with all fields that the primary needs', async () => {
    await using server = await serveJob(() => events(...started, done), { model: 'echo' });
    await server.get('X-Request-Id: mine');
    const expected = jobRequest({ requestId: 'mine', client: noClient, text: 'hello', model: 'echo' });
    expect(server.primary.calls).toEqual([{ name: 'run', request: expected }]);
  });

  it('is answered with the joined deltas, and logged with its figures', async () => {
    await using server = await serveJob(() => events(...started, ...deltas, done));
    const body = { text: 'good day', model: 'eliza', id: 'mine' };
    expect(await server.get('X-Request-Id: mine')).toMatchObject({ status: 200, body });
    expect(await recordOf(server)).toMatchObject({ outcome: 'ok', queue_ms: 1, execution_ms: 2 });
  });

  it('is answered with its failure', async () => {
    await using server = await serveJob(() => events(...started, ...deltas, failed));
    expect(await server.get()).toMatchObject({ status: 504, body: { error: 'timeout', message: 'it failed' } });
    expect(await recordOf(server)).toMatchObject({ outcome: 'timeout', error: 'timeout' });
  });

  it('is answered with internal_error if its stream has no end event, which is a defect', async () => {
    await using server = await serveJob(() => events(...started));
    expect(await server.get()).toMatchObject({ status: 500, body: { error: 'internal_error' } });
    expect(server.log.events).toContain('internal_error');
  });

  it('is cancelled when its client disconnects, and logged as cancelled', async () => {
    const signals: AbortSignal[] = [];
    await using server = await serveJob((signal) => {
      signals.push(signal);
      return hanging(signal, ...started);
    });
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
    await using server = await serveJob(toTheEnd);
    expect((await server.get()).status).toBe(200);
    expect(hasEnded).toBe(true);
  });
});

describe('A job with a streamed answer', () => {
  it('sends each event as it arrives, and the whole answer last', async () => {
    await using server = await serveJob(() => events(...started, ...deltas, done), { stream: true });
    expect((await streamOf(server)).split('\n\n')).toEqual([
      'event: queued\ndata: {"position":1,"reason":"slot"}',
      'event: started\ndata: {"queue_ms":1}',
      'event: delta\ndata: {"text":"good "}',
      'event: delta\ndata: {"text":"day"}',
      expect.stringMatching(/^event: done\ndata: \{"text":"good day","model":"eliza","id":"[^"]+"\}$/),
      '',
    ]);
  });

  it('has an ordinary error response if it ended before its start, and is logged as a job', async () => {
    const failure = { code: 'cli_error', message: 'used up', reason: 'quota', retryAfterSeconds: 7 } as const;
    const held = () => events(jobFailed('cli_error', { failure }));
    await using server = await serveJob(held, { stream: true });
    const { status, headers, body } = await server.get();
    expect([status, headers['retry-after']]).toEqual([500, '7']);
    expect(body).toMatchObject({ error: 'cli_error', reason: 'quota', retry_after_seconds: 7 });
    expect(await recordOf(server)).toMatchObject({ status_code: 500, outcome: 'cli_error', error: 'cli_error' });
  });

  it('ends with an error event, which is counted', async () => {
    await using server = await serveJob(() => events(...started, ...deltas, failed), { stream: true });
    expect(await streamOf(server)).toMatch(/event: error\ndata: \{"error":"timeout","message":"it failed",.*\}\n\n$/);
    expect(await recordOf(server)).toMatchObject({ status_code: 200, outcome: 'timeout', error: 'timeout' });
  });

  it('ends with internal_error if it has a defect, which is logged', async () => {
    await using server = await serveJob(() => throwing(new TypeError('secret'), ...started), { stream: true });
    expect(await streamOf(server)).toMatch(/event: error\ndata: \{"error":"internal_error","message":"internal error"/);
    await recordOf(server);
    expect(server.log.events).toContain('internal_error');
  });

  it('is cut off if the job was cancelled after its start', async () => {
    const lost = () => throwing(cancelled('the channel has closed'), ...started);
    await using server = await serveJob(lost, { stream: true });
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
    await using server = await serveJob(() => events(...started, ...long, done), {}, spill);
    const response = await fetch(`http://127.0.0.1:${server.port}/`);
    expect(Number(response.headers.get('content-length'))).toBeGreaterThan(whole.length);
    expect(await response.json()).toMatchObject({ text: whole, model: 'eliza' });
    expect(await recordOf(server)).toMatchObject({ status_code: 200, outcome: 'ok' });
  });

  it('is the last event of its stream, in one piece', async () => {
    await using server = await serveJob(() => events(...started, ...long, done), { stream: true }, spill);
    const [last, ...rest] = (await streamOf(server)).split('\n\n').reverse().slice(1);
    expect(rest).toHaveLength(started.length - 1 + long.length); // the stream omits the admission
    expect(JSON.parse(last?.replace('event: done\ndata: ', '') ?? '')).toMatchObject({ text: whole });
  });

  it('is abandoned when its client disconnects', async () => {
    const longer = Array.from({ length: 12 }, () => long).flat();
    await using server = await serveJob(() => events(...started, ...longer, done), {}, spill);
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
