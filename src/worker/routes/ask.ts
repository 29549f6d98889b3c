import { type AskResult, askRequest } from '../../shared/api/ask.js';
import type { Clock } from '../../shared/clock.js';
import type { DoorSettings } from '../../shared/ipc/protocol.js';
import { readBody } from '../http/body.js';
import type { AsyncHandler } from '../http/exchange.js';
import { sendJson } from '../http/send-json.js';
import type { Primary } from '../primary.js';
import { runJob, usageOf } from './job.js';

export function postAsk(primary: Primary, { bodyLimitBytes }: DoorSettings, clock: Clock): AsyncHandler {
  return async (req, res) => {
    const { prompt, system, model } = await readBody(req, res, bodyLimitBytes, askRequest);
    const order = { operation: 'ask', conversationId: null, text: prompt, system, model } as const;
    const { text, end } = await runJob(primary, res, order, clock);
    const body: AskResult = {
      success: true,
      response: text,
      model: end.model,
      usage: usageOf(end.usage),
      queue_ms: end.queueMs,
      duration_ms: end.executionMs,
      request_id: res.locals.requestId,
    };
    sendJson(res, body);
  };
}
