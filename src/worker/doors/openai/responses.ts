import type { AcceptedView } from '../../../shared/background.js';
import { invalid } from '../../../shared/errors.js';
import { acceptJob, prefersAsync } from '../../background/accept.js';
import { readBody } from '../../http/body.js';
import type { AsyncHandler, Primary, Reply } from '../../http/exchange.js';
import type { JobParts } from '../../jobs/running-job.js';
import { type Asked, answerThroughDoor, orderOf } from '../door.js';
import { inWordsOf } from '../failures.js';
import { noteIgnoredTools, tellIgnored } from '../ignored.js';
import { subClientByBody } from '../sub-clients.js';
import { openResponse, responseForm } from './responses-answer.js';
import { askedByResponses } from './responses-request.js';
import { responsesRequest } from './responses-schema.js';

export function postResponses(parts: JobParts): AsyncHandler {
  return async (req, res) => {
    const body = await readBody(req, res, parts.bodies, responsesRequest);
    const usesUser = subClientByBody(req, res, body.user ?? undefined);
    const asked = askedByResponses(usesUser ? { ...body, user: undefined } : body);
    const form = responseForm(Math.floor(parts.clock.now() / 1000));
    const isLeft = body.background === true || prefersAsync(req);
    if (isLeft && body.stream === true)
      throw invalid('stream', 'is not possible with background: follow the job instead');
    if (isLeft) return acceptResponse(parts.primary, res, asked);
    await answerThroughDoor(parts, res, asked, form);
  };
}

/** What an SDK of OpenAI expects is there too. */
async function acceptResponse(primary: Primary, res: Reply, asked: Asked): Promise<void> {
  const { model, tool, ignored } = asked;
  tellIgnored(res, ignored);
  noteIgnoredTools(primary, res, ignored);
  const form = { route: '/v1/responses', model, tool } as const;
  const told = ({ id, createdAt, model: target }: AcceptedView) =>
    openResponse({ requestId: id, model: target ?? model, tool }, Math.floor(createdAt / 1000), 'queued');
  await acceptJob(primary, res, orderOf(asked), form, told).catch((error: unknown) => {
    throw inWordsOf(asked, error);
  });
}
