import type { JobEnd, WaitReason } from '../../shared/job.js';
import type { Turn, TurnEnd } from '../cli/contract/adapter.js';
import type { Route } from '../cli/route.js';
import type { JobCli } from './job-cli.js';

/** Observer of the steps of one job, in their order. */
export interface JobTrace {
  /** Sets the route of the following turns. */
  reroute(route: Route): void;
  /** Records the place of a waiting job: at the beginning of its wait, and when its reader gets another place. */
  waits?(position: number, reason: WaitReason): void;
  /** Records the wait of the job, in milliseconds. `end` is null if the job got its slot. */
  waited(ms: number, end: JobEnd | null): void;
  /** Records the search for a process, or its start. */
  acquiring?(acquired: Promise<JobCli>): void;
  /** Begins a turn. The result must be called at the end of the turn. */
  turn?(turn: Turn, cli: JobCli): TurnTrace;
}

/** Observer of a running turn. */
export interface TurnTrace {
  ended(end: TurnEnd): void;
  failed(error: unknown): void;
}
