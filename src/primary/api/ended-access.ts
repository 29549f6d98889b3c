import type { ClientText } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import { cancelled } from '../../shared/errors.js';
import type { JobRequest } from '../../shared/job.js';
import type { Clients } from '../access/clients.js';
import type { BackgroundPart } from '../jobs/background-part.js';
import type { Job } from '../jobs/job.js';

/** Parts in which a client without access may still have something. */
export interface AccessParts {
  readonly clients: Pick<Clients, 'hasAccess'>;
  readonly openJobs: { readonly callers: readonly Pick<Job, 'request' | 'cut'>[] };
  readonly localJobs: {
    readonly background: readonly {
      readonly request: Pick<JobRequest, 'client'>;
      readonly background: Pick<BackgroundPart, 'cancel'>;
    }[];
  };
  readonly logins: {
    readonly all: readonly { readonly pool: { endSessionsOf(isAmong: (client: ClientText) => boolean): void } }[];
  };
}

/** Ends the jobs and the idle processes of clients whose key or access was removed or has expired. */
export function endJobsWithoutAccess(parts: AccessParts, clock: Pick<Clock, 'now'>): void {
  const now = clock.now();
  const hasNone = (client: ClientText) => !parts.clients.hasAccess(client, now);
  const reason = cancelled('the API key or the access of this client was removed, or has expired');
  for (const job of parts.openJobs.callers) if (hasNone(job.request.client)) job.cut(reason);
  for (const { request, background } of parts.localJobs.background)
    if (hasNone(request.client)) background.cancel(reason);
  for (const { pool } of parts.logins.all) pool.endSessionsOf(hasNone);
}
