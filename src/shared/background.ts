import { z } from 'zod';
import { clientText } from './client.js';
import { wireError } from './errors.js';
import { operations, toolForm, waitReasons } from './job.js';

/** Jobs as clients can list and read them. A background job continues without its request. */

export const jobStatuses = ['queued', 'running', 'succeeded', 'failed', 'cancelled'] as const;
export type JobStatus = (typeof jobStatuses)[number];

const formFields = {
  /** Route that accepted the request: /ask, /chat, or a route of a compatibility API. */
  route: z.string(),
  /** For compatibility APIs: the model, and the form in which calls of some tools are written. */
  model: z.string().nullable(),
  tools: z.record(z.string(), toolForm).readonly().optional(),
  /** Whether the answer is a value that fits a schema. */
  isStructured: z.boolean(),
  /** Whether the request offered tools, and whether the client gets thoughts; for compatibility APIs. */
  hasTools: z.boolean().optional(),
  hasThoughts: z.boolean().optional(),
  /** Whether the client follows the events of the job: the job then ranks as a caller, and sends no notice. */
  isFollowed: z.literal(true).optional(),
  /**
   * For a line of a file: the id that its client has given it, the fields that the service ignores, and whether
   * calls are written as `function_call`; the batch that runs the line.
   */
  line: z
    .object({
      customId: z.string(),
      ignored: z.array(z.string()).readonly(),
      isLegacyCall: z.boolean(),
      batch: z.string().optional(),
    })
    .readonly()
    .optional(),
  /** What its response repeats of the request. */
  repeated: z.record(z.string(), z.unknown()).readonly().optional(),
};
const knownForm = z.object(formFields).readonly();
export type JobForm = z.infer<typeof knownForm>;

/**
 * Form of the answer, which depends on the endpoint that accepted the request. Features add fields, which the core only
 * stores and passes on.
 */
export const jobForm: z.ZodType<JobForm> = z.looseObject(formFields).readonly();

const time = z.number();

/** Public view of a background job or a caller's job. Times are in milliseconds since the epoch. */
export const jobView = z
  .object({
    id: z.string(),
    client: clientText,
    /** First words of the prompt. The text is empty if it is unknown, and in a list of all clients. */
    title: z.string(),
    operation: z.enum(operations),
    requestId: z.string(),
    /** Form in which the API gives the answer to later readers; null for a caller's job, because its request gets the answer. */
    form: jobForm.nullable(),
    status: z.enum(jobStatuses),
    /** Number of slots that must become free before a waiting job gets one; null for other jobs. */
    position: z.int().positive().nullable(),
    /** Reason why a job waits; null for other jobs. */
    reason: z.enum(waitReasons).nullable(),
    createdAt: time,
    startedAt: time.nullable(),
    endedAt: time.nullable(),
    /** Error of a failed job; null for other jobs. */
    failure: wireError.nullable(),
    /** Whether an administrator, instead of the client, cancelled the job. */
    isEndedByAdmin: z.boolean(),
  })
  .readonly();
export type JobView = z.infer<typeof jobView>;

/** `model`: only for compatibility APIs. */
export const acceptedView = z
  .object({ id: z.string(), createdAt: time, isDurable: z.boolean(), model: z.string().nullable().optional() })
  .readonly();
export type AcceptedView = z.infer<typeof acceptedView>;

/**
 * `client`: null for the jobs of all clients. `before`: `next` of the previous page. A negative value means that
 * callers' jobs follow, which come before all background jobs; the store gets only values for background jobs.
 */
export const jobListOrder = z.object({
  client: clientText.nullable(),
  status: z.enum(jobStatuses).nullable(),
  before: z.int().nullable(),
  limit: z.int(),
});
export type JobListOrder = z.infer<typeof jobListOrder>;

/** Request to cancel a caller's job. `isAdmin`: whether the job may belong to any client. */
export const callerOrder = z.object({ id: z.string(), client: clientText, isAdmin: z.boolean() }).readonly();
export type CallerOrder = z.infer<typeof callerOrder>;

/** Caller's job that was cancelled. */
export const callerJob = z.object({ client: clientText, requestId: z.string() }).readonly();
export type CallerJob = z.infer<typeof callerJob>;

export const jobPage = z.object({ jobs: z.array(jobView), next: z.int().nullable() });
export type JobViewPage = z.infer<typeof jobPage>;
