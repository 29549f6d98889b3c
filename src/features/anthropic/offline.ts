import { invalid } from '../../shared/errors.js';
import { check } from '../../worker/http/body.js';
import type { OfflineRoutes } from '../../worker/jobs/offline-routes.js';
import { fileForms } from './attachments.js';
import { anthropicErrors } from './errors.js';
import { messagesBody } from './foreign-messages.js';
import { messageBody } from './messages.js';
import { parseMessages } from './messages-request.js';

/** Requests of a batch to Anthropic's API. */
export const offlineRoutes: OfflineRoutes = {
  '/v1/messages': {
    errorForm: anthropicErrors,
    answerOf: () => messageBody,
    parse: async (sent, fillFiles) => {
      const body = check(sent, messagesBody);
      if (body.max_tokens === 0) throw invalid('max_tokens', 'must be at least 1 in a batch');
      await fillFiles(body, fileForms);
      return { parsed: parseMessages(body) };
    },
  },
};
