import type { Request } from 'express';
import { RelayError } from '../../shared/errors.js';
import type { AnswerOf } from '../../shared/ipc/peer.js';
import { authenticate } from '../../worker/access/authenticate.js';
import type { WorkerCore, WorkerPart } from '../../worker/features/feature.js';
import { readBody } from '../../worker/http/body.js';
import type { AsyncHandler, Reply } from '../../worker/http/exchange.js';
import { onceFor, sendRecorded } from '../../worker/http/responses.js';
import { type RequestedJob, requestOf } from '../../worker/jobs/job-request.js';
import { type calls, type Steered, steerRequest } from './shared.js';

type SteeringCore = WorkerCore<typeof calls>;
type NextTurn = NonNullable<AnswerOf<typeof calls, 'findTurn'>['next']>;

export function createPart(core: SteeringCore): WorkerPart {
  const { authority, guards } = core;
  const { needsService, namesUser, capped, once } = guards;
  const chatSteps = [authenticate(authority, 'chat'), needsService, capped, once];
  const jobSteps = [guards.mayAsk, needsService, namesUser, capped, once];
  return {
    routes: [
      { route: '/chat/{conversation_id}/steer', post: [...chatSteps, postSteer(core, 'conversation')] },
      { route: '/jobs/{job_id}/steer', post: [...jobSteps, postSteer(core, 'job')] },
    ],
  };
}

function postSteer(core: SteeringCore, of: 'conversation' | 'job'): AsyncHandler {
  return async (req, res) => {
    const { text, interrupt = false } = await readBody(req, res, core.jobs.bodies, steerRequest);
    await onceFor(res, 'background', async () => {
      const { client, requestId } = res.locals;
      const { jobId, next } = await core.primary.call('findTurn', { of, id: idOf(req), client });
      const isAdded =
        text !== undefined && !interrupt && (await core.primary.call('addToTurn', { jobId, client, text })).isAdded;
      const accepted = text === undefined || isAdded ? null : await acceptNext(core, res, text, next);
      const { isInterrupted } = interrupt
        ? await core.primary.call('interruptTurn', { jobId, client })
        : { isInterrupted: false };
      const next_turn = accepted === null ? null : 'next_turn';
      const fate = { reached: isAdded ? 'turn' : next_turn, interrupted: isInterrupted, job_id: accepted } as const;
      await sendRecorded(res, JSON.stringify({ success: true, ...fate, request_id: requestId } satisfies Steered));
    });
  };
}

function idOf({ params }: Request): string {
  return String(params.conversation_id ?? params.job_id);
}

/** Accepts the message as the next turn of the conversation. Resolves with the id of its job. */
async function acceptNext({ jobs }: SteeringCore, res: Reply, text: string, next: NextTurn | null): Promise<string> {
  if (next === null) throw new RelayError('turn_ended', 'the answer takes no message, and no conversation is stored');
  const requested = requestedTurn(text, next);
  const form = { route: '/chat', model: null, isFollowed: true, isStructured: next.schema !== null } as const;
  const added = jobs.features.admitJob({ req: res.req, fields: {}, isBackground: true });
  const job = await requestOf(requested, jobs, res);
  return (await jobs.primary.call('accept', { job, form: { ...form, ...added } })).id;
}

function requestedTurn(text: string, { conversationId, model, schema, effort, thinking }: NextTurn): RequestedJob {
  const value = schema === null ? null : (JSON.parse(schema) as Readonly<Record<string, unknown>>);
  return {
    ...{ operation: 'chat', conversationId, text, isEffortNeeded: false, stream: true },
    ...(model !== null && { model }),
    ...(value !== null && { schema: { path: 'schema', value } }),
    ...(effort !== null && { effort }),
    ...(thinking !== null && { thinking }),
  };
}
