import type { ModelNames, ModelRouter, Route } from '../../primary/cli/route.js';
import type { PassedRoute, RouteChoice, RoutedJob, RouteRules } from '../../primary/jobs/route-choice.js';
import type { ClientText } from '../../shared/client.js';
import { defaultModelName } from '../../shared/config/values.js';
import { invalid, RelayError } from '../../shared/errors.js';
import type { JobRequest, PassReason } from '../../shared/job.js';
import type { FallbackModel, FallbackRule } from './rules.js';

export interface FallbackSettings {
  readonly rules: readonly FallbackRule[];
  /** Time for which a background job prefers to wait for its model, in milliseconds. */
  readonly waitMs: number;
  /** Whether another model may answer in place of the one that this client has requested. */
  readonly mayFallBack: (client: ClientText) => boolean;
}

type FallbackRouter = Pick<ModelRouter, 'findRoute' | 'checkModel' | 'withAccount'> & {
  readonly names: Pick<ModelNames, 'resolveConfigured'>;
};

/** Decides which of its models answers a job: the first one that its CLI accepts at the time. */
export class FallbackRoutes {
  readonly #router: FallbackRouter;
  readonly #settings: FallbackSettings;
  /** Fallbacks of the operator's rules, by the canonical name of the first model. */
  readonly #rules: ReadonlyMap<string, readonly FallbackModel[]>;

  constructor(router: FallbackRouter, settings: FallbackSettings) {
    this.#router = router;
    this.#settings = settings;
    const resolve = (name: string) => router.names.resolveConfigured(name);
    const resolved = (each: FallbackModel) => ({ ...each, name: resolve(each.name) });
    this.#rules = new Map(settings.rules.map(({ model, fallbacks }) => [resolve(model), fallbacks.map(resolved)]));
  }

  /** Throws `validation_error` if the client may not name one of the fallbacks, or may have no fallback at all. */
  checkModels({ fallbacks = [], client }: Pick<JobRequest, 'fallbacks' | 'client'>): void {
    for (const name of fallbacks) this.#router.checkModel(name, client);
    if (fallbacks.length > 0 && !this.#settings.mayFallBack(client))
      throw invalid('model', 'must be one model, because the API key has fallback=off');
  }

  /**
   * Returns the route of the first model that is not refused at present; null if the first one is right. Tool results go
   * to the model that made the calls.
   */
  choose(request: JobRequest, first: Route, rules: RouteRules): RouteChoice | null {
    const fallbacks = this.fallbacks(first, request).filter((route) => rules.isSupported(route));
    if (fallbacks.length === 0) return null;
    const routes = [first, ...fallbacks];
    if (request.results !== undefined) {
      const index = routes.findIndex((route) => rules.hasAnswered(route));
      const passed = passedRoutes(routes.slice(0, Math.max(index, 0)), request);
      return { route: routes[index] ?? first, passed, left: [] };
    }
    const index = routes.findIndex((route) => !this.#isRefused(route, request, rules.isPatient));
    const route = routes[index];
    if (route === undefined) return null;
    return { route, passed: passedRoutes(routes.slice(0, index), request), left: routes.slice(index + 1) };
  }

  /**
   * Returns the routes of the models that may answer in place of the first one, in order: those that the request names,
   * else those of the operator's rule. A rule does not open a model or an account that the client may not use.
   */
  fallbacks(first: Pick<Route, 'publicModel'>, request: Pick<JobRequest, 'model' | 'client' | 'fallbacks'>): Route[] {
    const requested = request.fallbacks?.map((name) => ({ name, account: null }));
    const models = requested ?? this.#rules.get(first.publicModel ?? defaultModelName) ?? [];
    if (models.length === 0 || !this.#settings.mayFallBack(request.client)) return [];
    return models.flatMap(({ name, account }) => this.#router.findRoute(name, account, request) ?? []);
  }

  #isRefused(route: Route, request: JobRequest, isPatient: boolean): boolean {
    const { circuits } = route.cli.health;
    if (circuits.refusalOf({ request, route }) === null) return false;
    return !isPatient || circuits.resetInMs(route.circuit) > this.#settings.waitMs;
  }

  /**
   * Returns the choice after the route of a job has failed with this error; null if no other model may or can answer.
   * `hasRoom`: whether a route is below its limits of running jobs.
   */
  nextChoice({ request, choice }: RoutedJob, error: unknown, hasRoom: (route: Route) => boolean): RouteChoice | null {
    const { route: failed, passed, left } = choice;
    const reason = passReasonOf(error);
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
function passReasonOf(error: unknown): PassReason | null {
  if (!(error instanceof RelayError)) return null;
  const { code, reason } = error;
  if (code === 'spawn_error') return 'start';
  if (code !== 'cli_error') return null;
  return reason === 'quota' || reason === 'auth' || reason === 'overloaded' ? reason : null;
}
