import { invalid } from '../../shared/errors.js';
import { authenticate } from '../../worker/access/authenticate.js';
import type { WorkerCore, WorkerPart } from '../../worker/features/feature.js';
import type { AsyncHandler } from '../../worker/http/exchange.js';
import { sendJson } from '../../worker/http/responses.js';
import type { JobOfRequest } from '../../worker/jobs/admission.js';
import { callbackField, callbackHeader, type calls } from './shared.js';

export function createPart({ primary, authority }: WorkerCore<typeof calls>): WorkerPart {
  const getDeliveries: AsyncHandler = async (_req, res) => sendJson(res, await primary.call('deliveries', {}));
  return {
    routes: [{ route: '/webhooks/deliveries', get: [authenticate(authority, 'admin'), getDeliveries] }],
    admitJob: (job) => (job.isBackground ? callbackOf(job) : refuseCallback(job)),
  };
}

const header = callbackHeader.toLowerCase();

/**
 * Returns the URL that is told of the end of a background job: from the header, because most APIs have no field for it,
 * or from the body of the native API.
 */
function callbackOf({ req, fields }: JobOfRequest): { readonly callbackUrl?: string } {
  const [url, ...others] = req.headersDistinct[header] ?? [];
  const inBody = fields[callbackField] as string | undefined;
  if (url !== undefined && (others.length > 0 || inBody !== undefined))
    throw invalid(header, 'must be sent once, and not beside callback_url in the body');
  const callbackUrl = url ?? inBody;
  return callbackUrl === undefined ? {} : { callbackUrl };
}

/** Throws `validation_error` if a request names a URL to call back, but gets its answer itself. */
function refuseCallback({ req, fields }: JobOfRequest): Record<string, never> {
  if (fields[callbackField] !== undefined) throw invalid(callbackField, 'needs the header Prefer: respond-async');
  if (req.headers[header] !== undefined)
    throw invalid(header, 'needs a background job: send Prefer: respond-async, or background in the body');
  return {};
}
