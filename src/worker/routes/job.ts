import type { UsageBody } from '../../shared/api/ask.js';
import type { Clock } from '../../shared/clock.js';
import { Cancelled, RelayError } from '../../shared/errors.js';
import type { JobDone, JobEvent, Operation, Usage } from '../../shared/job.js';
import { untilGone } from '../http/disconnect.js';
import type { Reply } from '../http/exchange.js';
import { JobReport } from '../job-report.js';
import type { Primary } from '../primary.js';

/** What a body asks for. */
export interface Order {
  readonly operation: Operation;
  readonly conversationId: string | null;
  readonly text: string;
  readonly system: string | undefined;
  readonly model: string | undefined;
}

export interface Answer {
  readonly text: string;
  readonly end: JobDone;
}

/** Has the primary run the job, for as long as the client stays. Throws the job's failure. */
export async function runJob(primary: Primary, res: Reply, order: Order, clock: Clock): Promise<Answer> {
  using client = untilGone(res);
  const report = new JobReport(clock);
  const { requestId, client: name, owner } = res.locals;
  const { system = null, model = null } = order;
  const events = primary.call('run', { ...order, system, model, requestId, client: name, owner }, client.signal);
  res.locals.job = report;
  try {
    return await collect(events, report);
  } catch (error) {
    if (!report.hasEnded && !(error instanceof Cancelled)) res.locals.job = null; // refused: there never was a job
    throw error;
  }
}

async function collect(events: AsyncIterable<JobEvent>, report: JobReport): Promise<Answer> {
  const texts: string[] = [];
  for await (const event of events) {
    report.follow(event);
    if (event.type === 'text-delta') texts.push(event.text);
    if (event.type !== 'job-end') continue;
    if (event.outcome === 'ok') return { text: event.text ?? texts.join(''), end: event };
    throw new RelayError(event.failure.code, event.failure.message, event.failure);
  }
  throw new Error('a job ended without an end');
}

/** null where the CLI reports nothing. */
export function usageOf({ inputTokens, outputTokens, costUsd }: Usage): UsageBody | null {
  if (inputTokens === null && outputTokens === null && costUsd === null) return null;
  return { input_tokens: inputTokens, output_tokens: outputTokens, ...(costUsd !== null && { cost_usd: costUsd }) };
}
