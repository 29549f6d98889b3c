import type { Request } from 'express';
import type { Reply } from '../../worker/http/exchange.js';
import { refusesFallback } from '../../worker/jobs/job-request.js';
import type { JobParts } from '../../worker/jobs/run-job.js';
import type { BatchCaller } from '../stores/contract/files.js';

/** Dependencies of the requests that create batches. */
export type BatchRouteParts = Pick<JobParts, 'bodies' | 'features'>;

/** Returns the id in the path, and the client. */
export function batchKey({ params }: Request, { locals }: Reply) {
  return { id: String(params.batch_id), client: locals.client };
}

/** Returns what applies to all lines of a new batch. */
export function callerOf(res: Reply): BatchCaller {
  return { groups: res.locals.groups, refusesFallback: refusesFallback(res) };
}
