import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { JobView } from '../../shared/background.js';
import { invalid, type RelayError } from '../../shared/errors.js';
import type { EndCause } from '../../shared/files.js';
import { check, readJsonBytes } from '../../worker/http/body.js';
import { formOf } from '../../worker/jobs/background.js';
import type { BatchLines, FillFiles, LineAnswer, ParsedLine } from '../../worker/jobs/batch-lines.js';
import { chatCompletionFormat } from './chat.js';
import { chatFiles, parseChat } from './chat-request.js';
import { openAiErrors } from './errors.js';
import { chatBody } from './foreign-chat.js';
import { responsesBody } from './foreign-responses.js';
import { endedJob } from './responses-background.js';
import { type ResponsesRequest, responseFiles } from './responses-input.js';
import { maxStoredLength, repeatedOf } from './responses-repeated.js';
import { parseResponses } from './responses-request.js';

const maxIdLength = 512;

const customId = z
  .string('must be text')
  .min(1, 'must not be empty')
  .max(maxIdLength, `must have at most ${maxIdLength} characters`);

const requestLine = z.looseObject({
  custom_id: customId,
  method: z.literal('POST', 'must be POST'),
  url: z.string('must be text'),
  body: z.record(z.string(), z.unknown(), 'must be an object'),
});

const ended: Readonly<Record<EndCause, { readonly code: string; readonly message: string }>> = {
  canceled: { code: 'batch_cancelled', message: 'This request was not executed, because the batch was cancelled.' },
  expired: {
    code: 'batch_expired',
    message: 'This request could not be executed before the completion window expired.',
  },
};

/** Returns the parts of the lines of OpenAI's batches that are the same for all endpoints. */
function openAiLines(
  route: '/v1/chat/completions' | '/v1/responses',
  answerOf: BatchLines['answerOf'],
  parse: (body: Readonly<Record<string, unknown>>, fillFiles: FillFiles) => Promise<ParsedLine>,
): BatchLines {
  return {
    route,
    answerOf,
    customIdIn: (id) => customId.safeParse(id).data ?? null,
    parse: async (bytes, fillFiles) => {
      const { url, body } = await readJsonBytes(bytes, requestLine);
      if (url !== route) throw invalid('url', `must be ${route}, the endpoint of the batch`);
      return parse(body, fillFiles);
    },
    answered: (id, { requestId, body, ignored }: LineAnswer) => {
      const more = ignored.length === 0 ? '' : `,"ignored_parameters":${JSON.stringify(ignored)}`;
      const response = `{"status_code":200,"request_id":${JSON.stringify(requestId)},"body":${body}${more}}`;
      return lineText(id, response, 'null');
    },
    failed: (id, requestId, error: RelayError) => {
      const { status, body } = openAiErrors(error, requestId);
      return lineText(id, JSON.stringify({ status_code: status, request_id: requestId, body }), 'null');
    },
    ended: (id, cause) => lineText(id, 'null', JSON.stringify(ended[cause])),
  };
}

function lineText(id: string | null, response: string, error: string): string {
  const custom = JSON.stringify(id);
  return `{"id":"batch_req_${randomUUID()}","custom_id":${custom},"response":${response},"error":${error}}`;
}

/** Returns a function that writes the chat completion of a background job. */
function completionOf(job: JobView) {
  return chatCompletionFormat(Math.floor(job.createdAt / 1000), true, formOf(job).line?.isLegacyCall).body;
}

export const chatBatchLines = openAiLines('/v1/chat/completions', completionOf, async (sent, fillFiles) => {
  const body = check(sent, chatBody);
  await fillFiles(body, chatFiles);
  const parsed = parseChat(body);
  return { parsed, isLegacyCall: parsed.isLegacyCall };
});

export const responsesBatchLines = openAiLines('/v1/responses', endedJob, async (sent, fillFiles) => {
  const body = check(sent, responsesBody);
  refuseStored(body);
  await fillFiles(body, responseFiles);
  return { parsed: parseResponses(body), repeated: repeatedOf(body, maxStoredLength) };
});

/** Refuses what needs stored responses, or would store one. */
function refuseStored({ previous_response_id: previous, background, input }: ResponsesRequest): void {
  if (previous != null) throw invalid('previous_response_id', 'is not supported in a batch');
  if (background === true) throw invalid('background', 'is not supported in a batch');
  const at = typeof input === 'string' ? -1 : input.findIndex(({ type }) => type === 'item_reference');
  if (at >= 0) throw invalid(`input.${at}.type`, 'item_reference is not supported in a batch');
}
