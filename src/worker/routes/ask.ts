import { type AskResult, askRequest } from '../../shared/api/ask.js';
import { readBody } from '../http/body.js';
import type { AsyncHandler } from '../http/exchange.js';
import { type Answer, answerWithJob, type JobParts, usageOf, wantsStream } from './job.js';

export function postAsk(parts: JobParts): AsyncHandler {
  return async (req, res) => {
    const { prompt: text, system, model, stream } = await readBody(req, res, parts.bodies, askRequest);
    const asked = { operation: 'ask', conversationId: null, text, system, model } as const;
    await answerWithJob(parts, res, { ...asked, stream: wantsStream(req, stream) }, askResultOf);
  };
}

function askResultOf({ text, end }: Answer, requestId: string): AskResult {
  return {
    success: true,
    response: text,
    model: end.model,
    usage: usageOf(end.usage),
    queue_ms: end.queueMs,
    duration_ms: end.executionMs,
    request_id: requestId,
  };
}
