import type { CreatePrimaryPart, PrimaryCore } from '../../primary/features/feature.js';
import { RelayError } from '../../shared/errors.js';
import type { AnswerOf, Handlers, RequestOf } from '../../shared/ipc/peer.js';
import type { calls } from './shared.js';

type TurnPlace = RequestOf<typeof calls, 'findTurn'>;
type SteeringParts = Pick<PrimaryCore, 'clientJobs' | 'conversations'>;
type OpenJob = NonNullable<Awaited<ReturnType<typeof openJobAt>>>;

/** Creates the part that finds the turn of a message, and ends answers early. */
export const createSteering: CreatePrimaryPart = (parts) => {
  const handlers: Handlers<typeof calls> = {
    findTurn: async (place) => {
      const job = await openJobAt(place, parts);
      if (job === null) throw turnEnded();
      return { jobId: parts.clientJobs.idOf(job), next: nextTurnOf(job) };
    },
    addToTurn: async ({ jobId, client, text }) => ({
      isAdded: (await parts.clientJobs.jobHere(jobId, client)?.addMessage(text)) ?? false,
    }),
    interruptTurn: ({ jobId, client }) => ({
      isInterrupted: parts.clientJobs.jobHere(jobId, client)?.interrupt() ?? false,
    }),
  };
  return { handlers };
};

/** Resolves with the open job; null if it has ended. Rejects with `not_found`. */
async function openJobAt({ of, id, client }: TurnPlace, { clientJobs, conversations }: SteeringParts) {
  if (of === 'job') return clientJobs.openJob(id, client);
  const job = clientJobs.openTurnOf(id, client);
  if (job === null) await conversations.snapshot(id, client);
  return job;
}

/** Returns the settings of the next turn, which are those of this one. */
function nextTurnOf({ request, conversationId }: OpenJob): AnswerOf<typeof calls, 'findTurn'>['next'] {
  if (conversationId === null) return null;
  const { model, fallbacks = [], schema, effort, thinking = null } = request;
  const models = model === null ? null : [model, ...fallbacks].join(',');
  return { conversationId, model: models, schema, effort, thinking };
}

function turnEnded(): RelayError {
  return new RelayError('turn_ended', 'no answer is being written: send the message as the next one');
}
