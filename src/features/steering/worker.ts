import type { Request } from 'express';
import type { ClientText } from '../../shared/client.js';
import { RelayError } from '../../shared/errors.js';
import { authenticate, needScope } from '../../worker/access/authenticate.js';
import type { WorkerCore, WorkerPart } from '../../worker/features/feature.js';
import { readBody } from '../../worker/http/body.js';
import type { AsyncHandler, Reply } from '../../worker/http/exchange.js';
import { onceFor, sendRecorded } from '../../worker/http/responses.js';
import { type RequestedJob, requestOf } from '../../worker/jobs/job-request.js';
import { jobCalls } from '../background/answers.js';
import {
  type calls,
  type Fate,
  type NextTurn,
  type RepeatedMessage,
  type Steered,
  type SteerOrder,
  steerRequest,
} from './shared.js';

type SteeringCore = WorkerCore<typeof calls>;
/** Accepts the message as the next turn. Resolves with the id of its job. */
type Accept = () => Promise<string>;

export function createPart(core: SteeringCore): WorkerPart {
  const { authority, guards } = core;
  const { needsService, namesUser, capped, once } = guards;
  const chatSteps = [authenticate(authority, 'chat'), needsService, capped, once];
  const jobSteps = [guards.mayCall, needsService, namesUser, capped, once];
  return {
    routes: [
      { route: '/chat/{conversation_id}/steer', post: [...chatSteps, postSteer(core, 'conversation')] },
      { route: '/jobs/{job_id}/steer', post: [...jobSteps, postSteer(core, 'job')] },
    ],
  };
}

function postSteer(core: SteeringCore, of: 'conversation' | 'job'): AsyncHandler {
  return async (req, res) => {
    const { text = null, interrupt = false } = await readBody(req, res, core.jobs.bodies, steerRequest);
    await onceFor(res, 'background', async () => {
      const { client } = res.locals;
      const order = { text, interrupt, key: req.get('idempotency-key') ?? null };
      const found = await core.primary.call('findTurn', { of, id: idOf(req), client, ...order });
      if ('repeated' in found) return sendSteered(res, repeatedFate(found));
      const { jobId, operation, next, nextId } = found;
      needScope(res, operation);
      const accept = text === null || next === null ? null : await nextTurn(core, res, text, next, nextId);
      if (text !== null && interrupt && accept === null) throw noNextTurn();
      await sendSteered(res, await steer(core, { jobId, client, nextId }, order, accept));
    });
  };
}

type MessageFate = Omit<Steered, 'success' | 'request_id'>;

async function sendSteered(res: Reply, fate: MessageFate): Promise<void> {
  const { requestId } = res.locals;
  await sendRecorded(res, JSON.stringify({ success: true, ...fate, request_id: requestId } satisfies Steered));
}

/** Returns the fate of a message whose first request got no answer. It is not known whether that one has ended the answer. */
function repeatedFate({ repeated }: RepeatedMessage): MessageFate {
  return { reached: repeated === null ? 'turn' : 'next_turn', interrupted: false, job_id: repeated };
}

function idOf({ params }: Request): string {
  return String(params.conversation_id ?? params.job_id);
}

/** Sends the message to the answer. If the answer does not take it, it becomes the next turn before the answer ends. */
async function steer(
  { primary }: SteeringCore,
  job: { readonly jobId: string; readonly client: ClientText; readonly nextId: string | null },
  order: SteerOrder,
  accept: Accept | null,
): Promise<MessageFate> {
  const fates = primary.stream('holdTurn', { ...job, ...order });
  try {
    const { isAdded, isInterrupted } = (await fates.next()).value as Fate;
    if (isAdded) return { reached: 'turn', interrupted: false, job_id: null };
    if (order.text !== null && accept === null) throw noNextTurn();
    const accepted = accept === null ? null : await accept();
    const endsNow = order.interrupt && !isInterrupted;
    const isCut = isInterrupted || (endsNow && (await primary.call('interruptTurn', job)).isInterrupted);
    return { reached: accepted === null ? null : 'next_turn', interrupted: isCut, job_id: accepted };
  } finally {
    await fates.return(undefined);
  }
}

/** Prepares the next turn. Rejects if it cannot be one. */
async function nextTurn(
  { jobs }: SteeringCore,
  res: Reply,
  text: string,
  next: NextTurn,
  nextId: string | null,
): Promise<Accept> {
  const { isFollowed, refusesFallback, beginning } = next;
  const added = jobs.features.admitJob({ req: res.req, fields: {}, isBackground: true });
  const request = await requestOf(requestedTurn(text, next), jobs, res);
  const settings = {
    ...(refusesFallback && { fallbacks: [] }),
    ...(beginning !== null && { mayBegin: true as const }),
  };
  const job = { ...request, ...settings };
  const followed = isFollowed ? ({ isFollowed } as const) : {};
  const form = { route: '/chat', model: null, ...followed, isStructured: next.schema !== null, ...added } as const;
  return async () =>
    (await jobCalls(jobs.primary).call('accept', { job, form, ...(nextId !== null && { id: nextId }) })).id;
}

function noNextTurn(): RelayError {
  return new RelayError(
    'turn_ended',
    'the answer takes no message, and no conversation is stored that it could continue',
  );
}

function requestedTurn(text: string, next: NextTurn): RequestedJob {
  const { conversationId, model, schema, effort, thinking, beginning } = next;
  const { system = null, versionOf = null } = beginning ?? {};
  const value = schema === null ? null : (JSON.parse(schema) as Readonly<Record<string, unknown>>);
  return {
    ...{ operation: 'chat', conversationId, text, isEffortNeeded: false, stream: true },
    ...(system !== null && { system }),
    ...(versionOf !== null && { versionOf }),
    ...(model !== null && { model }),
    ...(value !== null && { schema: { path: 'schema', value } }),
    ...(effort !== null && { effort }),
    ...(thinking !== null && { thinking }),
  };
}
