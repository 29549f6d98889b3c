import type { FailedOutcome, JobDone, JobFailed, JobRequest } from '../../src/shared/job.js';

/** A request of a caller without a key for a whole answer. */
export function jobRequest(differences: Partial<JobRequest> = {}): JobRequest {
  return {
    operation: 'ask',
    requestId: 'request 1',
    client: 'a',
    conversationId: null,
    text: 'Hi',
    system: null,
    model: null,
    isStreamed: false,
    ...differences,
  };
}

const figures = { type: 'job-end', queueMs: 0, executionMs: 0, processorMs: null, peakMemoryBytes: null } as const;

export function jobDone(differences: Partial<JobDone> = {}): JobDone {
  const usage = { inputTokens: null, outputTokens: null, costUsd: null };
  return { ...figures, outcome: 'ok', text: null, model: null, usage, conversation: null, ...differences };
}

export function jobFailed(outcome: FailedOutcome, differences: Partial<JobFailed> = {}): JobFailed {
  return { ...figures, outcome, failure: { code: outcome, message: 'it failed' }, ...differences };
}
