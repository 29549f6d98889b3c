import type { CreatePrimaryPart } from '../../primary/features/feature.js';
import type { Handlers } from '../../shared/ipc/peer.js';
import { JobReasons } from './reasons.js';
import type { calls } from './shared.js';

/** Creates the part that remembers why jobs have their routes, and why they waited. */
export const createWhy: CreatePrimaryPart = ({ openJobs, room, jobHooks }) => {
  const reasons = new JobReasons(
    (client) => {
      const { running } = openJobs;
      const byClient = running.filter(({ request }) => request.client === client).length;
      return { all: room.limits.maxActive, taken: running.length, byClient };
    },
    (request) => jobHooks.precedenceOver(request),
  );
  const handlers: Handlers<typeof calls> = {
    jobReasons: ({ client, requestId }) => ({ sentences: [...reasons.reasonsOf(client, requestId)] }),
  };
  return { job: { trace: (request, choice) => reasons.beginJob(request, choice) }, handlers };
};
