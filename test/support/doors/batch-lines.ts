import { messageBatchLines } from '../../../src/features/anthropic/batch-lines.js';
import { chatBatchLines, responsesBatchLines } from '../../../src/features/openai/batch-lines.js';
import type { BatchTable } from '../../../src/worker/jobs/batch-lines.js';

/** Lines of the batches of all APIs. */
export const batchLines: BatchTable = {
  messages: messageBatchLines,
  chat: chatBatchLines,
  responses: responsesBatchLines,
};
