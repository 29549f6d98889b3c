import type { Request } from 'express';
import type { RequestFields } from '../../shared/features/feature.js';
import type { JobRequest } from '../../shared/job.js';
import { type UserSource, usersByAddress } from '../access/authenticate.js';
import type { PersonSource } from '../access/people.js';
import type { AnswerRecorder } from '../http/answer-recorder.js';
import { refusePages } from '../http/checks.js';
import type { Handler, Reply, RequestTracer } from '../http/exchange.js';
import type { JobAdmission, JobOfRequest, LeaveJob } from '../jobs/admission.js';
import { type JobInspector, noDocuments } from '../jobs/documents.js';
import type { ReadReferences } from '../jobs/file-references.js';
import type { OfflineRoutes } from '../jobs/offline-routes.js';
import type { JobParts } from '../jobs/run-job.js';
import type { Door, FeatureRoute, WorkerCore, WorkerModule, WorkerPart } from './feature.js';

/** Parts of a worker that exist before its features. */
type CoreOfHooks = Omit<WorkerCore, 'jobs'> & { readonly jobs: Omit<JobParts, 'features'> };

/** Creates the parts of all features, in the order of their list. Their routes run jobs with the hooks of all features. */
export async function createRequestHooks(
  modules: readonly WorkerModule[],
  core: CoreOfHooks,
  fields: RequestFields,
): Promise<RequestHooks> {
  const parts: WorkerPart[] = [];
  const features = new RequestHooks(parts, fields);
  const jobs = { ...core.jobs, features };
  for (const module of modules) parts.push(await module.createPart({ ...core, jobs }));
  return features;
}

/** Calls the hooks of all features in a worker, in the order of their list. */
export class RequestHooks implements JobAdmission {
  readonly fields: RequestFields;
  readonly #parts: readonly WorkerPart[];

  constructor(parts: readonly WorkerPart[], fields: RequestFields) {
    this.#parts = parts;
    this.fields = fields;
  }

  get routes(): readonly FeatureRoute[] {
    return this.#parts.flatMap(({ routes }) => routes);
  }

  get doors(): readonly Door[] {
    return this.#parts.flatMap(({ door = [] }) => door);
  }

  get readFiles(): ReadReferences | null {
    return this.#parts.find(({ readFiles }) => readFiles !== undefined)?.readFiles ?? null;
  }

  get leaveJob(): LeaveJob | null {
    return this.#parts.find(({ leaveJob }) => leaveJob !== undefined)?.leaveJob ?? null;
  }

  /** Handlers of the calls of all features from the primary. */
  get handlers(): NonNullable<WorkerPart['handlers']> {
    return Object.assign({}, ...this.#parts.map(({ handlers }) => handlers)) as NonNullable<WorkerPart['handlers']>;
  }

  get people(): PersonSource | null {
    return this.#parts.find(({ people }) => people !== undefined)?.people ?? null;
  }

  get users(): UserSource {
    return this.#parts.find(({ users }) => users !== undefined)?.users ?? usersByAddress;
  }

  get foreignPages(): Handler {
    return this.#parts.find(({ foreignPages }) => foreignPages !== undefined)?.foreignPages ?? refusePages;
  }

  /** Tracer of the first feature that has one; null without one. */
  get tracer(): RequestTracer | null {
    return this.#parts.find(({ tracer }) => tracer !== undefined)?.tracer ?? null;
  }

  /** Inspector of the first feature that has one; without one, it refuses documents. */
  get documents(): JobInspector {
    return this.#parts.find(({ documents }) => documents !== undefined)?.documents ?? noDocuments;
  }

  get offlineRoutes(): OfflineRoutes {
    return Object.assign({}, ...this.#parts.map(({ offlineRoutes }) => offlineRoutes)) as OfflineRoutes;
  }

  /** Returns the routes of the APIs with this additional port, and of those below /v1, which each port has. */
  routesAtPort(name: string): readonly FeatureRoute[] {
    return this.#parts.flatMap(({ door, routes }) =>
      door?.port?.name === name ? routes : routes.filter(({ route }) => route.startsWith('/v1/')),
    );
  }

  /** Returns the recorder of the first feature that records the answer to this request; null without one. */
  recorderOf(req: Request, res: Reply): AnswerRecorder | null {
    for (const part of this.#parts) {
      const recorder = part.recorderOf?.(req, res) ?? null;
      if (recorder !== null) return recorder;
    }
    return null;
  }

  async jobFields(job: Parameters<NonNullable<WorkerPart['jobFields']>>[0]): Promise<object> {
    const fields = await Promise.all(this.#parts.map((part) => part.jobFields?.(job)));
    return Object.assign({}, ...fields) as object;
  }

  stopParts(): void {
    for (const part of this.#parts) part.stop?.();
  }

  annotateJob(job: JobOfRequest): Partial<JobRequest> {
    return Object.assign({}, ...this.#parts.map((part) => part.annotateJob?.(job))) as Partial<JobRequest>;
  }

  admitJob(job: JobOfRequest): Readonly<Record<string, unknown>> {
    return Object.assign({}, ...this.#parts.map((part) => part.admitJob?.(job))) as Readonly<Record<string, unknown>>;
  }
}
