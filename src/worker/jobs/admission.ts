import type { Request } from 'express';
import type { JobView } from '../../shared/background.js';
import type { RequestFields } from '../../shared/features/feature.js';
import type { JobRequest } from '../../shared/job.js';
import type { Reply } from '../http/exchange.js';
import type { ReadReferences } from './file-references.js';
import type { AdmittingParts, RequestedJob } from './job-request.js';
import type { OfflineRoutes } from './offline-routes.js';

/** Request for a job, as features see it. */
export interface JobOfRequest {
  readonly req: Pick<Request, 'headers' | 'headersDistinct'>;
  /** Values of the fields of features, in a body of the native API. */
  readonly fields: Readonly<Record<string, unknown>>;
  /** Value of `service_tier`, which APIs for SDKs have; absent if the client sends none. */
  readonly serviceTier?: unknown;
  /** Whether the job continues without its request. */
  readonly isBackground: boolean;
}

/**
 * Accepts the job of a request that does not wait for its answer, and answers the request. Resolves with false if the
 * request waits.
 */
export type LeaveJob = (
  parts: AdmittingParts,
  res: Reply,
  job: RequestedJob,
  route: '/ask' | '/chat',
) => Promise<boolean>;

/** Hooks of features for the requests that run jobs. */
export interface JobAdmission {
  /** Fields of the native API that belong to features. */
  readonly fields: RequestFields;
  /** Reads the files to which requests refer; null if this service stores no files. */
  readonly readFiles: ReadReferences | null;
  readonly offlineRoutes: OfflineRoutes;
  /** Accepts background jobs; null if the service has none, so that each request waits for its answer. */
  readonly leaveJob: LeaveJob | null;
  /** Returns the fields that features add to the answer of GET /jobs/{job_id}. */
  jobFields(job: Pick<JobView, 'client' | 'requestId'>): Promise<object>;
  /** Returns what features add to the request of a job. Throws `validation_error` if one refuses the request. */
  annotateJob(job: JobOfRequest): Partial<JobRequest>;
  /** Returns what features add to the form of a background job. Throws `validation_error` if one refuses the request. */
  admitJob(job: JobOfRequest): Readonly<Record<string, unknown>>;
}
