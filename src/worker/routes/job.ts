import type { Request } from 'express';
import type { UsageBody } from '../../shared/api/ask.js';
import { isCancelled, toRelayError } from '../../shared/errors.js';
import type { JobEvent, Usage } from '../../shared/job.js';
import { EventStream, eventText } from '../http/event-stream.js';
import type { Reply } from '../http/exchange.js';
import { errorBodyOf, publicCodeOf, sendBody } from '../http/send-json.js';
import type { JobOrder } from '../jobs/job-order.js';
import { type Answer, type JobParts, type RunningJob, runJob } from '../jobs/running-job.js';

/** Makes the body of a plain response, which is also the last event of a streamed one. */
export type BodyOf = (answer: Answer, requestId: string) => object;

export function wantsStream(req: Request, stream: boolean | undefined): boolean {
  return stream ?? req.accepts(['application/json', 'text/event-stream']) === 'text/event-stream';
}

/** Has the job run, and answers with its outcome. Throws what can still be sent as an error body. */
export async function answerWithJob(parts: Omit<JobParts, 'bodies'>, res: Reply, order: JobOrder, bodyOf: BodyOf) {
  const ofAnswer = (answer: Answer) => bodyOf(answer, res.locals.requestId);
  await runJob(parts, res, order, async (job) => {
    if (order.stream) await stream(job, ofAnswer, new EventStream(res, parts.clock), res);
    else await answer(job, ofAnswer, res);
  });
}

async function answer(job: RunningJob, bodyOf: (answer: Answer) => object, res: Reply): Promise<void> {
  const end = await job.collect();
  nameConversation(res, end.conversation?.id);
  const body = job.written(end, (answer) => JSON.stringify(bodyOf(answer)));
  await sendBody(res, body, job.signal);
}

/** A front that can't read the body sends the next turn to where the process of the conversation is. */
function nameConversation(res: Reply, id: string | undefined): void {
  if (id !== undefined) res.set('X-Conversation-Id', id);
}

/** The stream begins when the job is admitted. Before that a failure is an ordinary error body, after it an event. */
async function stream(job: RunningJob, bodyOf: (answer: Answer) => object, out: EventStream, res: Reply) {
  using _pings = out;
  const { signal } = job;
  try {
    const end = await job.collect(async (event) => {
      if (event.type === 'job-admitted') nameConversation(res, event.conversationId);
      await forward(event, out, signal);
    });
    await out.writeLast(
      job.written(end, (answer) => eventText('done', bodyOf(answer))),
      signal,
    );
  } catch (error) {
    if (isCancelled(error) || !res.headersSent) throw error;
    const failure = toRelayError(error);
    res.locals.error = publicCodeOf(failure);
    await out.writeFailure(eventText('error', errorBodyOf(failure, res.locals.requestId)), failure, signal);
    out.end();
    if (error !== failure) throw error; // a defect of ours: it belongs in the log, too
  }
  out.end();
}

/** A job that was held back is not admitted: it gets an ordinary error body. */
async function forward(event: JobEvent, out: EventStream, signal: AbortSignal): Promise<void> {
  if (event.type === 'job-admitted') out.begin();
  if (event.type === 'job-queued') await out.send('queued', { position: event.position, reason: event.reason }, signal);
  if (event.type === 'job-start') await out.send('started', { queue_ms: event.queueMs }, signal);
  if (event.type === 'text-delta') await out.send('delta', { text: event.text }, signal);
}

/** null where the CLI reports nothing. */
export function usageOf({ inputTokens, outputTokens, costUsd }: Usage): UsageBody | null {
  if (inputTokens === null && outputTokens === null && costUsd === null) return null;
  return { input_tokens: inputTokens, output_tokens: outputTokens, ...(costUsd !== null && { cost_usd: costUsd }) };
}

/** For an answer that has a value, the value. */
export function structuredOf({ value }: Answer): { structured?: Record<string, unknown> } {
  return value === undefined ? {} : { structured: value as unknown as Record<string, unknown> };
}

/** The parts of an order that POST /ask and POST /chat have in common. */
export function orderedSchema(schema: Record<string, unknown> | undefined): JobOrder['schema'] {
  return schema && { path: 'schema', value: schema };
}
