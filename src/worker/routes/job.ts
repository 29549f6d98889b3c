import type { Request } from 'express';
import type { UsageBody } from '../../shared/api/ask.js';
import type { Clock } from '../../shared/clock.js';
import { fromWire, isCancelled, toRelayError } from '../../shared/errors.js';
import type { JobDone, JobEvent, JobRequest, Operation, Usage } from '../../shared/job.js';
import { AnswerBody } from '../answer/answer-body.js';
import { AnswerText } from '../answer/answer-text.js';
import type { SpillFolder } from '../answer/spill-folder.js';
import type { BodyMemory } from '../http/body-memory.js';
import { untilGone } from '../http/disconnect.js';
import { EventStream } from '../http/event-stream.js';
import type { Primary, Reply } from '../http/exchange.js';
import { errorBodyOf, publicCodeOf, sendBody } from '../http/send-json.js';
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

/** What the routes of jobs work with. */
export interface JobParts {
  readonly primary: Primary;
  readonly bodies: BodyMemory;
  readonly spill: Pick<SpillFolder, 'file'>;
  readonly clock: Clock;
}

/** Has the primary run the job for as long as the client stays, and answers with its outcome. Throws what can still be sent as an error body. */
export async function answerWithJob(parts: Omit<JobParts, 'bodies'>, res: Reply, order: JobOrder, bodyOf: BodyOf) {
  const { primary, spill, clock } = parts;
  using client = untilGone(res);
  await using text = new AnswerText(spill);
  const report = new JobReport(clock);
  const events = reported(primary.stream('run', requestOf(order, res), client.signal), report);
  res.locals.job = report;
  const body = (end: JobDone) => new AnswerBody((mark) => bodyOf({ text: mark, end }, res.locals.requestId), text);
  try {
    if (order.stream) await stream(events, text, body, new EventStream(res, clock), res, client.signal);
    else await sendBody(res, body(await collect(events, text)), client.signal);
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

/** Gathers the text of the answer, and returns its end. */
async function collect(events: AsyncIterable<JobEvent>, text: AnswerText): Promise<JobDone> {
  for await (const event of events) {
    if (event.type === 'text-delta') await text.add(event.text);
    if (event.type !== 'job-end') continue;
    if (event.outcome !== 'ok') throw fromWire(event.failure);
    if (event.text !== null) await text.replace(event.text);
    return event;
  }
  throw new Error('a job ended without an end');
}

/** The stream begins when the job is admitted. Before that a failure is an ordinary error body, after it an event. */
async function stream(
  events: AsyncIterable<JobEvent>,
  text: AnswerText,
  bodyOf: (end: JobDone) => AnswerBody,
  out: EventStream,
  res: Reply,
  signal: AbortSignal,
): Promise<void> {
  using _pings = out;
  try {
    const end = await collect(forwarded(events, out, signal), text);
    await out.sendLast('done', bodyOf(end), signal);
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
    if (event.type !== 'job-end') out.begin(); // a job that was held back gets an ordinary error body
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
