import { createHash } from 'node:crypto';
import { orAborted } from '../../shared/async.js';
import { type Clock, delay } from '../../shared/clock.js';
import type { Client, OnceOptions } from '../base/client.js';
import { CommandError, ServiceError } from '../base/errors.js';
import type { Prompt } from './prompts.js';
import {
  answerIn,
  completionError,
  completionIn,
  failureOf,
  isRecorded,
  type NextStep,
  type PromptEnd,
  stepAfter,
} from './streams.js';

export interface AskerOptions {
  /** Part of each Idempotency-Key. With the same salt, a prompt gets the answer that an earlier batch has recorded. */
  readonly salt: string;
  /** Whether to send a prompt again if the service replays a recorded failure. */
  readonly retriesFailures: boolean;
  readImages(paths: readonly string[]): Promise<object[] | undefined>;
}

/** State of one request. */
interface Run {
  /** Whether the job of the request was admitted. */
  isOpen: boolean;
  isReplayed: boolean;
}

/** Sends prompts, each until the service has answered it. Owns the time before which no request is sent. */
export class Asker {
  readonly #client: Pick<Client, 'streamOnce' | 'parse' | 'url'>;
  readonly #clock: Clock;
  readonly #options: AskerOptions;
  /** Monotonic time in milliseconds before which no request is sent. */
  #heldUntilMs = 0;
  /** Number of consecutive waits. If the service names no time, each is twice as long as the one before. */
  #waits = 0;
  #heldBecause: string | null = null;
  /** Number of prompts that were sent again because their run was lost with its host or its connection. */
  rerun = 0;

  constructor(client: Pick<Client, 'streamOnce' | 'parse' | 'url'>, clock: Clock, options: AskerOptions) {
    this.#client = client;
    this.#clock = clock;
    this.#options = options;
  }

  /** Reason why no request is sent at the moment; null while requests are sent. */
  get heldBecause(): string | null {
    return this.#heldBecause;
  }

  /**
   * Resolves with the answer or the failure of a prompt. Waits while the service is unreachable or refuses. Rejects
   * with a CommandError that concerns all prompts, or if the signal aborts.
   */
  async ask(prompt: Prompt, signal: AbortSignal): Promise<PromptEnd> {
    const images = await this.#options.readImages(prompt.imageFiles).catch((error: CommandError) => error);
    if (images instanceof Error)
      return { error: { code: 'validation_error', message: images.message.replace('--image', 'images') } };
    const body = { ...prompt.body, ...(images !== undefined && { images }) };
    for (let attempt = 1; ; ) {
      await this.#untilFree(signal);
      const run: Run = { isOpen: false, isReplayed: false };
      try {
        const answer = await this.#send(prompt, body, attempt, run, signal);
        this.#release();
        return answer;
      } catch (error) {
        if (signal.aborted || !(error instanceof CommandError)) throw error;
        const step = stepAfter(error);
        if (step.type === 'stop') throw error;
        if (step.type === 'failed' && !(run.isReplayed && this.#options.retriesFailures)) return failureOf(error);
        if (isRecorded(error)) attempt++;
        if (run.isReplayed) continue;
        if (isLost(error, run)) this.rerun++;
        if (step.type === 'wait') await this.#wait(step, error, signal);
      }
    }
  }

  #send(prompt: Prompt, body: object, attempt: number, run: Run, signal: AbortSignal) {
    const { path } = prompt;
    const key = `batch-${digestOf([this.#options.salt, String(prompt.id), JSON.stringify(body)])}-${attempt}`;
    const onOpen: OnceOptions['onOpen'] = ({ isOk, isReplayed }) => Object.assign(run, { isOpen: isOk, isReplayed });
    const refusalIn = (refusal: unknown, seconds: number | undefined) => completionError(refusal, seconds);
    const isAsk = path === '/ask';
    const fields = isAsk ? body : { ...body, stream_options: { include_usage: true } };
    const events = this.#client.streamOnce(path, fields, { key, onOpen, refusalIn }, signal);
    return isAsk ? answerIn(events, this.#client) : completionIn(events, 'response_format' in body);
  }

  async #wait(
    { seconds, holds }: Extract<NextStep, { type: 'wait' }>,
    error: CommandError,
    signal: AbortSignal,
  ): Promise<void> {
    if (holds === 'line') return orAborted(delay(this.#clock, (seconds ?? 1) * 1000), signal);
    const now = this.#clock.monotonicMs();
    if (now < this.#heldUntilMs) return; // other requests have failed for the same reason and have set the wait
    const ms = seconds === undefined ? Math.min(firstWaitMs * 2 ** this.#waits, longestWaitMs) : seconds * 1000;
    this.#waits++;
    this.#heldUntilMs = now + ms;
    this.#heldBecause = error.message.split('\n')[0] ?? '';
  }

  #release(): void {
    if (this.#clock.monotonicMs() < this.#heldUntilMs) return;
    this.#waits = 0;
    this.#heldBecause = null;
  }

  async #untilFree(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    for (;;) {
      const left = this.#heldUntilMs - this.#clock.monotonicMs();
      if (left <= 0) return;
      await orAborted(delay(this.#clock, left), signal);
    }
  }
}

const firstWaitMs = 500;
const longestWaitMs = 30_000;

/** Whether an admitted job has disappeared without an end. */
function isLost(error: CommandError, { isOpen }: Run): boolean {
  return error instanceof ServiceError ? error.body.reason === 'host_lost' : isOpen;
}

function digestOf(parts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url').slice(0, 32);
}
