import type { BackgroundJobView } from '../../shared/background.js';
import { toldOf } from '../doors/door.js';
import { responseForm } from '../doors/openai/responses-answer.js';
import type { Answer } from '../jobs/running-job.js';
import { askResultOf } from '../routes/ask.js';
import { chatResultOf } from '../routes/chat.js';

/** The body that the plain request would have been answered with. */
export function resultOf(job: BackgroundJobView, answer: Answer): object {
  const { route, model, tool } = job.form;
  if (route === '/ask') return askResultOf(answer, job.requestId);
  if (route === '/chat') return chatResultOf(answer, job.requestId);
  const told = toldOf(answer, { requestId: job.id, model: model ?? '', tool });
  return { ...responseForm(Math.floor(job.createdAt / 1000)).body(told), background: true };
}
