import type { JobRequest } from '../../shared/job.js';
import { messageTexts } from '../../shared/text/turns.js';

/** Parts of a job that the model reads. */
export type PromptParts = Pick<JobRequest, 'text' | 'history'> &
  Partial<Pick<JobRequest, 'results' | 'offer' | 'system' | 'schema'>>;

/** Returns the texts of a prompt. APIs write a tool as JSON. */
export function promptTexts({ system, history, schema, offer, ...question }: PromptParts): string[] {
  const tools = (offer?.tools ?? []).map(
    ({ name, description, schema: input }) =>
      `{"name":${JSON.stringify(name)},"description":${JSON.stringify(description)},"input_schema":${input}}`,
  );
  return [system ?? '', ...[...history, question].flatMap(messageTexts), schema ?? '', ...tools];
}
