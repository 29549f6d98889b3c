import type { Request } from 'express';
import type { UsageBody } from '../../shared/api/ask.js';
import type { Clock } from '../../shared/clock.js';
import { fromWire, isCancelled, toRelayError } from '../../shared/errors.js';
import type { JobDone, JobEvent, JobRequest, Operation, Usage } from '../../shared/job.js';
import { untilGone } from '../http/disconnect.js';
import { EventStream } from '../http/event-stream.js';
import type { Primary, Reply } from '../http/exchange.js';
import { errorBodyOf, publicCodeOf, sendJson } from '../http/send-json.js';
import { JobReport } from '../job-report.js';

/** What a request body asks for. */
export interface JobOrder {
  readonly operation: Operation;
  readonly conversationId: string | null;
  readonly text: string;
  readonly system: string | undefined;
  readonly model: string | undefined;
  readonly stream: boolean;
}

export interface Answer {
  readonly text: string;
  readonly end: JobDone;
}

/** Makes the body of a plain response, which is also the last event of a streamed one. */
export type BodyOf = (answer: Answer, requestId: string) => object;

export function wantsStream(req: Request, stream: boolean | undefined): boolean {
  return stream ?? req.accepts(['application/json', 'text/event-stream']) === 'text/event-stream';
}

/** Has the primary run the job for as long as the client stays, and answers with its outcome. Throws what can still be sent as an error body. */
export async function answerWithJob(primary: Primary, res: Reply, order: JobOrder, bodyOf: BodyOf, clock: Clock) {
  using client = untilGone(res);
  const report = new JobReport(clock);
  const events = primary.stream('run', requestOf(order, res), client.signal);
  res.locals.job = report;
  try {
    if (order.stream) await stream(reported(events, report), res, bodyOf, client.signal, clock);
    else sendJson(res, bodyOf(await collect(reported(events, report)), res.locals.requestId));
  } catch (error) {
    if (!report.wasAdmitted && !isCancelled(error)) res.locals.job = null; // refused: there never was a job
    throw error;
  }
}

function requestOf(order: JobOrder, res: Reply): JobRequest {
  const { operation, conversationId, text, stream: isStreamed } = order;
  const { requestId, client } = res.locals;
  const { system = null, model = null } = order;
  return { operation, conversationId, text, system, model, requestId, client, isStreamed };
}

/** Takes the last step in advance: a client that leaves after the job's end has not cancelled it. */
async function* reported(events: AsyncGenerator<JobEvent>, report: JobReport): AsyncGenerator<JobEvent> {
  let hasEnded = false;
  try {
    for (let step = await events.next(); step.done !== true; step = await events.next()) {
      report.follow(step.value);
      hasEnded = step.value.type === 'job-end';
      if (hasEnded) events.next().catch(() => {});
      yield step.value;
    }
  } finally {
    if (!hasEnded) await events.return(undefined);
  }
}

async function collect(events: AsyncIterable<JobEvent>): Promise<Answer> {
  const texts: string[] = [];
  for await (const event of events) {
    if (event.type === 'text-delta') texts.push(event.text);
    if (event.type === 'job-end') return answerOf(event, texts);
  }
  throw new Error('a job ended without an end');
}

function answerOf(end: Extract<JobEvent, { type: 'job-end' }>, texts: readonly string[]): Answer {
  if (end.outcome === 'ok') return { text: end.text ?? texts.join(''), end };
  throw fromWire(end.failure);
}

/** The stream begins when the job is admitted. Before that a failure is an ordinary error body, after it an event. */
async function stream(
  events: AsyncIterable<JobEvent>,
  res: Reply,
  bodyOf: BodyOf,
  signal: AbortSignal,
  clock: Clock,
): Promise<void> {
  using out = new EventStream(res, clock);
  try {
    const answer = await collect(forwarded(events, out, signal));
    await out.send('done', bodyOf(answer, res.locals.requestId), signal);
  } catch (error) {
    if (isCancelled(error) || !res.headersSent) throw error;
    const failure = toRelayError(error);
    res.locals.error = publicCodeOf(failure);
    await out.send('error', errorBodyOf(failure, res.locals.requestId), signal);
    out.end();
    if (error !== failure) throw error; // a defect of ours: it belongs in the log, too
  }
  out.end();
}

async function* forwarded(events: AsyncIterable<JobEvent>, out: EventStream, signal: AbortSignal) {
  for await (const event of events) {
    out.begin();
    if (event.type === 'job-queued') await out.send('queued', { position: event.position }, signal);
    if (event.type === 'job-start') await out.send('started', { queue_ms: event.queueMs }, signal);
    if (event.type === 'text-delta') await out.send('delta', { text: event.text }, signal);
    yield event;
  }
}

/** null where the CLI reports nothing. */
export function usageOf({ inputTokens, outputTokens, costUsd }: Usage): UsageBody | null {
  if (inputTokens === null && outputTokens === null && costUsd === null) return null;
  return { input_tokens: inputTokens, output_tokens: outputTokens, ...(costUsd !== null && { cost_usd: costUsd }) };
}
