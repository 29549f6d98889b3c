import type { Message } from '../../../shared/job.js';
import { ResponseIndex } from '../../responses/response-index.js';
import {
  type PutVerdict,
  type ResponseCounts,
  type ResponseKey,
  type ResponseLimits,
  type ResponseNode,
  type ResponseStore,
  written,
} from '../contract/responses.js';

/** Buffers stay outside of the heap. */
interface ResponseTexts {
  readonly messages: Buffer;
  readonly body: Buffer;
}

/** Owns the responses of a service that stores nothing beyond its end. */
export class MemoryResponses implements ResponseStore {
  readonly #index = new ResponseIndex();
  readonly #texts = new Map<string, ResponseTexts>();

  get counts(): ResponseCounts {
    return this.#index.counts;
  }

  async put(node: ResponseNode, limits: ResponseLimits): Promise<PutVerdict> {
    const { messages, body, bytes, weight } = written(node, limits);
    const { verdict, gone } = this.#index.put({ ...node, bytes, weight }, limits);
    if (verdict === 'stored') this.#texts.set(node.id, { messages, body });
    this.#drop(gone);
    return verdict;
  }

  async body(key: ResponseKey, after: number): Promise<string | null> {
    return this.#index.has(key, after) ? (this.#texts.get(key.id)?.body.toString() ?? null) : null;
  }

  async text(key: ResponseKey, after: number): Promise<readonly Message[] | null> {
    const chain = this.#index.chain(key, after).toReversed();
    if (chain.length === 0) return null;
    return chain.flatMap((id) => JSON.parse(String(this.#texts.get(id)?.messages ?? '[]')) as Message[]);
  }

  async remove(key: ResponseKey): Promise<boolean> {
    const gone = this.#index.remove(key);
    this.#drop(gone ?? []);
    return gone !== null;
  }

  /** Returns how many. */
  removeOf(client: string): number {
    const own = this.#index.removeOf(client);
    this.#drop(own);
    return own.length;
  }

  async expire(after: number): Promise<void> {
    this.#drop(this.#index.expire(after));
  }

  #drop(ids: readonly string[]): void {
    for (const id of ids) this.#texts.delete(id);
  }
}
