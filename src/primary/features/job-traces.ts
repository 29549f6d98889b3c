import { contained, type OnFault } from '../../shared/contained.js';
import type { JobEnd, WaitReason } from '../../shared/job.js';
import type { Turn } from '../cli/contract/adapter.js';
import type { Route } from '../cli/route.js';
import type { JobCli } from '../jobs/job-cli.js';
import type { JobTrace, TurnTrace } from '../jobs/job-trace.js';

/** Passes the steps of a job to the observers of features, in their order. Their exceptions are passed to `onFault`. */
export class JobTraces implements JobTrace {
  readonly #traces: readonly JobTrace[];
  readonly #onFault: OnFault;

  constructor(traces: readonly JobTrace[], onFault: OnFault) {
    this.#traces = traces;
    this.#onFault = onFault;
  }

  reroute(route: Route): void {
    this.#each(this.#traces, (trace) => trace.reroute(route));
  }

  waits(position: number, reason: WaitReason): void {
    this.#each(this.#traces, (trace) => trace.waits?.(position, reason));
  }

  waited(ms: number, end: JobEnd | null): void {
    this.#each(this.#traces, (trace) => trace.waited(ms, end));
  }

  acquiring(acquired: Promise<JobCli>): void {
    this.#each(this.#traces, (trace) => trace.acquiring?.(acquired));
  }

  turn(turn: Turn, cli: JobCli): TurnTrace {
    const traces: TurnTrace[] = [];
    this.#each(this.#traces, (trace) => traces.push(...[trace.turn?.(turn, cli) ?? []].flat()));
    return {
      ended: (end) => this.#each(traces, (trace) => trace.ended(end)),
      failed: (error) => this.#each(traces, (trace) => trace.failed(error)),
    };
  }

  #each<Trace>(traces: readonly Trace[], act: (trace: Trace) => void): void {
    for (const trace of traces) contained(act, this.#onFault)(trace);
  }
}
