import type { ConversationSnapshot } from './conversation.js';
import type { ErrorCode, ErrorExtras } from './errors.js';

export const operations = ['ask', 'chat'] as const;
export type Operation = (typeof operations)[number];

/** How a job that was admitted can end. Exactly one of these, once. */
export const outcomes = [
  'ok',
  'timeout',
  'queue_timeout',
  'cli_error',
  'spawn_error',
  'cancelled',
  'shutting_down',
  'internal_error',
] as const;
export type Outcome = (typeof outcomes)[number];
export type FailedOutcome = Exclude<Outcome, 'ok'>;

/** Tokens and cost as the model CLI reports them; null where it reports nothing. */
export interface Usage {
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
  readonly costUsd: number | null;
}

/** A RelayError as a record, which can cross the channel. */
export interface Failure extends ErrorExtras {
  readonly code: ErrorCode;
  readonly message: string;
}

/** One request for one answer. `client` is the API key's name, else the IP address: the unit of fairness. */
export interface JobRequest {
  readonly operation: Operation;
  readonly requestId: string;
  readonly client: string;
  /** Name of the API key, empty without one: whose conversations these are. */
  readonly owner: string;
  /** For `chat`: the conversation to go on with, null for a new one. */
  readonly conversationId: string | null;
  readonly text: string;
  readonly system: string | null;
  readonly model: string | null;
  /** Whether the caller wants to be told its position while it waits. */
  readonly wantsPositions: boolean;
}

/** The job waits: so many slots must be granted until it has one, as things stand. */
export interface JobQueued {
  readonly type: 'job-queued';
  readonly position: number;
}

export interface JobStart {
  readonly type: 'job-start';
  readonly queueMs: number;
}

export interface TextDelta {
  readonly type: 'text-delta';
  readonly text: string;
}

/** The answer is what the deltas add up to, unless `text` says otherwise (a CLI may correct itself at the end). */
export interface JobDone {
  readonly type: 'job-end';
  readonly outcome: 'ok';
  readonly text: string | null;
  readonly model: string | null;
  readonly usage: Usage;
  /** For `chat`: the conversation with this turn in it. */
  readonly conversation: ConversationSnapshot | null;
  readonly queueMs: number;
  readonly executionMs: number;
}

export interface JobFailed {
  readonly type: 'job-end';
  readonly outcome: FailedOutcome;
  readonly failure: Failure;
  readonly queueMs: number;
  readonly executionMs: number;
}

export type JobEnd = JobDone | JobFailed;
export type JobEvent = JobQueued | JobStart | TextDelta | JobEnd;
