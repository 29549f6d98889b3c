import type { JobForm, JobView } from '../../shared/background.js';
import type { RelayError } from '../../shared/errors.js';
import type { BatchApi, BatchCaller, EndCause } from '../../shared/files.js';
import type { Reply } from '../http/exchange.js';
import type { CompletedAnswer } from './answer-format.js';
import type { FileForms } from './file-references.js';
import { type ParsedRequest, refusesFallback } from './job-request.js';

/** Adds the files to a request that refers to them. */
export type FillFiles = (body: object, forms: FileForms) => Promise<void>;

/** Request in a line of a batch. */
export interface ParsedLine {
  readonly parsed: ParsedRequest;
  readonly isLegacyCall?: boolean;
  /** See `JobForm`. */
  readonly repeated?: JobForm['repeated'];
}

/** Answer to a line: its JSON, and the fields of the request that the service has ignored. */
export interface LineAnswer {
  readonly requestId: string;
  readonly body: string;
  readonly ignored: readonly string[];
}

/** Lines of a batch of one API. `customId`: the id that the client has given the line; null if it has none. */
export interface BatchLines {
  readonly route: JobForm['route'];
  /** Returns the id of a line if it is valid; null otherwise. */
  customIdIn(id: string | null): string | null;
  /** Parses a line. `fillFiles` reads the files to which its request refers. Rejects with `validation_error`. */
  parse(bytes: Buffer, fillFiles: FillFiles): Promise<ParsedLine>;
  /** Returns a function that writes the answer of a background job of this API, in a batch or not. */
  answerOf(job: JobView): (answer: CompletedAnswer) => object;
  answered(customId: string, answer: LineAnswer): string;
  failed(customId: string | null, requestId: string, error: RelayError): string;
  ended(customId: string | null, cause: EndCause): string;
}

/** Lines of batches, by their API. */
export type BatchTable = Readonly<Record<BatchApi, BatchLines>>;

/** Returns what applies to all lines of a new batch. */
export function batchCaller(res: Reply): BatchCaller {
  return { groups: res.locals.groups, refusesFallback: refusesFallback(res) };
}
