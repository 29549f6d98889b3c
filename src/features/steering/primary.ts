import type { CreatePrimaryPart, PrimaryCore } from '../../primary/features/feature.js';
import { RelayError } from '../../shared/errors.js';
import type { Handlers } from '../../shared/ipc/peer.js';
import type { BackgroundJobs } from '../background/background-jobs.js';
import type { ClientJobs } from '../background/client-jobs.js';
import { jobsOf } from '../background/primary.js';
import { MessageLine } from './message-line.js';
import { nextTurnId, RepeatedMessages } from './repeated-messages.js';
import type { calls, NextTurn, TurnPlace } from './shared.js';
import { addMessage, checkInterrupt, interruptJob } from './steered-job.js';

type SteeringParts = Pick<PrimaryCore, 'checkStart' | 'conversations' | 'router' | 'store'> & {
  readonly background: Pick<BackgroundJobs, 'checkRoom'>;
  readonly clientJobs: Pick<ClientJobs, 'idOf' | 'jobHere' | 'openJob' | 'openTurnOf'>;
};
type OpenJob = NonNullable<Awaited<ReturnType<typeof openJobAt>>>;

/** Creates the part that finds the turn of a message, and ends answers early. */
export const createSteering: CreatePrimaryPart = (core) => steeringPart({ ...core, ...jobsOf(core) });

export function steeringPart(parts: SteeringParts) {
  const lines = new WeakMap<OpenJob, MessageLine>();
  const repeated = new RepeatedMessages(parts.clientJobs);
  const handlers: Handlers<typeof calls> = {
    findTurn: async ({ text, interrupt, key, ...place }) => {
      const nextId = nextTurnId(place, { text, interrupt, key });
      const known = nextId === null ? null : await repeated.findMessage(nextId, place.client);
      if (known !== null) return known;
      const job = await openJobAt(place, parts);
      if (job === null) throw turnEnded(place, parts);
      if (text !== null) checkMessage(job, parts);
      if (interrupt) checkInterrupt(job);
      const { operation } = job.request;
      return { jobId: parts.clientJobs.idOf(job), operation, next: nextTurnOf(job, parts), nextId };
    },
    holdTurn: async function* ({ jobId, client, nextId, ...order }, signal) {
      const job = parts.clientJobs.jobHere(jobId, client);
      if (job === null) return yield { isAdded: false, isInterrupted: false };
      const checkRoom = (sizes: readonly number[]) => parts.background.checkRoom(client, sizes);
      const line = lines.get(job) ?? newLine(job, checkRoom);
      lines.set(job, line);
      yield* line.hold(order, signal, () => nextId !== null && repeated.recordReached(nextId));
    },
    interruptTurn: ({ jobId, client }) => {
      const job = parts.clientJobs.jobHere(jobId, client);
      return { isInterrupted: job !== null && interruptJob(job) };
    },
  };
  return { handlers };
}

function newLine(job: OpenJob, checkRoom: (sizes: readonly number[]) => void): MessageLine {
  const steered = {
    get signal() {
      return job.signal; // a background job has another one after each attempt
    },
    interrupt: () => interruptJob(job),
    addMessage: (text: string) => addMessage(job, text),
  };
  return new MessageLine(steered, checkRoom);
}

/** A message costs as much as a question: throws if its client may not ask this model now. */
function checkMessage({ request, route }: OpenJob, { checkStart, router }: SteeringParts): void {
  checkStart(request, route);
  router.checkModel(request.model, request.client);
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
  if (conversationId === null || (beginning !== null && store.isShared)) return null;
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

/** Hosts do not pass on messages: only the host that runs a turn knows its process. */
function turnEnded({ of }: TurnPlace, { store }: SteeringParts): RelayError {
  if (!store.isShared)
    return new RelayError('turn_ended', 'no answer is being written: send the message as the next one');
  const place = of === 'job' ? 'the job does not run on this host' : 'this host writes no answer';
  return new RelayError(
    'turn_ended',
    `${place}: send the message to the host that writes the answer, or as the next one`,
  );
}
