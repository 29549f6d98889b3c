import type { JobForm, JobView } from '../../shared/background.js';
import type { ErrorForm } from '../http/exchange.js';
import type { CompletedAnswer } from './answer-format.js';
import type { FileForms } from './file-references.js';
import type { ParsedRequest } from './job-request.js';

/** Adds the files to a request that refers to them. */
export type FillFiles = (body: object, forms: FileForms) => Promise<void>;

/** Request that does not come over HTTP. */
export interface OfflineRequest {
  readonly parsed: ParsedRequest;
  readonly isLegacyCall?: boolean;
  /** Fields of the request that the stored answer repeats, as in `JobForm`. */
  readonly repeated?: JobForm['repeated'];
}

/** Route of an API whose requests can come from a file, and their answers from the store. */
export interface OfflineRoute {
  readonly errorForm: ErrorForm;
  /** Parses the body of a request. `fillFiles` reads the files to which it refers. Rejects with `validation_error`. */
  parse(body: Readonly<Record<string, unknown>>, fillFiles: FillFiles): Promise<OfflineRequest>;
  /** Returns a function that writes the answer of a background job of this route. */
  answerOf(job: JobView): (answer: CompletedAnswer) => object;
}

/** Offline routes of the APIs of features. */
export type OfflineRoutes = Readonly<Record<JobForm['route'], OfflineRoute>>;
