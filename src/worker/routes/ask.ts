import { type AskResult, askRequest, leadingImages } from '../../shared/api/ask.js';
import { acceptJob, prefersAsync } from '../background/accept.js';
import { readBody } from '../http/body.js';
import type { AsyncHandler } from '../http/exchange.js';
import type { Answer, JobParts } from '../jobs/running-job.js';
import { answerWithJob, orderedSchema, structuredOf, usageOf, wantsStream } from './job.js';

export function postAsk(parts: JobParts): AsyncHandler {
  return async (req, res) => {
    const body = await readBody(req, res, parts.bodies, askRequest);
    const { prompt: text, system, model, effort } = body;
    const beside = { images: leadingImages(body.images), schema: orderedSchema(body.schema), effort };
    const stream = wantsStream(req, body.stream);
    const order = { operation: 'ask', text, system, model, ...beside, isEffortNeeded: true, stream } as const;
    if (prefersAsync(req)) return acceptJob(parts.primary, res, order, { route: '/ask', model: null, tool: null });
    await answerWithJob(parts, res, order, askResultOf);
  };
}

export function askResultOf(answer: Answer, requestId: string): AskResult {
  const { text, end } = answer;
  return {
    success: true,
    response: text,
    ...structuredOf(answer),
    model: end.model,
    usage: usageOf(end.usage),
    queue_ms: end.queueMs,
    duration_ms: end.executionMs,
    request_id: requestId,
  };
}
