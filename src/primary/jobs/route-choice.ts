import { RelayError } from '../../shared/errors.js';
import type { FallbackReason, JobRequest, PassedModel } from '../../shared/job.js';
import type { ModelRouter, Route } from '../cli/route.js';

/** Route that cannot answer a job. */
interface PassedRoute {
  readonly route: Route;
  readonly reason: FallbackReason;
}

/** Route of a job, with the other routes that may serve it. */
export interface RouteChoice {
  readonly route: Route;
  /** Routes before it, which could not answer. */
  readonly passed: readonly PassedRoute[];
  /** Routes to ask if it cannot answer, in order. */
  readonly left: readonly Route[];
}

/** Returns the models of the routes that could not answer, in the form for clients. */
export function fallbacksIn({ passed }: RouteChoice): PassedModel[] {
  return passed.map(({ route, reason }) => ({ model: route.label ?? route.cli.name, reason }));
}

export interface RouteRules {
  /** Time for which a background job prefers to wait for its model, in milliseconds. */
  readonly waitMs: number;
  /** Whether this route has answered the last message of the request's history. */
  readonly hasAnswered: (request: JobRequest, route: Route) => boolean;
  /** Whether the program of the route supports the request. */
  readonly isSupported: (request: JobRequest, route: Route) => boolean;
}

/** Decides which of its models answers a job: the first one that its CLI accepts at the time. */
export class RouteChooser {
  readonly #router: Pick<ModelRouter, 'route' | 'fallbacks' | 'withAccount'>;
  readonly #rules: RouteRules;

  constructor(router: Pick<ModelRouter, 'route' | 'fallbacks' | 'withAccount'>, rules: RouteRules) {
    this.#router = router;
    this.#rules = rules;
  }

  /**
   * Returns the route of the first model that is not refused at present; the first one if all are. Tool results go to
   * the model that made the calls. `isPatient`: whether the job waits for a model whose refusal ends soon.
   */
  choose(request: JobRequest, isPatient: boolean): RouteChoice {
    const first = this.#router.route(request);
    const fallbacks = this.#router.fallbacks(first, request).filter((route) => this.#rules.isSupported(request, route));
    const unmoved = { route: first, passed: [], left: [] };
    if (fallbacks.length === 0) return unmoved;
    const routes = [first, ...fallbacks];
    if (request.results !== undefined) {
      const index = routes.findIndex((route) => this.#rules.hasAnswered(request, route));
      const passed = passedRoutes(routes.slice(0, Math.max(index, 0)), request);
      return { route: routes[index] ?? first, passed, left: [] };
    }
    const index = routes.findIndex((route) => !this.#isRefused(route, request, isPatient));
    const route = routes[index];
    return route === undefined
      ? unmoved
      : { route, passed: passedRoutes(routes.slice(0, index), request), left: routes.slice(index + 1) };
  }

  #isRefused(route: Route, request: JobRequest, isPatient: boolean): boolean {
    const { circuits } = route.cli.health;
    if (circuits.refusalOf({ request, route }) === null) return false;
    return !isPatient || circuits.resetInMs(route.circuit) > this.#rules.waitMs;
  }

  /**
   * Returns the choice after the route of a job has failed with this error; null if no other model may or can answer.
   * `hasRoom`: whether a route is below its limits of running jobs.
   */
  next(
    { request, choice }: { readonly request: JobRequest; readonly choice: RouteChoice },
    error: unknown,
    hasRoom: (route: Route) => boolean,
  ): RouteChoice | null {
    const { route: failed, passed, left } = choice;
    const reason = fallbackReasonOf(error);
    if (reason === null || request.results !== undefined) return null;
    const isOfAccount = error instanceof RelayError && (error.scope ?? error.quota?.scope) === 'account';
    // an account may have got an owner since the admission
    const routes = left.flatMap((route) => this.#router.withAccount(route, request) ?? []);
    const isUsable = (route: Route) =>
      !(isOfAccount && route.cli === failed.cli) && !this.#isRefused(route, request, false) && hasRoom(route);
    const index = routes.findIndex(isUsable);
    const route = routes[index];
    if (route === undefined) return null;
    const skipped = passedRoutes(routes.slice(0, index), request);
    return { route, passed: [...passed, { route: failed, reason }, ...skipped], left: routes.slice(index + 1) };
  }
}

/** Returns the routes with the reasons why they are refused. */
function passedRoutes(routes: readonly Route[], request: JobRequest): PassedRoute[] {
  return routes.flatMap((route) => {
    const reason = route.cli.health.circuits.refusalOf({ request, route })?.reason;
    return reason === 'quota' || reason === 'auth' ? [{ route, reason }] : [];
  });
}

/** Returns why another model may answer after this error; null if the error is not of the model or its CLI. */
function fallbackReasonOf(error: unknown): FallbackReason | null {
  if (!(error instanceof RelayError)) return null;
  const { code, reason } = error;
  if (code === 'spawn_error') return 'start';
  if (code !== 'cli_error') return null;
  return reason === 'quota' || reason === 'auth' || reason === 'overloaded' ? reason : null;
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
