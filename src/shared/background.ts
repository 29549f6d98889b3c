import { z } from 'zod';
import { wireError } from './errors.js';
import { operations, toolForm, waitReasons } from './job.js';

/** Jobs as their clients can list and read them. A background job is one that outlives its request. */

export const jobStatuses = ['queued', 'running', 'succeeded', 'failed', 'cancelled'] as const;
export type JobStatus = (typeof jobStatuses)[number];

/** The form of its answer: that of the endpoint which accepted the request. */
export const jobForm = z
  .object({
    route: z.enum(['/ask', '/chat', '/v1/responses']),
    /** For a door: the model, and how calls of some tools are written. */
    model: z.string().nullable(),
    tools: z.record(z.string(), toolForm).readonly().optional(),
    /** Whether the answer is a value that fits a schema. */
    isStructured: z.boolean(),
    /** What its response repeats of the request. */
    repeated: z.record(z.string(), z.unknown()).readonly().optional(),
  })
  .readonly();
export type JobForm = z.infer<typeof jobForm>;

const time = z.number();

/** A background job, or the job of a caller. Times are milliseconds since the epoch. */
export const jobView = z
  .object({
    id: z.string(),
    client: z.string(),
    /** Empty if it is not known, and in a list of all clients. */
    title: z.string(),
    operation: z.enum(operations),
    requestId: z.string(),
    /** Null for the job of a caller: its request gets the answer. */
    form: jobForm.nullable(),
    status: z.enum(jobStatuses),
    /** Of one that waits: how many slots must become free before it has one, as things stand. */
    position: z.int().positive().nullable(),
    /** Of one that waits: why. */
    reason: z.enum(waitReasons).nullable(),
    createdAt: time,
    startedAt: time.nullable(),
    endedAt: time.nullable(),
    /** Why it has failed. */
    failure: wireError.nullable(),
    /** Whether an administrator has cancelled it, and not its client. */
    isEndedByAdmin: z.boolean(),
  })
  .readonly();
export type JobView = z.infer<typeof jobView>;

/** `model`: for a door. */
export const acceptedView = z
  .object({ id: z.string(), createdAt: time, isDurable: z.boolean(), model: z.string().nullable().optional() })
  .readonly();
export type AcceptedView = z.infer<typeof acceptedView>;

/**
 * `client`: null for the jobs of all clients. `before`: the `next` of the page before. It is negative as long as jobs of
 * callers follow, which come before all background jobs; the store gets only those of background jobs.
 */
export const jobListOrder = z.object({
  client: z.string().nullable(),
  status: z.enum(jobStatuses).nullable(),
  before: z.int().nullable(),
  limit: z.int(),
});
export type JobListOrder = z.infer<typeof jobListOrder>;

/** Who ends the job of a caller. `isAdmin`: it may be that of any client. */
export const callerOrder = z.object({ id: z.string(), client: z.string(), isAdmin: z.boolean() }).readonly();
export type CallerOrder = z.infer<typeof callerOrder>;

/** The job of a caller. */
export const callerJob = z.object({ client: z.string(), requestId: z.string() }).readonly();
export type CallerJob = z.infer<typeof callerJob>;

export const jobPage = z.object({ jobs: z.array(jobView), next: z.int().nullable() });
export type JobViewPage = z.infer<typeof jobPage>;
