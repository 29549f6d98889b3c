import express, { type Express, type Request } from 'express';
import type { RoutePath } from '../shared/api/endpoints.js';
import type { WorkerSettings } from '../shared/ipc/protocol.js';
import { type Authority, authenticate, authenticateOperator, maySee, trustProxies } from './access/authenticate.js';
import type { RouteGuards } from './access/guards.js';
import { postAsk, postChat } from './api/ask.js';
import { docsPages, getOpenApi } from './api/docs.js';
import { findDoor, getDoorModel, getDoorModels, haveModels, noSuchDoor, speakAsClient } from './api/doors.js';
import { getMetrics } from './api/metrics.js';
import {
  getHealth,
  getHistory,
  getModels,
  getVersion,
  postBackup,
  postPurge,
  postRecheck,
  postVerify,
} from './api/operations.js';
import type { FeatureRoute, RouteSteps } from './features/feature.js';
import type { RequestHooks } from './features/request-hooks.js';
import { hostGuard, versionGuard } from './http/checks.js';
import { atRoute, type ExchangeParts, type Handler, openExchange } from './http/exchange.js';
import { answerError, methodNotAllowed, notFound } from './http/responses.js';
import type { JobParts } from './jobs/run-job.js';

export interface AppParts extends ExchangeParts, JobParts {
  readonly settings: WorkerSettings;
  readonly authority: Authority;
  readonly guards: RouteGuards;
  readonly features: RequestHooks;
  /** Signal that is aborted when this worker is about to exit. */
  readonly closing: AbortSignal;
}

/** Creates the app with all routes. The order of their checks is part of the API contract. */
export function createApp(parts: AppParts): Express {
  const app = checkedApp(parts);
  addJobRoutes(app, parts);
  addSharedRoutes(app, parts);
  addReadingRoutes(app, parts);
  addOperatorRoutes(app, parts);
  addFeatureRoutes(app, parts.features.routes);
  app.use('/docs', atRoute('/docs'), onlyReading, docsPages());
  return closedApp(app, parts);
}

/** Creates the app for the additional port of an API, which has the APIs for SDKs, too. */
export function createDoorApp(parts: AppParts, portName: string): Express {
  const { doors } = parts.features;
  const app = checkedApp(parts);
  addSharedRoutes(app, parts);
  addFeatureRoutes(app, parts.features.routesAtPort(portName));
  for (const { port } of doors) if (port?.name === portName) app.get('/', port.root);
  return closedApp(app, parts);
}

function checkedApp(parts: AppParts): Express {
  const { settings, features } = parts;
  const { doors } = features;
  const app = express();
  app.disable('x-powered-by').set('etag', false).enable('strict routing').enable('case sensitive routing');
  trustProxies(app, settings.trustedProxies);
  app.use(
    openExchange(parts),
    findDoor(doors),
    speakAsClient(doors),
    versionGuard,
    hostGuard(settings.allowedHosts, features.foreignPages),
  );
  if (features.people !== null) app.use(features.people.guard());
  return app;
}

function closedApp(app: Express, { log, features }: AppParts): Express {
  if (features.routes.some(({ route }) => route.startsWith('/v1/'))) app.use('/v1', noSuchDoor(features));
  for (const { unknown } of features.doors) if (unknown !== undefined) app.use(unknown.below, unknown.answer);
  app.use(notFound);
  app.use(answerError(log));
  return app;
}

/** Route of the core to which a feature may add methods. */
const chatRoute = '/chat';

/** Adds POST /ask and /chat. */
function addJobRoutes(app: Express, parts: AppParts): void {
  const { authority, guards, features } = parts;
  const { mayAsk, needsService, capped, once } = guards;
  const mayChat = authenticate(authority, 'chat');
  addRoute(app, '/ask', { post: [mayAsk, needsService, capped, once, postAsk(parts)] });
  const { get = [] } = features.routes.find(({ route }) => route === chatRoute) ?? {};
  addRoute(app, chatRoute, {
    ...(get.length > 0 && { get }),
    post: [mayChat, needsService, capped, once, postChat(parts)],
  });
}

/** Adds the routes that several APIs for SDKs share. */
function addSharedRoutes(app: Express, parts: AppParts): void {
  const { primary, settings, features } = parts;
  const { doors } = features;
  if (haveModels(doors)) {
    addRoute(app, '/v1/models', { get: [getDoorModels(primary, settings, doors)] });
    // A name such as claude/opus is one parameter, also if its slash is not encoded.
    addRoute(app, '/v1/models/{id}', { get: [getDoorModel(primary, settings, doors)] }, '/v1/models/*id');
  }
}

function addFeatureRoutes(app: Express, routes: readonly FeatureRoute[]): void {
  for (const { route, paths = [expressPath(route)], before = [], ...steps } of routes)
    if (route !== chatRoute) for (const path of paths) addRoute(app, route, steps, path, before);
}

/** Adds the routes that every client may read; some show more to an admin. */
function addReadingRoutes(app: Express, { primary, settings, authority, clock, features }: AppParts): void {
  const seesPids = (req: Request) => maySee(authority, req, 'admin');
  const mayScrape = settings.metricsAuth ? [authenticate(authority, 'metrics')] : [];
  addRoute(app, '/health', { get: [getHealth(primary, seesPids)] });
  addRoute(app, '/health/history', { get: [getHistory(primary, seesPids)] });
  addRoute(app, '/version', { get: [getVersion(primary, clock)] });
  addRoute(app, '/metrics', { get: [...mayScrape, getMetrics(primary)] });
  addRoute(app, '/models', { get: [getModels(primary, settings, features.doors)] });
  addRoute(app, '/openapi.yaml', { get: [getOpenApi()] });
}

function addOperatorRoutes(app: Express, { primary, authority, bodies }: AppParts): void {
  const mayOperate = authenticateOperator(authority, 'admin');
  addRoute(app, '/health/recheck', { post: [mayOperate, postRecheck(primary)] });
  addRoute(app, '/store/backup', { post: [mayOperate, postBackup(primary, bodies)] });
  addRoute(app, '/store/verify', { post: [mayOperate, postVerify(primary, bodies)] });
  addRoute(app, '/store/purge', { post: [mayOperate, postPurge(primary, bodies)] });
}

const methodsOf = { get: ['GET', 'HEAD'], post: ['POST'], patch: ['PATCH'], delete: ['DELETE'] } as const;

/** Returns the path of a template for Express: `{id}` becomes `:id`. */
function expressPath(route: string): string {
  return route.replace(/\{(\w+)\}/g, ':$1');
}

/** Adds a route by its template, which also names it in the metrics. Other methods are refused. */
function addRoute(
  app: Express,
  route: RoutePath | FeatureRoute['route'],
  steps: RouteSteps,
  path: string | RegExp = expressPath(route),
  before: readonly Handler[] = [],
): void {
  const added = app.route(path).all(atRoute(route), ...before);
  const verbs = Object.keys(steps) as (keyof RouteSteps)[];
  for (const verb of verbs) added[verb](...(steps[verb] ?? []));
  added.all(methodNotAllowed(...verbs.flatMap((verb) => methodsOf[verb])));
}

const onlyReading: Handler = (req, res, next) =>
  req.method === 'GET' || req.method === 'HEAD' ? next() : methodNotAllowed(...methodsOf.get)(req, res, next);
