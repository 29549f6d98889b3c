import type { Express, IRoute } from 'express';
import type { RoutePath } from '../shared/api/endpoints.js';
import type { WorkerSettings } from '../shared/ipc/protocol.js';
import type { Phase } from '../shared/phase.js';
import { type Authority, authenticateOperator } from './access/authenticate.js';
import { consoleFiles, redirectToConsole } from './api/console.js';
import { postBackup, postPurge, postVerify } from './api/operations.js';
import type { StatusViewers } from './api/status.js';
import type { BodyMemory } from './http/body-memory.js';
import { type AsyncHandler, atRoute, type ExchangeParts, type Handler, type Primary } from './http/exchange.js';
import { methodNotAllowed } from './http/responses.js';
import type { SpillFolder } from './jobs/spill-folder.js';

export interface AppParts extends ExchangeParts {
  readonly primary: Primary;
  readonly settings: WorkerSettings;
  readonly authority: Authority;
  readonly phase: () => Phase;
  readonly bodies: BodyMemory;
  readonly spill: Pick<SpillFolder, 'file'>;
  readonly viewers: StatusViewers;
  /** Aborted when this worker is about to exit. */
  readonly closing: AbortSignal;
}

export function addReading(
  app: Express,
  handlers: Readonly<Partial<Record<RoutePath, readonly AsyncHandler[]>>>,
): void {
  for (const [route, steps] of Object.entries(handlers)) {
    endpoint(app, route as RoutePath)
      .get(...steps)
      .all(methodNotAllowed('GET', 'HEAD'));
  }
}

/** Adds the route of a template: `{id}` there is `:id` in express, or what `path` says. Requests are counted by the template. */
export function endpoint(app: Express, route: RoutePath, path = route.replace(/\{(\w+)\}/g, ':$1')): IRoute {
  return app.route(path).all(atRoute(route));
}

export function onlyReading(): Handler {
  const refuse = methodNotAllowed('GET', 'HEAD');
  return (req, res, next) => (req.method === 'GET' || req.method === 'HEAD' ? next() : refuse(req, res, next));
}

/** All that leads to it is counted as it. */
export function addConsole(app: Express): void {
  for (const path of ['/', '/console']) {
    app.route(path).all(atRoute('/console/')).get(redirectToConsole).all(methodNotAllowed('GET', 'HEAD'));
  }
  app.use('/console', atRoute('/console/'), onlyReading(), consoleFiles());
}

/** What an operator does with the store. */
export function addStoreRoutes(app: Express, { primary, authority, bodies }: AppParts): void {
  const mayOperate = authenticateOperator(authority, 'admin');
  const handlers = { '/store/backup': postBackup, '/store/verify': postVerify, '/store/purge': postPurge } as const;
  for (const [route, handler] of Object.entries(handlers)) {
    endpoint(app, route as RoutePath)
      .post(mayOperate, handler(primary, bodies))
      .all(methodNotAllowed('POST'));
  }
}
