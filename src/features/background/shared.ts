import { z } from 'zod';
import { acceptedView, jobForm, jobListOrder, jobPage, jobStatuses, jobView } from '../../shared/background.js';
import { clientText } from '../../shared/client.js';
import type { FeatureVariables } from '../../shared/config/feature-variables.js';
import { integer, seconds } from '../../shared/config/values.js';
import type { Peer } from '../../shared/ipc/peer.js';
import type { WorkerCalls } from '../../shared/ipc/protocol.js';
import { jobDone, jobEvent, jobRequest } from '../../shared/job.js';
import type { MetricTable } from '../../shared/tables/metrics.js';

export const variables = {
  MODEL_API_MAX_JOBS: {
    ...{ schema: integer(0, 1_000_000), fallback: '1000', secrecy: 'none', setting: 'maxJobs' },
    meaning: 'waiting background jobs; 64 MiB of text, and three quarters for one client at most',
  },
  MODEL_API_JOB_TTL_SECONDS: {
    ...{ schema: seconds(1, 365 * 86_400), fallback: '86400', secrecy: 'none', setting: 'jobTtlMs' },
    meaning: 'a background job expires this long after its end',
  },
} as const satisfies FeatureVariables;

/** Id of a job, and the client that requests it. */
const ownedKey = z.object({ id: z.string(), client: clientText });

export const calls = {
  /** Accepts a background job. `id`: its id, if it must have this one. */
  accept: { request: z.object({ job: jobRequest, form: jobForm, id: z.string().optional() }), answer: acceptedView },
  job: { request: ownedKey, answer: jobView },
  /** Streams all events of a job until its end; text comes in pieces of any size. */
  jobEvents: { request: ownedKey, item: jobEvent },
  /**
   * Reads a piece of the answer of a succeeded job, from a UTF-16 position, and its end. After the last piece, the text
   * is empty.
   */
  jobAnswer: {
    request: ownedKey.extend({ from: z.int().nonnegative() }),
    answer: z.object({ text: z.string(), end: jobDone }),
  },
  jobs: { request: jobListOrder, answer: jobPage },
  /** Cancels an open job; an ended one is unchanged. */
  cancelJob: { request: ownedKey, answer: jobView },
  /**
   * Cancels an open job, including a caller's, and removes an ended one unless `keepsEnded`. With `isAdmin`, the job
   * may belong to any client, and an ended job is not removed. `status` is null if the job was removed.
   */
  deleteJob: {
    request: ownedKey.extend({ isAdmin: z.boolean(), keepsEnded: z.boolean(), requestId: z.string() }),
    answer: z.object({ status: z.enum(jobStatuses).nullable() }),
  },
};

/** Connection of a worker to the primary, for calls about background jobs. */
export type JobCalls = Pick<Peer<typeof calls, WorkerCalls>, 'call' | 'stream'>;

export const metrics = {
  background_jobs: {
    type: 'gauge',
    labels: ['state'],
    help: 'Background jobs that have not ended, by state. A running job holds a slot.',
  },
  background_jobs_limit: { type: 'gauge', labels: [], help: 'Background jobs that may wait.' },
} as const satisfies MetricTable;

export const logEvents = {
  background_job_ended:
    'a background job has ended: id, request, client, operation, outcome, times; `cancelled_by` if an administrator ended it',
  job_ended_by_admin: 'an administrator ended a job of another client: by, job id, client, request id, outcome',
} as const;
