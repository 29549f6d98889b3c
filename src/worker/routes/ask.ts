import { type AskResult, askRequest } from '../../shared/api/ask.js';
import type { Clock } from '../../shared/clock.js';
import { Cancelled, RelayError } from '../../shared/errors.js';
import type { DoorSettings } from '../../shared/ipc/protocol.js';
import type { JobDone, JobEvent, JobRequest } from '../../shared/job.js';
import { readBody } from '../http/body.js';
import { untilGone } from '../http/disconnect.js';
import type { AsyncHandler, Exchange, Reply } from '../http/exchange.js';
import { sendJson } from '../http/send-json.js';
import { JobReport } from '../job-report.js';
import type { Primary } from '../primary.js';

export function postAsk(primary: Primary, { bodyLimitBytes }: DoorSettings, clock: Clock): AsyncHandler {
  return async (req, res) => {
    const body = await readBody(req, res, bodyLimitBytes, askRequest);
    using client = untilGone(res);
    const report = new JobReport(clock);
    res.locals.job = report;
    const { text, end } = await collect(primary.call('ask', jobOf(body, res.locals), client.signal), report, res);
    sendJson(res, askResultOf(text, end, res.locals.requestId));
  };
}

function jobOf(
  body: { prompt: string; system?: string | undefined; model?: string | undefined },
  exchange: Exchange,
): JobRequest {
  const { requestId, client } = exchange;
  return {
    operation: 'ask',
    requestId,
    client,
    text: body.prompt,
    system: body.system ?? null,
    model: body.model ?? null,
  };
}

/**
 * The whole answer of a job, once it has ended well; throws its failure otherwise. After its end its processes are still
 * being ended: nobody waits for that, and leaving a `for await` would cancel it.
 */
async function collect(
  events: AsyncGenerator<JobEvent>,
  report: JobReport,
  res: Reply,
): Promise<{ text: string; end: JobDone }> {
  const texts: string[] = [];
  try {
    for (let step = await events.next(); step.done !== true; step = await events.next()) {
      const event = step.value;
      report.follow(event);
      if (event.type === 'text-delta') texts.push(event.text);
      if (event.type !== 'job-end') continue;
      events.next().catch(() => {});
      if (event.outcome === 'ok') return { text: event.text ?? texts.join(''), end: event };
      throw new RelayError(event.failure.code, event.failure.message, event.failure);
    }
  } catch (error) {
    if (!report.hasEnded && !(error instanceof Cancelled)) res.locals.job = null; // refused: there never was a job
    throw error;
  }
  throw new Error('a job ended without an end');
}

function askResultOf(text: string, end: JobDone, requestId: string): AskResult {
  const { model, usage, queueMs, executionMs } = end;
  return {
    success: true,
    response: text,
    model,
    usage: usageOf(usage),
    queue_ms: queueMs,
    duration_ms: executionMs,
    request_id: requestId,
  };
}

function usageOf({ inputTokens, outputTokens, costUsd }: JobDone['usage']): AskResult['usage'] {
  if (inputTokens === null && outputTokens === null && costUsd === null) return null;
  return { input_tokens: inputTokens, output_tokens: outputTokens, ...(costUsd !== null && { cost_usd: costUsd }) };
}
