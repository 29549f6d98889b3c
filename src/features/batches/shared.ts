import { z } from 'zod';
import { jobView } from '../../shared/background.js';
import { clientText } from '../../shared/client.js';
import type { FeatureVariables, ValuesOf } from '../../shared/config/feature-variables.js';
import { integer } from '../../shared/config/values.js';
import type { Peer } from '../../shared/ipc/peer.js';
import type { WorkerCalls } from '../../shared/ipc/protocol.js';
import { jobDone } from '../../shared/job.js';
import type { MetricTable } from '../../shared/tables/metrics.js';
import { type calls as fileCalls, fileView, pageOrder } from '../files/shared.js';
import { batchCaller, batchView, endCauses, lineOrder, lineResult, writtenLine } from './views.js';

/** Batches: what both processes know of them. */

export const variables = {
  MODEL_API_MAX_BATCH_LINES: {
    ...{ schema: integer(1, 10_000_000), fallback: '50000', secrecy: 'none' },
    meaning: 'lines in all unfinished batches of a client',
  },
} as const satisfies FeatureVariables;

export const metrics = {
  batches_running: { type: 'gauge', labels: [], help: 'Batches that this host runs.' },
  batch_lines_total: { type: 'counter', labels: ['api', 'outcome'], help: 'Lines of batches with a result.' },
} as const satisfies MetricTable;

export type BatchValues = ValuesOf<typeof variables>;

const nothing = z.object({});
/** Id of a batch, and the client that requests it. */
const ownedKey = z.object({ id: z.string(), client: clientText });

export const calls = {
  /** Checks whether a batch may be created from a file, before the file is read. */
  checkBatch: {
    request: fileView.unwrap().pick({ purpose: true, lines: true }).extend({ client: clientText }),
    answer: nothing,
  },
  createBatch: {
    request: z.object({
      client: clientText,
      caller: batchCaller,
      api: z.string(),
      inputFile: z.string(),
      metadata: z.record(z.string(), z.string()).nullable(),
    }),
    answer: batchView,
  },
  batch: { request: ownedKey, answer: batchView },
  batches: {
    request: z.object({ order: pageOrder, apis: z.array(z.string()) }),
    answer: z.object({ batches: z.array(batchView), hasMore: z.boolean() }),
  },
  cancelBatch: { request: ownedKey, answer: batchView },
  /** Removes a batch that has ended, with its results. */
  deleteBatch: { request: ownedKey, answer: nothing },
};

/** Calls from the primary to a worker about lines. */
export const workerCalls = {
  /**
   * Parses a line of a batch and submits its job. Resolves with the result of a line that is no valid request. Rejects if
   * the job cannot be accepted at the moment.
   */
  submitLine: { request: lineOrder, answer: z.object({ refused: lineResult.nullable() }) },
  /**
   * Writes the result of a line whose job has ended, around its answer. `answer`: null for a failure. `cause`: why the
   * job was cancelled, if the batch has cancelled it.
   */
  writeLine: {
    request: z.object({
      api: z.string(),
      job: jobView,
      answer: z.object({ end: jobDone, hasText: z.boolean() }).readonly().nullable(),
      cause: z.enum(endCauses).nullable(),
    }),
    answer: writtenLine,
  },
  /** Writes the results of lines that got no job. */
  endLines: {
    request: z.object({
      api: z.string(),
      ids: z.array(z.string().nullable()).readonly(),
      cause: z.enum(endCauses),
    }),
    answer: z.object({ results: z.array(lineResult) }),
  },
};

/** Makes the calls of batches and of their files. */
export type BatchCalls = Pick<Peer<typeof calls & typeof fileCalls, WorkerCalls>, 'call'>;
