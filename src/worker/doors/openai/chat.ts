import { readBody } from '../../http/body.js';
import type { AsyncHandler } from '../../http/exchange.js';
import { answerThroughDoor } from '../door.js';
import type { DoorRouteParts } from '../routes.js';
import { subClientByBody } from '../sub-clients.js';
import { chatCompletionForm } from './chat-answer.js';
import { askedByChat } from './chat-request.js';
import { chatCompletionRequest } from './chat-schema.js';

export function postChatCompletions(parts: DoorRouteParts): AsyncHandler {
  return async (req, res) => {
    const body = await readBody(req, res, parts.bodies, chatCompletionRequest);
    const usesUser = await subClientByBody(req, res, body.user ?? undefined, parts.take);
    const asked = askedByChat(usesUser ? { ...body, user: undefined } : body);
    const nowSeconds = Math.floor(parts.clock.now() / 1000);
    const form = chatCompletionForm(nowSeconds, asked.wantsUsage, asked.isLegacyCall);
    await answerThroughDoor(parts, res, asked, form);
  };
}
