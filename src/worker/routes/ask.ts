import { type AskResult, askRequest } from '../../shared/api/ask.js';
import type { Clock } from '../../shared/clock.js';
import { readBody } from '../http/body.js';
import type { BodyMemory } from '../http/body-memory.js';
import type { AsyncHandler, Primary } from '../http/exchange.js';
import { type Answer, answerWithJob, usageOf, wantsStream } from './job.js';

export function postAsk(primary: Primary, bodies: BodyMemory, clock: Clock): AsyncHandler {
  return async (req, res) => {
    const { prompt: text, system, model, stream } = await readBody(req, res, bodies, askRequest);
    const asked = { operation: 'ask', conversationId: null, text, system, model } as const;
    await answerWithJob(primary, res, { ...asked, stream: wantsStream(req, stream) }, askResultOf, clock);
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
