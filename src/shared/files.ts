import { z } from 'zod';

/** Files and batches as the primary reports them. Times are in milliseconds since the epoch. */

/** Purposes of uploaded files. */
export const uploadPurposes = ['batch', 'user_data'] as const;

/**
 * `batch_output`: results of a batch whose requests its client has uploaded. `message_batch`: requests and results of a
 * batch that was created with its requests.
 */
export const filePurposes = [...uploadPurposes, 'batch_output', 'message_batch'] as const;
export type FilePurpose = (typeof filePurposes)[number];

const time = z.number();

export const fileView = z
  .object({
    id: z.string(),
    purpose: z.enum(filePurposes),
    name: z.string(),
    mediaType: z.string(),
    bytes: z.int(),
    /** Number of lines that are not empty; 0 if the file is not for a batch. */
    lines: z.int(),
    createdAt: time,
    expiresAt: time,
  })
  .readonly();
export type FileView = z.infer<typeof fileView>;

/** API whose requests a batch contains, by the name that a feature gives it. */
export const batchApi = z.string();
export type BatchApi = z.infer<typeof batchApi>;

/** How a line of a batch has ended. */
export const lineOutcomes = ['succeeded', 'errored', 'canceled', 'expired'] as const;
export type LineOutcome = (typeof lineOutcomes)[number];

const count = z.int().nonnegative();
const lineCounts = z.object({ succeeded: count, errored: count, canceled: count, expired: count }).readonly();
export type LineCounts = z.infer<typeof lineCounts>;

/** `waiting`: an earlier batch of the client runs. `failed`: the file of the batch could not be read to its end. */
export const batchStatuses = ['waiting', 'running', 'ended', 'failed'] as const;
export type BatchStatus = (typeof batchStatuses)[number];

export const batchView = z
  .object({
    id: z.string(),
    api: batchApi,
    status: z.enum(batchStatuses),
    inputFile: z.string(),
    /** Files with results; null if they do not exist, or as long as the batch runs. */
    outputFile: z.string().nullable(),
    errorFile: z.string().nullable(),
    metadata: z.record(z.string(), z.string()).nullable(),
    total: count,
    counts: lineCounts,
    createdAt: time,
    startedAt: time.nullable(),
    cancelAt: time.nullable(),
    endedAt: time.nullable(),
    /** Time at which the remaining lines expire. */
    expiresAt: time,
  })
  .readonly();
export type BatchView = z.infer<typeof batchView>;

/** Line in the file of a batch: its position, the position of the next line, and its `custom_id` if it has one. */
const fileLine = z.object({ start: z.int(), end: z.int(), id: z.string().nullable() }).readonly();
export type FileLine = z.infer<typeof fileLine>;

/** Causes for a result without an answer: its client has cancelled the batch, or its time is over. */
export const endCauses = ['canceled', 'expired'] as const satisfies readonly LineOutcome[];
export type EndCause = (typeof endCauses)[number];

/** Facts about the request that created a batch, which apply to each of its lines. */
export const batchCaller = z
  .object({
    /** Groups for which the usage counts, see `JobRequest`. */
    groups: z.array(z.string()).readonly(),
    /** Whether no other model may answer if the requested one cannot. */
    refusesFallback: z.boolean(),
  })
  .readonly();
export type BatchCaller = z.infer<typeof batchCaller>;

/** Order to send a line, which the worker reads from its file. `hasRoom`: whether there is room for the result. */
export const lineOrder = z
  .object({
    api: batchApi,
    client: z.string(),
    jobId: z.string(),
    caller: batchCaller,
    file: z.string(),
    line: fileLine,
    hasRoom: z.boolean(),
  })
  .readonly();
export type LineOrder = z.infer<typeof lineOrder>;

/** Result of a line as JSON, without a line end. */
export const lineResult = z.object({ text: z.string(), outcome: z.enum(lineOutcomes) }).readonly();
export type LineResult = z.infer<typeof lineResult>;

/** Order of a page of files or batches. `after`: id of the last entry of the previous page. */
export const pageOrder = z
  .object({ client: z.string(), after: z.string().nullable(), limit: z.int(), isAscending: z.boolean() })
  .readonly();
export type PageOrder = z.infer<typeof pageOrder>;
