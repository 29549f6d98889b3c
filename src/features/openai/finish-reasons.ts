import type { Ending } from '../../worker/jobs/answer-format.js';

/** Names of the ends of an answer. The Responses API gives a reason only for incomplete answers. */
export const finishReasons = {
  whole: { chat: 'stop', responses: null },
  'stop-sequence': { chat: 'stop', responses: null },
  'tool-call': { chat: 'tool_calls', responses: null },
  length: { chat: 'length', responses: 'max_output_tokens' },
  refusal: { chat: 'content_filter', responses: 'content_filter' },
} as const satisfies Readonly<Record<Ending, object>>;
