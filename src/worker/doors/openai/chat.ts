import { readBody } from '../../http/body.js';
import type { AsyncHandler } from '../../http/exchange.js';
import type { JobParts } from '../../jobs/running-job.js';
import { answerThroughDoor } from '../door.js';
import { subClientByBody } from '../sub-clients.js';
import { chatCompletionForm } from './chat-answer.js';
import { askedByChat } from './chat-request.js';
import { chatCompletionRequest } from './chat-schema.js';

export function postChatCompletions(parts: JobParts): AsyncHandler {
  return async (req, res) => {
    const body = await readBody(req, res, parts.bodies, chatCompletionRequest);
    const usesUser = subClientByBody(req, res, body.user ?? undefined);
    const asked = askedByChat(usesUser ? { ...body, user: undefined } : body);
    const nowSeconds = Math.floor(parts.clock.now() / 1000);
    const form = chatCompletionForm(nowSeconds, asked.wantsUsage, asked.isLegacyCall);
    await answerThroughDoor(parts, res, asked, form);
  };
}
