import express, { type Express, type IRoute } from 'express';
import type { Route } from '../shared/api/endpoints.js';
import type { WorkerSettings } from '../shared/ipc/protocol.js';
import type { Phase } from '../shared/phase.js';
import { BodyMemory } from './http/body-memory.js';
import { authenticate, authenticateOperator, hostGuard, rateCap, refuseWhileDraining } from './http/checks.js';
import { answerError, methodNotAllowed, notFound } from './http/error-handler.js';
import { atRoute, type ExchangeParts, type Handler, openExchange, type Primary } from './http/exchange.js';
import { postAsk } from './routes/ask.js';
import { deleteConversation, getConversation, postChat } from './routes/chat.js';
import { docsPages, getOpenApi } from './routes/docs.js';
import { getHealth, getHistory, getMetrics, getModels, getVersion, postRecheck } from './routes/operations.js';
import { getUsage } from './routes/usage.js';

export interface AppParts extends ExchangeParts {
  readonly primary: Primary;
  readonly settings: WorkerSettings;
  readonly phase: () => Phase;
}

/** Every route, with the checks before it in the order that the contract has. */
export function createApp(parts: AppParts): Express {
  const { primary, settings, log } = parts;
  const app = express();
  app.disable('x-powered-by').set('etag', false).enable('strict routing').enable('case sensitive routing');
  app.set('trust proxy', settings.trustedProxies);
  app.use(openExchange(parts), hostGuard(settings));
  addReadingRoutes(app, parts);
  addJobRoutes(app, parts);
  addUsageRoute(app, parts);
  endpoint(app, '/health/recheck')
    .post(authenticateOperator(settings.keys), postRecheck(primary))
    .all(methodNotAllowed('POST'));
  endpoint(app, '/openapi.yaml').get(getOpenApi()).all(methodNotAllowed('GET', 'HEAD'));
  app.use('/docs', atRoute('/docs'), onlyReading(), docsPages());
  app.use(notFound);
  app.use(answerError(log));
  return app;
}

function addJobRoutes(app: Express, { primary, settings, phase, clock }: AppParts): void {
  const needsKey = authenticate(settings.keys);
  const needsService = refuseWhileDraining(phase, primary);
  const capped = rateCap(primary, settings.rateLimit);
  const bodies = new BodyMemory(settings.bodyLimitBytes, clock);
  const jobs = { '/ask': postAsk, '/chat': postChat } as const;
  for (const [route, handler] of Object.entries(jobs)) {
    endpoint(app, route as Route)
      .post(needsKey, needsService, capped, handler(primary, bodies, clock))
      .all(methodNotAllowed('POST'));
  }
  endpoint(app, '/chat/{conversation_id}')
    .get(needsKey, getConversation(primary))
    .delete(needsKey, deleteConversation(primary))
    .all(methodNotAllowed('GET', 'HEAD', 'DELETE'));
}

function addUsageRoute(app: Express, { primary, settings }: AppParts): void {
  endpoint(app, '/usage')
    .get(authenticate(settings.keys), getUsage(primary, settings))
    .all(methodNotAllowed('GET', 'HEAD'));
}

function addReadingRoutes(app: Express, { primary, clock }: AppParts): void {
  const handlers = {
    '/health': getHealth,
    '/version': getVersion,
    '/health/history': getHistory,
    '/metrics': getMetrics,
    '/models': getModels,
  } as const;
  for (const [route, handler] of Object.entries(handlers)) {
    endpoint(app, route as Route)
      .get(handler(primary, clock))
      .all(methodNotAllowed('GET', 'HEAD'));
  }
}

/** Adds the route of a template: `{id}` there is `:id` in express. */
function endpoint(app: Express, route: Route): IRoute {
  return app.route(route.replace(/\{(\w+)\}/g, ':$1')).all(atRoute(route));
}

function onlyReading(): Handler {
  const refuse = methodNotAllowed('GET', 'HEAD');
  return (req, res, next) => (req.method === 'GET' || req.method === 'HEAD' ? next() : refuse(req, res, next));
}
