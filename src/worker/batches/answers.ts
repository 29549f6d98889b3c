import type { JobView } from '../../shared/background.js';
import type { BatchApi } from '../../shared/files.js';
import type { CompletedAnswer } from '../jobs/answer-format.js';
import { formOf } from '../jobs/background.js';
import type { BatchLines, BatchTable } from '../jobs/batch-lines.js';
import { chatBatchLines, responsesBatchLines } from '../openai/batch-lines.js';

const ownLines = { chat: chatBatchLines, responses: responsesBatchLines } as const satisfies BatchTable;

/** Returns the lines of an API. `added`: the APIs of features. */
export function linesOf(api: BatchApi, added: BatchTable): BatchLines {
  const lines = { ...added, ...ownLines }[api];
  if (lines === undefined) throw new Error('this service has no API for the batch');
  return lines;
}

/** Returns a function that writes the answer of a background job in the form of an SDK's API. */
export function doorBody(job: JobView, added: BatchTable): (answer: CompletedAnswer) => object {
  const { route } = formOf(job);
  const lines = Object.values({ ...added, ...ownLines }).find((each) => each.route === route);
  return (lines ?? chatBatchLines).answerOf(job);
}
