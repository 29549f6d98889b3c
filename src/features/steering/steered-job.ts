import type { Job } from '../../primary/jobs/job.js';
import { invalid } from '../../shared/errors.js';
import { maxAddedBytes } from '../../shared/turn-figures.js';

/** Messages that a running turn takes. */
const maxAdded = 20;

/** Throws `validation_error` for an answer that cannot end early, because it is no plain text. */
export function checkInterrupt({ request }: Pick<Job, 'request'>): void {
  const { schema, offer, search } = request;
  if (schema !== null || offer !== undefined || search !== undefined)
    throw invalid('interrupt', 'needs an answer in plain text, without a schema, tools and web searches');
}

/**
 * Ends the answer early and keeps its text, or does so as soon as the model begins. Returns false if the model does not
 * run or has answered. Throws like `checkInterrupt`.
 */
export function interruptJob(job: Job): boolean {
  checkInterrupt(job);
  const { turnControl, isRunning } = job;
  if (!isRunning || turnControl === 'answered') return false;
  const isEnded = turnControl === 'none' || turnControl.interrupt();
  job.isInterrupted ||= isEnded;
  return isEnded;
}

/** Adds a message to the turn. Resolves with false if the model does not get it, or if the turn has too many. */
export async function addMessage({ turnControl, turn, addedTexts }: Job, text: string): Promise<boolean> {
  if (typeof turnControl !== 'object') return false;
  const bytes = [...addedTexts, text].reduce((sum, each) => sum + Buffer.byteLength(each), 0);
  const fits = addedTexts.length < maxAdded && bytes <= maxAddedBytes && turn?.fits(bytes) !== false;
  if (!fits) return false;
  addedTexts.push(text);
  return turnControl.addMessage(text);
}
