import type { ClientText } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import type { JobRequest } from '../../shared/job.js';
import type { Route } from '../cli/route.js';
import type { JobFeatures } from './job-features.js';

interface StartParts {
  readonly clients: { checkAccess(client: ClientText, now: number, groups?: readonly string[]): void };
  readonly features: Pick<JobFeatures, 'checkRoute'> & { startJob(request: JobRequest): void };
  readonly host: { readonly clock: Pick<Clock, 'now'> };
}

/** Returns what throws if the client of a job may not start it at present: its access has ended, or a feature refuses it. */
export function startCheck({
  clients,
  features,
  host: { clock },
}: StartParts): (request: JobRequest, route: Route) => void {
  return (request, route) => {
    clients.checkAccess(request.client, clock.now(), request.groups);
    features.startJob(request);
    features.checkRoute(request, route);
  };
}
