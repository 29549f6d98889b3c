import type { Request } from 'express';
import type { JobRequest } from '../../../shared/job.js';
import { readBody } from '../../http/body.js';
import type { AsyncHandler, Reply } from '../../http/exchange.js';
import { sendJson } from '../../http/send-json.js';
import { requestOf } from '../../jobs/job-order.js';
import type { JobParts } from '../../jobs/running-job.js';
import { type Asked, answerThroughDoor, orderOf } from '../door.js';
import { tellIgnored } from '../ignored.js';
import { subClientByBody } from '../sub-clients.js';
import { messageForm } from './messages-answer.js';
import { askedByMessages } from './messages-request.js';
import { messagesRequest } from './messages-schema.js';

export function postMessages(parts: JobParts): AsyncHandler {
  return async (req, res) => answerThroughDoor(parts, res, await readAsked(req, res, parts), messageForm);
}

/** Counts what the model would be told. That is no job, and starts nothing. */
export function postCountTokens(parts: JobParts): AsyncHandler {
  return async (req, res) => {
    const asked = await readAsked(req, res, parts);
    const told = await requestOf(orderOf(asked), parts.primary, res);
    const { tokens } = await parts.primary.call('countTokens', { texts: textsOf(told) });
    tellIgnored(res, asked.ignored);
    sendJson(res, { input_tokens: tokens + tokensOfImages(told) });
  };
}

async function readAsked(req: Request, res: Reply, { bodies }: JobParts): Promise<Asked> {
  const body = await readBody(req, res, bodies, messagesRequest);
  const usesUser = subClientByBody(req, res, body.metadata?.user_id ?? undefined);
  return askedByMessages(usesUser ? { ...body, metadata: undefined } : body);
}

function textsOf({ system, history, text, schema }: JobRequest): string[] {
  return [system ?? '', ...history.map((message) => message.text), text, schema ?? ''];
}

/** About what Anthropic's models take for an image of the greatest size that they don't make smaller. */
const tokensOfImage = 1600;

function tokensOfImages({ history, images }: JobRequest): number {
  const count = history.reduce((sum, message) => sum + (message.images?.length ?? 0), images.length);
  return count * tokensOfImage;
}
