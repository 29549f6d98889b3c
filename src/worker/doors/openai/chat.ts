import { readBody } from '../../http/body.js';
import type { AsyncHandler } from '../../http/exchange.js';
import { answerThroughDoor } from '../door.js';
import type { DoorRouteParts } from '../routes.js';
import { subClientByBody } from '../sub-clients.js';
import { chatCompletionForm } from './chat-answer.js';
import { askedByChat, chatCompletionRequest } from './chat-request.js';

export function postChatCompletions(parts: DoorRouteParts): AsyncHandler {
  return async (req, res) => {
    const body = await readBody(req, res, parts.bodies, chatCompletionRequest);
    await subClientByBody(req, res, body.user ?? undefined, parts.take);
    const asked = askedByChat(body);
    const nowSeconds = Math.floor(parts.clock.now() / 1000);
    await answerThroughDoor(parts, res, asked, chatCompletionForm(nowSeconds, asked.wantsUsage));
  };
}
