import { setMaxListeners } from 'node:events';
import type { Client } from '../base/client.js';
import { CommandError } from '../base/errors.js';
import { failureOf, isFatal, type PromptEnd, streamedEnd } from './ends.js';
import type { Patience } from './patience.js';
import { type BadLine, type ImageReader, isFailure, type Prompt, wholeBody } from './prompts.js';
import type { Sender, Sending } from './run.js';

/** Sends each prompt as a request, a number of them at once, until the service has answered it. */
export class Requests implements Sender {
  readonly ready = 0;
  readonly #client: Pick<Client, 'stream'>;
  readonly #patience: Patience;
  readonly #readImages: ImageReader;
  readonly #concurrency: number;

  constructor(client: Pick<Client, 'stream'>, patience: Patience, readImages: ImageReader, concurrency: number) {
    this.#client = client;
    this.#patience = patience;
    this.#readImages = readImages;
    this.#concurrency = concurrency;
  }

  get heldBecause(): string | null {
    return this.#patience.heldBecause;
  }

  /** When `stopping` aborts, sends no further prompt and waits for the open requests. */
  async send({ prompts, place, stopping, cutting }: Sending): Promise<void> {
    const ending = new AbortController();
    const signal = AbortSignal.any([ending.signal, cutting]);
    setMaxListeners(0, signal); // each request adds a listener
    const lane = async () => {
      while (!stopping.aborted) {
        const { done, value: prompt } = await prompts.next();
        if (done === true || stopping.aborted) return;
        await place(prompt, await this.#endOf(prompt, signal));
      }
    };
    const lanes = Array.from({ length: this.#concurrency }, () =>
      lane().catch((error) => {
        ending.abort(error);
        throw error;
      }),
    );
    const ends = await Promise.allSettled(lanes);
    cutting.throwIfAborted();
    for (const end of ends) if (end.status === 'rejected') throw ending.signal.reason;
  }

  async #endOf(prompt: Prompt | BadLine, signal: AbortSignal): Promise<PromptEnd> {
    signal.throwIfAborted();
    const body = await wholeBody(prompt, this.#readImages);
    if (isFailure(body)) return body;
    const fields = { ...body, stream_options: { include_usage: true } };
    const ask = () => this.#client.stream('/v1/chat/completions', fields, signal);
    try {
      return await this.#patience.persist(() => streamedEnd(ask(), 'response_format' in body), signal);
    } catch (error) {
      if (signal.aborted || !(error instanceof CommandError) || isFatal(error)) throw error;
      return failureOf(error);
    }
  }
}
