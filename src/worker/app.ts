import express, { type Express } from 'express';
import type { Clock } from '../shared/clock.js';
import { RelayError } from '../shared/errors.js';
import type { DoorSettings } from '../shared/ipc/protocol.js';
import type { Logger } from '../shared/logger.js';
import type { Phase } from '../shared/phase.js';
import { authenticate } from './http/authenticate.js';
import { answerError, methodNotAllowed, notFound } from './http/error-handler.js';
import { type Handler, openExchange } from './http/exchange.js';
import { hostGuard } from './http/host-guard.js';
import type { Primary } from './primary.js';
import { postAsk } from './routes/ask.js';
import { getHealth, getVersion } from './routes/operations.js';

export interface AppParts {
  readonly primary: Primary;
  readonly settings: DoorSettings;
  readonly phase: () => Phase;
  readonly log: Logger;
  readonly clock: Clock;
}

/** Every route, with the checks before it in the order the contract gives. */
export function createApp({ primary, settings, phase, log, clock }: AppParts): Express {
  const app = express();
  app.disable('x-powered-by').set('etag', false).enable('strict routing').enable('case sensitive routing');
  app.set('trust proxy', settings.trustedProxies);
  app.use(openExchange(log, clock), hostGuard(settings));

  const needsKey = authenticate(settings.keys);
  const needsService = refuseWhileDraining(phase);
  app
    .route('/ask')
    .post(needsKey, needsService, postAsk(primary, settings, clock))
    .all(methodNotAllowed('POST'));
  app.route('/health').get(getHealth(primary)).all(methodNotAllowed('GET', 'HEAD'));
  app.route('/version').get(getVersion(primary)).all(methodNotAllowed('GET', 'HEAD'));

  app.use(notFound);
  app.use(answerError(log));
  return app;
}

function refuseWhileDraining(phase: () => Phase): Handler {
  return (_req, _res, next) => {
    if (phase() !== 'draining') return next();
    throw new RelayError('shutting_down', 'the service is shutting down', { retryAfterSeconds: 5 });
  };
}
