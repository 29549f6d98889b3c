import type { WorkerCore, WorkerPart } from '../../worker/features/feature.js';
import { leaveIfPreferred } from './preference.js';
import { deleteJob, getJob, getJobEvents, getJobs } from './routes.js';
import type { calls } from './shared.js';

export function createPart({ primary, guards, clock, closing, jobs }: WorkerCore<typeof calls>): WorkerPart {
  const { features } = jobs;
  const mayCall = [guards.mayCall, guards.namesUser];
  const answers = {
    ...{ primary, clock, features },
    get offlineRoutes() {
      return features.offlineRoutes; // of features that come later, too
    },
  };
  return {
    routes: [
      { route: '/jobs', get: [...mayCall, getJobs(primary)] },
      {
        route: '/jobs/{job_id}',
        get: [...mayCall, getJob(answers)],
        delete: [...mayCall, deleteJob(primary)],
      },
      { route: '/jobs/{job_id}/events', get: [...mayCall, getJobEvents(answers, closing)] },
    ],
    leaveJob: leaveIfPreferred,
  };
}
