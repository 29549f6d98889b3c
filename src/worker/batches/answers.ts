import type { JobView } from '../../shared/background.js';
import { RelayError } from '../../shared/errors.js';
import type { BatchApi } from '../../shared/files.js';
import type { CompletedAnswer } from '../jobs/answer-format.js';
import { formOf } from '../jobs/background.js';
import type { BatchLines, BatchTable } from '../jobs/batch-lines.js';

/** Returns the lines of an API. */
export function linesOf(api: BatchApi, table: BatchTable): BatchLines {
  const lines = table[api];
  if (lines === undefined) throw new Error('this service has no API for the batch');
  return lines;
}

/** Returns a function that writes the answer of a background job in the form of an SDK's API. */
export function doorBody(job: JobView, table: BatchTable): (answer: CompletedAnswer) => object {
  const { route } = formOf(job);
  const lines = Object.values(table).find((each) => each.route === route);
  if (lines === undefined) throw new RelayError('not_found', 'this service no longer has the API of the job');
  return lines.answerOf(job);
}
