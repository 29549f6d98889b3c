import type { Request } from 'express';
import type { ErrorForm, Handler } from '../http/exchange.js';
import { anthropicErrors } from './anthropic/errors.js';
import { isAtDoor, isOnlyOpenAi } from './base-urls.js';
import { openAiErrors } from './openai/errors.js';

/** Both have GET /v1/models: only the SDKs of Anthropic send a version. A gateway may send one on every path. */
export function speaksAnthropic(req: Request): boolean {
  if (isOnlyOpenAi(req.path)) return false;
  return req.get('anthropic-version') !== undefined || /^\/v1\/messages(\/|$)/.test(req.path);
}

/** From here on, whatever goes wrong is told in the form that the client knows. */
export function speakAsClient(): Handler {
  return (req, res, next) => {
    if (!isAtDoor(req)) return next();
    const isAnthropic = speaksAnthropic(req);
    const form: ErrorForm = isAnthropic ? anthropicErrors : openAiErrors;
    res.locals.errorForm = form;
    if (isAnthropic) res.set('request-id', res.locals.requestId);
    next();
  };
}
