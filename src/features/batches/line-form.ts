import type { RelayError } from '../../shared/errors.js';
import type { ErrorForm } from '../../worker/http/exchange.js';
import type { EndCause } from './views.js';

/** Answer to a line: its JSON, and the fields of the request that the service has ignored. */
interface LineAnswer {
  readonly requestId: string;
  readonly body: string;
  readonly ignored: readonly string[];
}

/** Form of the lines and results of a batch. `customId`: the id that the client has given the line; null if it has none. */
export interface LineForm {
  /** Returns the id of a line if it is valid; null otherwise. */
  customIdIn(id: string | null): string | null;
  /** Returns the body of the request in a line. Rejects with `validation_error`. */
  bodyIn(bytes: Buffer, route: string): Promise<Readonly<Record<string, unknown>>>;
  /** Form of errors if this service no longer has the API. */
  readonly noApi: ErrorForm;
  answered(customId: string, answer: LineAnswer): string;
  /** `errorForm`: form of errors of the API. */
  failed(customId: string | null, requestId: string, error: RelayError, errorForm: ErrorForm): string;
  ended(customId: string | null, cause: EndCause): string;
}
