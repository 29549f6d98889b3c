import type { JobView } from '../../shared/background.js';
import { invalid } from '../../shared/errors.js';
import { check } from '../../worker/http/body.js';
import type { OfflineRoute } from '../../worker/jobs/offline-routes.js';
import { formOf } from '../background/answers.js';
import { chatCompletionFormat } from './chat.js';
import { chatFiles, parseChat } from './chat-request.js';
import { openAiErrors } from './errors.js';
import { chatBody } from './foreign-chat.js';
import { responsesBody } from './foreign-responses.js';
import { endedJob } from './responses-background.js';
import { type ResponsesRequest, responseFiles } from './responses-input.js';
import { maxStoredLength, repeatedOf } from './responses-repeated.js';
import { parseResponses } from './responses-request.js';

/** Requests of a batch to OpenAI's API. */
export const offlineRoutes = {
  '/v1/chat/completions': {
    errorForm: openAiErrors,
    answerOf: completionOf,
    parse: async (sent, fillFiles) => {
      const body = check(sent, chatBody);
      await fillFiles(body, chatFiles);
      const parsed = parseChat(body);
      return { parsed, isLegacyCall: parsed.isLegacyCall };
    },
  },
  '/v1/responses': {
    errorForm: openAiErrors,
    answerOf: endedJob,
    parse: async (sent, fillFiles) => {
      const body = check(sent, responsesBody);
      refuseStored(body);
      await fillFiles(body, responseFiles);
      return { parsed: parseResponses(body), repeated: repeatedOf(body, maxStoredLength) };
    },
  },
} as const satisfies Readonly<Record<string, OfflineRoute>>;

/** Returns a function that writes the chat completion of a background job. */
function completionOf(job: JobView) {
  return chatCompletionFormat(Math.floor(job.createdAt / 1000), true, formOf(job).line?.isLegacyCall).body;
}

/** Refuses what needs stored responses, or would store one. */
function refuseStored({ previous_response_id: previous, background, input }: ResponsesRequest): void {
  if (previous != null) throw invalid('previous_response_id', 'is not supported in a batch');
  if (background === true) throw invalid('background', 'is not supported in a batch');
  const at = typeof input === 'string' ? -1 : input.findIndex(({ type }) => type === 'item_reference');
  if (at >= 0) throw invalid(`input.${at}.type`, 'item_reference is not supported in a batch');
}
