import { RelayError } from '../../shared/errors.js';
import type { JobRequest, PassedModel, PassReason } from '../../shared/job.js';
import type { Route } from '../cli/route.js';

/** Route that cannot answer a job. */
export interface PassedRoute {
  readonly route: Route;
  readonly reason: PassReason;
}

/** Route of a job, with the other routes that may serve it. */
export interface RouteChoice {
  readonly route: Route;
  /** Routes before it, which could not answer. */
  readonly passed: readonly PassedRoute[];
  /** Routes to ask if it cannot answer, in order. */
  readonly left: readonly Route[];
}

/** Facts that decide which route serves a request at present. */
export interface RouteRules {
  /** Whether the job waits for a model whose refusal ends soon. */
  readonly isPatient: boolean;
  /** Whether this route has answered the last message of the request's history. */
  hasAnswered(route: Route): boolean;
  /** Whether the program of the route supports the request. */
  isSupported(route: Route): boolean;
}

/** Job whose route has failed. */
export interface RoutedJob {
  readonly request: JobRequest;
  readonly choice: RouteChoice;
}

/** Returns the models of the routes that could not answer, in the form for clients. */
export function passedModels({ passed }: RouteChoice): PassedModel[] {
  return passed.map(({ route, reason }) => ({ model: route.label ?? route.cli.name, reason }));
}

/** Makes the error of a caller: the service is not at fault, and a repeated request gets the account that is right then. */
export function accountRemoved(): RelayError {
  return new RelayError('shutting_down', 'the account of this job can no longer be used: send the request again');
}

/** Makes the reason why a background job waits again. */
export function accountChanged(): RelayError {
  const message = 'the account of this job can no longer be used, but another one may be: send the request again';
  return new RelayError('cli_error', message, { reason: 'other', retryAfterSeconds: 1 });
}
