import type { OnFault } from '../../shared/contained.js';
import type { JobRequest } from '../../shared/job.js';
import type { Capabilities, Turn } from '../cli/contract/adapter.js';
import type { Route } from '../cli/route.js';
import type { AnswerTurns, TranslateTurn } from './answer-turns.js';
import type { StrategyEnd } from './answered.js';
import type { Job } from './job.js';
import type { JobTrace } from './job-trace.js';
import type { RouteChoice, RoutedJob, RouteRules } from './route-choice.js';
import type { ClientRules, JobRank } from './ticket.js';
import type { WebSearcher } from './web-searcher.js';

/** Job whose turn is prepared. */
export type PreparedJob = Pick<Job, 'request' | 'signal'>;

/** Hooks of all features for the steps of a job. */
export interface JobFeatures {
  /** Limits web searches; null refuses each job that may search. */
  readonly searcher: WebSearcher | null;
  /** Throws `validation_error` if a feature refuses the models, or if there are several and no feature asks the others. */
  checkModels(request: JobRequest): void;
  /** Throws if a feature refuses something else in the request. */
  checkRequest(request: JobRequest): void;
  /** Returns the rank of a job among those that wait; null for the usual one. */
  rankOf(request: JobRequest): JobRank | null;
  /** Returns the gates of a job, and the share that its client has with others. */
  rulesOf(request: JobRequest): ClientRules;
  /** Returns the route that the first feature chooses; null if none does. */
  chooseRoute(request: JobRequest, first: Route, rules: RouteRules): RouteChoice | null;
  /** Throws if a feature refuses this route for the request. */
  checkRoute(request: JobRequest, route: Route): void;
  /** Returns the request with the earlier text that it continues. Rejects with `not_found` if there is none. */
  readEarlier(request: JobRequest): Promise<JobRequest>;
  /** Returns the turn of a job as its program gets it. */
  prepareTurn(turn: Turn, job: PreparedJob, extras: Capabilities): Promise<Turn>;
  /** Lets the first feature answer that has a way of its own for this turn; null if none has. */
  answerJob(turns: AnswerTurns, turn: Turn): Promise<StrategyEnd> | null;
  readonly translateTurn: TranslateTurn;
  /** Returns another route after the route of a job has failed; null if no feature has one. */
  nextRoute(job: RoutedJob, error: unknown, hasRoom: (route: Route) => boolean): RouteChoice | null;
  /** Returns the observer of the steps of a job, which never throws; null for a job that no feature traces. */
  traceJob(request: JobRequest, choice: RouteChoice, onFault: OnFault): JobTrace | null;
}
