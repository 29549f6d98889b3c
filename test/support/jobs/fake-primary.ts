import type { JobEvent, JobRequest } from '../../../src/shared/job.js';
import type { Primary } from '../../../src/worker/http/exchange.js';

type Run = (request: JobRequest, signal: AbortSignal) => AsyncGenerator<JobEvent>;

/** Primary with fixed answers, for a worker. Records the calls. */
export class FakePrimary {
  readonly calls: { readonly name: string; readonly request: unknown }[] = [];
  readonly #answers: Readonly<Record<string, unknown>>;
  readonly #run: Run | null;

  constructor(answers: Readonly<Record<string, unknown>> = {}, run: Run | null = null) {
    this.#answers = answers;
    this.#run = run;
  }

  /** Typed as the primary that a worker receives. */
  get asPrimary(): Primary {
    return this as unknown as Primary;
  }

  /** Throws the answer if it is an error, and calls it if it is a function. */
  async call(name: string, request: unknown): Promise<unknown> {
    this.calls.push({ name, request });
    const answer = this.#answers[name];
    if (answer instanceof Error) throw answer;
    return typeof answer === 'function' ? answer(request) : answer;
  }

  stream(name: string, request: JobRequest, signal: AbortSignal): AsyncGenerator<JobEvent> {
    this.calls.push({ name, request });
    if (this.#run === null) throw new Error(`nobody serves ${name}`);
    return this.#run(request, signal);
  }
}
