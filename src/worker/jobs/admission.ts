import type { Request } from 'express';
import type { RequestFields } from '../../shared/features/feature.js';
import type { JobRequest } from '../../shared/job.js';
import type { ReadReferences } from './file-references.js';
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

/** Hooks of features for the requests that run jobs. */
export interface JobAdmission {
  /** Fields of the native API that belong to features. */
  readonly fields: RequestFields;
  /** Reads the files to which requests refer; null if this service stores no files. */
  readonly readFiles: ReadReferences | null;
  readonly offlineRoutes: OfflineRoutes;
  /** Returns what features add to the request of a job. Throws `validation_error` if one refuses the request. */
  annotateJob(job: JobOfRequest): Partial<JobRequest>;
  /** Returns what features add to the form of a background job. Throws `validation_error` if one refuses the request. */
  admitJob(job: JobOfRequest): Readonly<Record<string, unknown>>;
}
