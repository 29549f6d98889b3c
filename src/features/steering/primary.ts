import type { CreatePrimaryPart, PrimaryCore } from '../../primary/features/feature.js';
import { RelayError } from '../../shared/errors.js';
import type { Handlers, RequestOf } from '../../shared/ipc/peer.js';
import { MessageLine } from './message-line.js';
import type { calls, NextTurn } from './shared.js';
import { addMessage, checkInterrupt, interruptJob } from './steered-job.js';

type TurnPlace = RequestOf<typeof calls, 'findTurn'>;
type SteeringParts = Pick<PrimaryCore, 'clientJobs' | 'conversations' | 'store'>;
type OpenJob = NonNullable<Awaited<ReturnType<typeof openJobAt>>>;

/** Creates the part that finds the turn of a message, and ends answers early. */
export const createSteering: CreatePrimaryPart = (parts) => steeringPart(parts);

export function steeringPart(parts: SteeringParts) {
  const lines = new WeakMap<OpenJob, MessageLine>();
  const handlers: Handlers<typeof calls> = {
    findTurn: async (place) => {
      const job = await openJobAt(place, parts);
      if (job === null) throw turnEnded();
      if (place.interrupt) checkInterrupt(job);
      return { jobId: parts.clientJobs.idOf(job), operation: job.request.operation, next: nextTurnOf(job, parts) };
    },
    holdTurn: async function* ({ jobId, client, ...order }, signal) {
      const job = parts.clientJobs.jobHere(jobId, client);
      if (job === null) return yield { isAdded: false, isInterrupted: false };
      const line = lines.get(job) ?? newLine(job);
      lines.set(job, line);
      yield* line.hold(order, signal);
    },
    interruptTurn: ({ jobId, client }) => {
      const job = parts.clientJobs.jobHere(jobId, client);
      return { isInterrupted: job !== null && interruptJob(job) };
    },
  };
  return { handlers };
}

function newLine(job: OpenJob): MessageLine {
  return new MessageLine({
    get signal() {
      return job.signal; // a background job has another one after each attempt
    },
    interrupt: () => interruptJob(job),
    addMessage: (text) => addMessage(job, text),
  });
}

/** Resolves with the open job; null if it has ended. Rejects with `not_found`. */
async function openJobAt({ of, id, client }: TurnPlace, { clientJobs, conversations }: SteeringParts) {
  if (of === 'job') return clientJobs.openJob(id, client);
  const job = clientJobs.openTurnOf(id, client);
  if (job === null) await conversations.snapshot(id, client);
  return job;
}

/**
 * Returns the settings of the next turn, which are those of this one; null if it cannot have one. Other hosts do not know
 * a conversation whose first turn has not ended.
 */
function nextTurnOf(job: OpenJob, { store }: SteeringParts): NextTurn | null {
  const { request, conversationId, background } = job;
  const beginning = beginningOf(job);
  if (conversationId === null || (beginning !== null && store.jobs.shared !== null)) return null;
  const { model, fallbacks, schema, effort, thinking = null } = request;
  const models = model === null ? null : [model, ...(fallbacks ?? [])].join(',');
  const refusesFallback = fallbacks?.length === 0;
  const isFollowed = background === null || background.accepted.form.isFollowed === true;
  return { conversationId, model: models, refusesFallback, schema, effort, thinking, isFollowed, beginning };
}

/** Returns what the conversation begins with; null if its first turn has ended. */
function beginningOf(job: OpenJob): NextTurn['beginning'] {
  const { system, versionOf = null, mayBegin = false } = job.request;
  const turn = job.background === null || job.hasStarted ? job.turn : null;
  return (turn?.isFirst ?? mayBegin) ? { system: turn?.system ?? system, versionOf } : null;
}

function turnEnded(): RelayError {
  return new RelayError('turn_ended', 'no answer is being written: send the message as the next one');
}
