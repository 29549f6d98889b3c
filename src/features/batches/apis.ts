import { RelayError } from '../../shared/errors.js';
import type { OfflineRoutes } from '../../worker/jobs/offline-routes.js';
import type { BatchApi } from '../stores/contract/files.js';
import type { LineForm } from './line-form.js';
import { messageLines } from './message-lines.js';
import { openAiLines } from './openai-lines.js';
import type { batchApis } from './views.js';

/** API whose requests a batch can contain. */
export interface KnownApi {
  readonly route: string;
  readonly form: LineForm;
}

/** APIs by the names that batches are stored with. */
const apis: Readonly<Record<(typeof batchApis)[number], KnownApi>> = {
  messages: { route: '/v1/messages', form: messageLines },
  chat: { route: '/v1/chat/completions', form: openAiLines },
  responses: { route: '/v1/responses', form: openAiLines },
};

/** Returns the API of a batch. Batches of an unknown one get the form of OpenAI's API. */
export function apiOf(name: BatchApi): KnownApi {
  return (apis as Readonly<Record<BatchApi, KnownApi>>)[name] ?? { route: '', form: openAiLines };
}

/** Throws `not_found` if this service does not have the API of a new batch. */
export function checkApi(name: BatchApi, routes: OfflineRoutes): void {
  const { route } = apiOf(name);
  if (routes[route] === undefined) throw new RelayError('not_found', `this service does not have ${route}`);
}
