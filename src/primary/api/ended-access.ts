import type { Clock } from '../../shared/clock.js';
import { cancelled } from '../../shared/errors.js';
import type { Clients } from '../access/clients.js';
import type { BackgroundJobs } from '../jobs/background-jobs.js';
import type { Job } from '../jobs/job.js';

/** Parts in which a client without access may still have something. */
export interface AccessParts {
  readonly clients: Pick<Clients, 'hasAccess'>;
  readonly openJobs: { readonly callers: readonly Pick<Job, 'request' | 'cut'>[] };
  readonly background: Pick<BackgroundJobs, 'cancelOf'>;
  readonly logins: {
    readonly all: readonly { readonly pool: { endSessionsOf(isAmong: (client: string) => boolean): void } }[];
  };
}

/** Ends the jobs and the idle processes of clients whose key or access was removed or has expired. */
export function endJobsWithoutAccess(parts: AccessParts, clock: Pick<Clock, 'now'>): void {
  const now = clock.now();
  const hasNone = (client: string) => !parts.clients.hasAccess(client, now);
  const reason = cancelled('the API key or the access of this client was removed, or has expired');
  for (const job of parts.openJobs.callers) if (hasNone(job.request.client)) job.cut(reason);
  parts.background.cancelOf(hasNone, reason);
  for (const { pool } of parts.logins.all) pool.endSessionsOf(hasNone);
}
