import express, { type Express, type Request } from 'express';
import { authenticate, authenticateOperator, maySee, subClientByHeader } from './access/authenticate.js';
import { postCountTokens, postMessages } from './anthropic/messages.js';
import { postAsk, postChat } from './api/ask.js';
import {
  deleteConversation,
  getConversation,
  getConversations,
  getMessages,
  postFork,
  readBackGuard,
} from './api/conversations.js';
import { docsPages, getOpenApi } from './api/docs.js';
import { findDoor, noSuchDoor, speakAsClient } from './api/doors.js';
import { deleteJob, getJob, getJobEvents, getJobs } from './api/jobs.js';
import { getDoorModel, getDoorModels } from './api/models.js';
import {
  getHealth,
  getHistory,
  getMetrics,
  getModels,
  getSetup,
  getStatus,
  getStatusStream,
  getUsage,
  getVersion,
  postRecheck,
} from './api/operations.js';
import { hostGuard, rateCap, rateWindows, refuseWhileDraining } from './http/checks.js';
import { atRoute, openExchange } from './http/exchange.js';
import { idempotency } from './http/idempotency.js';
import { answerError, methodNotAllowed, notFound } from './http/responses.js';
import { postChatCompletions } from './openai/chat.js';
import { cancelResponse, deleteResponse, getResponse, postResponses } from './openai/responses.js';
import { type AppParts, addConsole, addReading, addStoreRoutes, endpoint, onlyReading } from './routing.js';

/** Every route, with the checks before it in the order that the contract has. */
export function createApp(parts: AppParts): Express {
  const { primary, settings, authority, log } = parts;
  const app = express();
  app.disable('x-powered-by').set('etag', false).enable('strict routing').enable('case sensitive routing');
  app.set('trust proxy', settings.trustedProxies);
  app.use(openExchange(parts), findDoor(), speakAsClient(), hostGuard(settings));
  addReadingRoutes(app, parts);
  addConversationRoutes(app, parts);
  addJobRoutes(app, parts);
  addBackgroundRoutes(app, parts);
  addDoorRoutes(app, parts);
  addStatusRoutes(app, parts);
  addStoreRoutes(app, parts);
  endpoint(app, '/health/recheck')
    .post(authenticateOperator(authority, 'admin'), postRecheck(primary))
    .all(methodNotAllowed('POST'));
  endpoint(app, '/openapi.yaml').get(getOpenApi()).all(methodNotAllowed('GET', 'HEAD'));
  app.use('/docs', atRoute('/docs'), onlyReading(), docsPages());
  if (settings.hasConsole) addConsole(app);
  app.use('/v1', noSuchDoor);
  app.use(notFound);
  app.use(answerError(log));
  return app;
}

function addConversationRoutes(app: Express, { primary, settings, authority, bodies }: AppParts): void {
  const capped = rateCap(rateWindows(primary, settings));
  const mayChat = authenticate(authority, 'chat');
  const mayRead = [mayChat, readBackGuard(settings)];
  endpoint(app, '/chat').get(...mayRead, getConversations(primary));
  endpoint(app, '/chat/{conversation_id}')
    .get(mayChat, getConversation(primary))
    .delete(mayChat, deleteConversation(primary))
    .all(methodNotAllowed('GET', 'HEAD', 'DELETE'));
  endpoint(app, '/chat/{conversation_id}/messages')
    .get(...mayRead, getMessages(primary))
    .all(methodNotAllowed('GET', 'HEAD'));
  endpoint(app, '/chat/{conversation_id}/fork')
    .post(...mayRead, capped, postFork(primary, bodies))
    .all(methodNotAllowed('POST'));
}

/** Jobs that outlive their request. */
function addBackgroundRoutes(app: Express, { primary, authority, clock, closing }: AppParts): void {
  const mayCall = [authenticate(authority, null), subClientByHeader()];
  endpoint(app, '/jobs')
    .get(...mayCall, getJobs(primary))
    .all(methodNotAllowed('GET', 'HEAD'));
  endpoint(app, '/jobs/{job_id}')
    .get(...mayCall, getJob(primary))
    .delete(...mayCall, deleteJob(primary))
    .all(methodNotAllowed('GET', 'HEAD', 'DELETE'));
  endpoint(app, '/v1/responses/{response_id}')
    .get(...mayCall, getResponse(primary))
    .delete(...mayCall, deleteResponse(primary))
    .all(methodNotAllowed('GET', 'HEAD', 'DELETE'));
  endpoint(app, '/v1/responses/{response_id}/cancel')
    .post(...mayCall, cancelResponse(primary))
    .all(methodNotAllowed('POST'));
  endpoint(app, '/jobs/{job_id}/events')
    .get(...mayCall, getJobEvents({ primary, clock }, closing))
    .all(methodNotAllowed('GET', 'HEAD'));
}

function addJobRoutes(app: Express, { primary, settings, authority, phase, bodies, spill, clock }: AppParts): void {
  const needsService = refuseWhileDraining(phase, primary);
  const capped = rateCap(rateWindows(primary, settings));
  const jobs = [
    ['/ask', authenticate(authority, 'ask'), postAsk, ['POST']],
    ['/chat', authenticate(authority, 'chat'), postChat, ['GET', 'HEAD', 'POST']],
  ] as const;
  for (const [route, mayDo, handler, methods] of jobs) {
    endpoint(app, route)
      .post(mayDo, needsService, capped, idempotency(primary), handler({ primary, bodies, spill, clock }))
      .all(methodNotAllowed(...methods));
  }
}

/** The APIs that SDKs speak. */
function addDoorRoutes(app: Express, { primary, settings, authority, phase, bodies, spill, clock }: AppParts): void {
  const capped = rateCap(rateWindows(primary, settings));
  const mayAsk = authenticate(authority, 'ask');
  const named = subClientByHeader();
  const parts = { primary, bodies, spill, clock };
  const jobs = [
    ['/v1/chat/completions', postChatCompletions],
    ['/v1/responses', postResponses],
    ['/v1/messages', postMessages],
  ] as const;
  for (const [route, handler] of jobs) {
    endpoint(app, route)
      .post(mayAsk, refuseWhileDraining(phase, primary), named, capped, idempotency(primary), handler(parts))
      .all(methodNotAllowed('POST'));
  }
  endpoint(app, '/v1/messages/count_tokens')
    .post(mayAsk, named, capped, postCountTokens(parts))
    .all(methodNotAllowed('POST'));
  endpoint(app, '/v1/models').get(getDoorModels(primary)).all(methodNotAllowed('GET', 'HEAD'));
  // A name such as codex/gpt-5 is one name, with its slash encoded or not.
  endpoint(app, '/v1/models/{id}', '/v1/models/*id').get(getDoorModel(primary)).all(methodNotAllowed('GET', 'HEAD'));
}

/** What is shown to whoever may call, and more of it to an admin. */
function addStatusRoutes(app: Express, { primary, authority, viewers }: AppParts): void {
  const mayCall = authenticate(authority, null);
  const handlers = {
    '/usage': [mayCall, getUsage(primary, authority)],
    '/status': [mayCall, getStatus(primary, authority)],
    '/status/stream': [mayCall, getStatusStream(viewers, authority)],
    '/setup': [authenticate(authority, 'admin'), getSetup(primary)],
  };
  addReading(app, handlers);
}

function addReadingRoutes(app: Express, { primary, settings, authority, clock }: AppParts): void {
  const seesPids = (req: Request) => maySee(authority, req, 'admin');
  const mayScrape = settings.metricsAuth ? [authenticate(authority, 'metrics')] : [];
  const handlers = {
    '/health': [getHealth(primary, seesPids)],
    '/version': [getVersion(primary, clock)],
    '/health/history': [getHistory(primary, seesPids)],
    '/metrics': [...mayScrape, getMetrics(primary)],
    '/models': [getModels(primary)],
  };
  addReading(app, handlers);
}
