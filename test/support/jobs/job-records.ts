import type { JobForm } from '../../../src/shared/background.js';
import type { FailedOutcome, JobDone, JobFailed, JobRequest } from '../../../src/shared/job.js';

export const plainForm: JobForm = { route: '/ask', model: null, isStructured: false };

/** Returns the request for a plain answer of a client without a key. */
export function jobRequest(differences: Partial<JobRequest> = {}): JobRequest {
  return {
    operation: 'ask',
    requestId: 'request 1',
    client: 'key a',
    conversationId: null,
    text: 'Hi',
    images: [],
    system: null,
    model: null,
    schema: null,
    effort: null,
    isEffortNeeded: true,
    stop: [],
    history: [],
    chain: null,
    isStreamed: false,
    ...differences,
  };
}

const figures = { type: 'job-end', queueMs: 0, executionMs: 0, processorMs: null, peakMemoryBytes: null } as const;

export function jobDone(differences: Partial<JobDone> = {}): JobDone {
  const usage = { inputTokens: null, outputTokens: null, costUsd: null, cacheReadTokens: null, cacheWriteTokens: null };
  const answer = { text: null, model: null, usage, estimate: null, stopSequence: null, conversation: null };
  return { ...figures, outcome: 'ok', ...answer, ...differences };
}

export function jobFailed(outcome: FailedOutcome, differences: Partial<JobFailed> = {}): JobFailed {
  return { ...figures, outcome, failure: { code: outcome, message: 'it failed' }, ...differences };
}
