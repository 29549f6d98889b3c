import type { Message } from '../../../shared/job.js';
import type {
  PutVerdict,
  ResponseCounts,
  ResponseKey,
  ResponseLimits,
  ResponseNode,
  ResponseStore,
} from '../contract/responses.js';
import { call, type TableCall } from './calls.js';
import type { SqliteClient } from './client.js';
import type { ResponseChange } from './response-table.js';

/** Responses in the file. In memory it has their counts. */
export class SqliteResponses implements ResponseStore {
  readonly #client: SqliteClient;
  #counts: ResponseCounts = { count: 0, bytes: 0 };

  constructor(client: SqliteClient) {
    this.#client = client;
  }

  get counts(): ResponseCounts {
    return this.#counts;
  }

  /** With an unknown outcome it may stay. */
  put(node: ResponseNode, limits: ResponseLimits): Promise<PutVerdict> {
    return this.#change(call('responses', 'put', node, limits));
  }

  body(key: ResponseKey, after: number): Promise<string | null> {
    return this.#client.ask('response', call('responses', 'body', key, after));
  }

  text(key: ResponseKey, after: number): Promise<readonly Message[] | null> {
    return this.#client.ask('response', call('responses', 'text', key, after));
  }

  remove(key: ResponseKey): Promise<boolean> {
    return this.#change(call('responses', 'remove', key));
  }

  async expire(after: number): Promise<void> {
    if (this.#client.isUp) await this.#change(call('responses', 'expire', after));
  }

  async #change<R>(change: TableCall<ResponseChange<R>>): Promise<R> {
    const { result, hasRemoved, counts } = await this.#client.ask('response', change);
    this.#counts = counts;
    if (hasRemoved) this.#client.tidySoon();
    return result;
  }
}
