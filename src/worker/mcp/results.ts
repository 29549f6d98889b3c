import type { AcceptedView, JobView } from '../../shared/background.js';
import { type Clock, timestamp } from '../../shared/clock.js';
import { fromWire, type PublicCode, type RelayError } from '../../shared/errors.js';
import type { WaitReason } from '../../shared/job.js';
import { writtenEvent } from '../http/event-stream.js';
import type { ErrorForm, Reply } from '../http/exchange.js';
import { publicCodeOf } from '../http/responses.js';
import { listedJob } from '../jobs/background.js';
import type { AnswerFormat, CompletedAnswer, StreamFormat } from '../jobs/run-job.js';
import { type RequestId, refusalOf, type WriteAnswer, WrongCall } from './messages.js';
import type { JobOutput } from './tools.js';

/** Results of the tools that the Model Context Protocol offers. */

type Value = Readonly<Record<string, unknown>>;

interface CallResult {
  readonly content: readonly { readonly type: 'text'; readonly text: string }[];
  readonly structuredContent?: Value;
  readonly isError?: true;
}

function text(...texts: readonly string[]): Pick<CallResult, 'content'> {
  return { content: texts.map((each) => ({ type: 'text', text: each })) };
}

/** Returns a value, also as text for clients without support for structured content. */
export function valueResult(value: Value): CallResult {
  return { ...text(JSON.stringify(value)), structuredContent: value };
}

export function acceptedResult({ id, createdAt, isDurable }: AcceptedView): CallResult {
  return valueResult({ job_id: id, status: 'queued', created_at: timestamp(createdAt), durable: isDurable });
}

/** Returns a job that has not succeeded. */
export function jobResult(job: JobView): CallResult {
  const listed = listedJob(job);
  if (job.failure === null) return valueResult(listed);
  const error = fromWire(job.failure);
  const output: JobOutput = { ...listed, error: { code: publicCodeOf(error), message: error.message } };
  return { ...failedResult(error), structuredContent: output };
}

export function succeededResult(job: JobView, answer: CompletedAnswer): CallResult {
  const { text: response, value } = answer;
  const listed = listedJob(job);
  const output: JobOutput = { ...listed, response, ...(value !== undefined && { structured: placed(value) }) };
  return { ...text(JSON.stringify(listed), response), structuredContent: output };
}

/** Marks the placeholder of a JSON value, which replaces it later. */
function placed(value: string): Value {
  return value as unknown as Value;
}

function askResult({ text: answer, value }: CompletedAnswer): CallResult {
  return { ...text(answer), ...(value !== undefined && { structuredContent: placed(value) }) };
}

function failedResult(error: RelayError): CallResult {
  const { message, reason } = error;
  const code = publicCodeOf(error);
  return { ...text(`${reason === undefined ? code : `${code} (${reason})`}: ${message}`), isError: true };
}

/** Errors that the calling model can react to. */
const forModels: readonly PublicCode[] = ['validation_error', 'not_found', 'cli_error', 'spawn_error'];

/**
 * Returns the form of a tool call's errors. Failures of a job, and errors that the calling model can react to, are
 * results; all others are JSON-RPC errors.
 */
export function toolErrors(id: RequestId, answer: WriteAnswer, { locals }: Reply): ErrorForm {
  const refusal = refusalOf(id);
  return (error, requestId) => {
    const isResult = locals.job !== null || forModels.includes(publicCodeOf(error));
    if (error instanceof WrongCall || !isResult) return refusal(error, requestId);
    return { status: 200, body: answer(failedResult(error)) };
  };
}

export function askFormat(answer: WriteAnswer, token: RequestId | undefined, clock: Clock): AnswerFormat {
  return {
    isForSdks: false,
    body: (completed) => answer(askResult(completed)),
    stream: () => new ProgressStream(answer, token, clock),
  };
}

/** Minimum time between notifications about the text. */
const pauseMs = 1000;

/** Reports the progress of one call. The number grows with each notification and with the text. */
class ProgressStream implements StreamFormat {
  readonly #answer: WriteAnswer;
  readonly #token: RequestId | undefined;
  readonly #clock: Clock;
  #progress = 0;
  #characters = 0;
  #message = 'the job waits';
  #lastMs = Number.NEGATIVE_INFINITY;

  constructor(answer: WriteAnswer, token: RequestId | undefined, clock: Clock) {
    this.#answer = answer;
    this.#token = token;
    this.#clock = clock;
  }

  begin(): string {
    return '';
  }

  queued(position: number, reason: WaitReason): string {
    return this.#notify(`the job waits at position ${position} (${reason})`);
  }

  started(): string {
    return this.#notify('the model works');
  }

  delta(piece: string): string {
    this.#characters += piece.length;
    const now = this.#clock.monotonicMs();
    if (now - this.#lastMs < pauseMs) return '';
    this.#lastMs = now;
    return this.#notify(`the answer has ${this.#characters} characters so far`);
  }

  callStart(): string {
    return '';
  }

  callDelta(): string {
    return '';
  }

  /** Prevents clients from timing out, which some do without progress. */
  ping(): string {
    return this.#notify(this.#message);
  }

  end(answer: CompletedAnswer): string {
    return messageEvent(this.#answer(askResult(answer)));
  }

  failure(error: RelayError): string {
    return messageEvent(this.#answer(failedResult(error)));
  }

  #notify(message: string): string {
    this.#message = message;
    this.#progress = Math.max(this.#progress + 1, this.#characters);
    const params = { progressToken: this.#token, progress: this.#progress, message };
    return messageEvent({ jsonrpc: '2.0', method: 'notifications/progress', params });
  }
}

function messageEvent(message: object): string {
  return writtenEvent('message', JSON.stringify(message));
}
