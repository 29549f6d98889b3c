import type { JobEnd, JobRequest, PassReason, ToolRound } from '../../shared/job.js';
import type { ModelSizes } from '../cli/contract/model-rules.js';
import type { Route } from '../cli/route.js';
import type { Bill } from './bill.js';

/** Receiver of the events of jobs, for metrics, usage and the log. */
export interface JobObserver {
  /** Called when a client has sent tool results. */
  toolRound(request: JobRequest, outcome: ToolRound): void;
  /** Called when a job has its slot, with its time in the queue. */
  jobStarted(queueMs: number): void;
  /** Called when the program has reported the limits of the model of a job. */
  sizesReported(route: Route, sizes: ModelSizes): void;
  /** Called when a whole answer has been sent, with the tokens of its input; null if they are unknown. */
  inputCounted(route: Route, request: JobRequest, inputTokens: number | null): void;
  /** Called at the first text of an answer, with the time since the job got its slot. */
  firstDelta(request: JobRequest, ms: number): void;
  /** Called when another model is asked in place of one that cannot answer. */
  jobMoved(request: JobRequest, from: Route, to: Route, reason: PassReason): void;
  /** Called when a model could not answer a job that another model is asked to answer now. */
  attemptEnded(request: JobRequest, end: JobEnd, bill: Bill): void;
  /** Called exactly once for each admitted job. */
  jobEnded(request: JobRequest, end: JobEnd, hadSlot: boolean, bill: Bill): void;
  /** Called when a job failed because of a defect in this service. */
  jobBroke(thrown: unknown): void;
}
