import type { RequestFields } from '../../shared/features/feature.js';
import type { FeatureRoute, JobOfRequest, WorkerPart } from './feature.js';

/** Calls the hooks of all features in a worker, in the order of their list. */
export class RequestHooks {
  /** Fields of the native API that belong to features. */
  readonly fields: RequestFields;
  /** Options of keys that belong to features, in the bodies of requests. */
  readonly keyFields: RequestFields;
  readonly #parts: readonly WorkerPart[];

  constructor(parts: readonly WorkerPart[], fields: RequestFields, keyFields: RequestFields) {
    this.#parts = parts;
    this.fields = fields;
    this.keyFields = keyFields;
  }

  get routes(): readonly FeatureRoute[] {
    return this.#parts.flatMap(({ routes }) => routes);
  }

  /** Returns what features add to the form of a background job. Throws `validation_error` if one refuses the request. */
  admitJob(job: JobOfRequest): Readonly<Record<string, unknown>> {
    return Object.assign({}, ...this.#parts.map((part) => part.admitJob?.(job))) as Readonly<Record<string, unknown>>;
  }
}
