import { messageFormat } from '../../features/anthropic/messages.js';
import type { JobView } from '../../shared/background.js';
import type { CompletedAnswer } from '../jobs/answer-format.js';
import { formOf } from '../jobs/background.js';
import { chatCompletionFormat } from '../openai/chat.js';
import { endedJob } from '../openai/responses-background.js';

/** Returns a function that writes the answer of a background job in the form of an SDK's API. */
export function doorBody(job: JobView): (answer: CompletedAnswer) => object {
  const { route, line } = formOf(job);
  if (route === '/v1/messages') return messageFormat(0).body;
  if (route === '/v1/responses') return endedJob(job);
  return chatCompletionFormat(Math.floor(job.createdAt / 1000), true, line?.isLegacyCall).body;
}
