import type { JobEnd, WaitReason } from '../../shared/job.js';
import type { Turn } from '../cli/contract/adapter.js';
import type { Route } from '../cli/route.js';
import type { JobCli } from '../jobs/job-cli.js';
import type { JobTrace, TurnTrace } from '../jobs/job-trace.js';

/** Passes the steps of a job to the observers of several features, in their order. */
export class JobTraces implements JobTrace {
  readonly #traces: readonly JobTrace[];

  constructor(traces: readonly JobTrace[]) {
    this.#traces = traces;
  }

  reroute(route: Route): void {
    for (const trace of this.#traces) trace.reroute(route);
  }

  waits(position: number, reason: WaitReason): void {
    for (const trace of this.#traces) trace.waits?.(position, reason);
  }

  waited(ms: number, end: JobEnd | null): void {
    for (const trace of this.#traces) trace.waited(ms, end);
  }

  acquiring(acquired: Promise<JobCli>): void {
    for (const trace of this.#traces) trace.acquiring?.(acquired);
  }

  turn(turn: Turn, cli: JobCli): TurnTrace {
    const traces = this.#traces.flatMap((trace) => trace.turn?.(turn, cli) ?? []);
    return {
      ended: (end) => {
        for (const each of traces) each.ended(end);
      },
      failed: (error) => {
        for (const each of traces) each.failed(error);
      },
    };
  }
}
