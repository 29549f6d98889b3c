import type { ToolRoute } from '../../shared/api/endpoints.js';
import type { JobForm } from '../../shared/background.js';
import type { RelayError } from '../../shared/errors.js';
import type { EndCause } from '../../shared/files.js';
import type { ParsedRequest } from './job-request.js';

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
  readonly route: ToolRoute & JobForm['route'];
  /** Returns the id in a line that may be no valid request. */
  customIdIn(line: unknown): string | null;
  /** Parses a line. Throws `validation_error`. */
  parse(text: string): ParsedLine;
  answered(customId: string, answer: LineAnswer): string;
  failed(customId: string | null, requestId: string, error: RelayError): string;
  ended(customId: string | null, cause: EndCause): string;
}
