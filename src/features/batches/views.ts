import { z } from 'zod';
import { clientText } from '../../shared/client.js';
import type { AnswerFrame } from '../../shared/text/answer-frame.js';
import type { BatchStatus } from '../stores/contract/files.js';

/** Batches as the primary reports them. Times are in milliseconds since the epoch. */

/** Names of the APIs whose requests a batch can contain. Batches are stored with them. */
export const batchApis = ['messages', 'chat', 'responses'] as const;

/** How a line of a batch has ended. */
export const lineOutcomes = ['succeeded', 'errored', 'canceled', 'expired'] as const;
export type LineOutcome = (typeof lineOutcomes)[number];

const time = z.number();
const count = z.int().nonnegative();
const lineCounts = z.object({ succeeded: count, errored: count, canceled: count, expired: count }).readonly();

const batchStatuses = ['waiting', 'running', 'ended', 'failed'] as const satisfies readonly BatchStatus[];

export const batchView = z
  .object({
    id: z.string(),
    api: z.string(),
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

/** Schema of `BatchCaller`. */
export const batchCaller = z
  .object({ groups: z.array(z.string()).readonly(), refusesFallback: z.boolean() })
  .readonly();

/** Order to send a line, which the worker reads from its file. `hasRoom`: whether there is room for the result. */
export const lineOrder = z
  .object({
    batch: z.string(),
    api: z.string(),
    client: clientText,
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

/** Schema of `AnswerFrame`. */
const answerFrame = z
  .array(
    z.union([
      z.string(),
      z.object({ type: z.literal('slice'), from: z.int(), to: z.int().nullable() }).readonly(),
      z.object({ type: z.literal('value') }).readonly(),
    ]),
  )
  .readonly() satisfies z.ZodType<AnswerFrame>;

/** Result of a line as JSON with places for the answer, which the primary inserts. */
export const writtenLine = z.object({ frame: answerFrame, outcome: z.enum(lineOutcomes) }).readonly();
export type WrittenLine = z.infer<typeof writtenLine>;
