import { z } from 'zod';
import { conversationSnapshot } from './conversation.js';
import { wireError } from './errors.js';

/** A job as it crosses between worker and primary. */

export const operations = ['ask', 'chat'] as const;
export type Operation = (typeof operations)[number];

/** How a job that was admitted can end. Exactly one of these, once. */
export const outcomes = [
  'ok',
  'timeout',
  'queue_timeout',
  'cli_error',
  'spawn_error',
  'cancelled',
  'shutting_down',
  'internal_error',
] as const;
export type Outcome = (typeof outcomes)[number];
export type FailedOutcome = Exclude<Outcome, 'ok'>;

const ms = z.number().nonnegative();

/** One request for one answer. */
export const jobRequest = z
  .object({
    operation: z.enum(operations),
    requestId: z.string(),
    /** Whose job it is, as of `shared/client.ts`. Conversations belong to it. */
    client: z.string(),
    /** For `chat`: the conversation to go on with, null for a new one. */
    conversationId: z.string().nullable(),
    text: z.string(),
    system: z.string().nullable(),
    model: z.string().nullable(),
    /** Whether the caller wants each event as it comes; else only the whole answer matters. */
    isStreamed: z.boolean(),
  })
  .readonly();
export type JobRequest = z.infer<typeof jobRequest>;

/** Tokens and cost as the model CLI reports them; null where it reports nothing. */
const usage = z
  .object({
    inputTokens: z.number().nullable(),
    outputTokens: z.number().nullable(),
    costUsd: z.number().nullable(),
  })
  .readonly();
export type Usage = z.infer<typeof usage>;

const textDelta = z.object({ type: z.literal('text-delta'), text: z.string() }).readonly();
export type TextDelta = z.infer<typeof textDelta>;

/** The job waits. `position` slots must become free before it has one, as things stand. */
const jobQueued = z.object({ type: z.literal('job-queued'), position: z.int().positive() }).readonly();

const jobStart = z.object({ type: z.literal('job-start'), queueMs: ms }).readonly();
export type JobStart = z.infer<typeof jobStart>;

/** What the processes of a job have used, where the service can measure it; else null. */
const jobUsage = {
  /** Processor time of all processes together, milliseconds. */
  processorMs: ms.nullable(),
  peakMemoryBytes: z.number().nullable(),
};
const jobEnd = { type: z.literal('job-end'), queueMs: ms, executionMs: ms, ...jobUsage };

/** The answer is the sum of the deltas, unless `text` says otherwise: a CLI may correct itself at the end. */
const jobDone = z
  .object({
    ...jobEnd,
    outcome: z.literal('ok'),
    text: z.string().nullable(),
    model: z.string().nullable(),
    usage,
    /** For `chat`: the conversation with this turn in it. */
    conversation: conversationSnapshot.nullable(),
  })
  .readonly();
export type JobDone = z.infer<typeof jobDone>;

const jobFailed = z.object({ ...jobEnd, outcome: z.enum(outcomes).exclude(['ok']), failure: wireError }).readonly();
export type JobFailed = z.infer<typeof jobFailed>;

export type JobEnd = JobDone | JobFailed;
export type JobUsage = Pick<JobDone, keyof typeof jobUsage>;
export const unknownJobUsage: JobUsage = { processorMs: null, peakMemoryBytes: null };

export const jobEvent = z.union([textDelta, jobQueued, jobStart, jobDone, jobFailed]);
export type JobEvent = z.infer<typeof jobEvent>;
