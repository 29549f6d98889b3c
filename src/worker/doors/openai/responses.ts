import { readBody } from '../../http/body.js';
import type { AsyncHandler } from '../../http/exchange.js';
import { answerThroughDoor } from '../door.js';
import type { DoorRouteParts } from '../routes.js';
import { subClientByBody } from '../sub-clients.js';
import { responseForm } from './responses-answer.js';
import { askedByResponses } from './responses-request.js';
import { responsesRequest } from './responses-schema.js';

export function postResponses(parts: DoorRouteParts): AsyncHandler {
  return async (req, res) => {
    const body = await readBody(req, res, parts.bodies, responsesRequest);
    const usesUser = await subClientByBody(req, res, body.user ?? undefined, parts.take);
    const asked = askedByResponses(usesUser ? { ...body, user: undefined } : body);
    await answerThroughDoor(parts, res, asked, responseForm(Math.floor(parts.clock.now() / 1000)));
  };
}
