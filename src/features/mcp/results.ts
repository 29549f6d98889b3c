import type { AcceptedView, JobView } from '../../shared/background.js';
import { type Clock, timestamp } from '../../shared/clock.js';
import { fromWire, type PublicCode, type RelayError } from '../../shared/errors.js';
import type { WaitReason } from '../../shared/job.js';
import { writtenEvent } from '../../worker/http/event-stream.js';
import type { ErrorForm, Reply } from '../../worker/http/exchange.js';
import { publicCodeOf } from '../../worker/http/responses.js';
import type { AnswerFormat, CompletedAnswer, StreamFormat, WrittenEvent } from '../../worker/jobs/answer-format.js';
import { listedJob } from '../background/answers.js';
import { errorForm, ProtocolError, type RequestId, type WrapResult } from './messages.js';
import type { JobOutput } from './tools.js';

/** Results of the tools that this server offers by the Model Context Protocol. */

type Value = Readonly<Record<string, unknown>>;

interface CallResult {
  readonly content: readonly { readonly type: 'text'; readonly text: string }[];
  readonly structuredContent?: Value;
  readonly isError?: true;
}

function textResult(...texts: readonly string[]): CallResult {
  return { content: texts.map((text) => ({ type: 'text', text })) };
}

/** Returns a value as structured content, and as text for clients that do not support structured content. */
export function valueResult(value: Value): CallResult {
  return { ...textResult(JSON.stringify(value)), structuredContent: value };
}

export function acceptedResult({ id, createdAt, isDurable }: AcceptedView): CallResult {
  return valueResult({ job_id: id, status: 'queued', created_at: timestamp(createdAt), durable: isDurable });
}

/** Returns the result for a job that has not succeeded. */
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
  const output: JobOutput = { ...listed, response, ...(value !== undefined && { structured: placeholder(value) }) };
  return { ...textResult(JSON.stringify(listed), response), structuredContent: output };
}

/** Types a placeholder as the JSON value that will replace it. */
function placeholder(value: string): Value {
  return value as unknown as Value;
}

/** Says in a separate text that the answer is only a piece: results of tools have no field for it. */
function askResult({ text, value, ending }: CompletedAnswer): CallResult {
  const texts =
    ending === 'length' ? [text, 'The answer is incomplete: the model reached a limit of its output.'] : [text];
  return { ...textResult(...texts), ...(value !== undefined && { structuredContent: placeholder(value) }) };
}

function failedResult(error: RelayError): CallResult {
  const { message, reason } = error;
  const code = publicCodeOf(error);
  return { ...textResult(`${reason === undefined ? code : `${code} (${reason})`}: ${message}`), isError: true };
}

/** Errors that the calling model can correct or report. */
const correctableErrors: readonly PublicCode[] = ['validation_error', 'not_found', 'cli_error', 'spawn_error'];

/**
 * Returns the form of errors of one tool call. Errors of a job, and errors that the calling model can correct or
 * report, become results; all others become JSON-RPC errors.
 */
export function toolErrorForm(id: RequestId, wrapResult: WrapResult, { locals }: Reply): ErrorForm {
  const rpcForm = errorForm(id);
  return (error, requestId) => {
    const isResult = locals.job !== null || correctableErrors.includes(publicCodeOf(error));
    if (error instanceof ProtocolError || !isResult) return rpcForm(error, requestId);
    return { status: 200, body: wrapResult(failedResult(error)) };
  };
}

export function askFormat(wrapResult: WrapResult, token: RequestId | undefined, clock: Clock): AnswerFormat {
  return {
    isForSdks: false,
    body: (answer) => wrapResult(askResult(answer)),
    stream: () => new ProgressStream(wrapResult, token, clock),
  };
}

/** Minimum time between two notifications about the length of the answer. */
const notifyIntervalMs = 1000;

/** Reports the progress of one call. `progress` grows with each notification, as MCP requires, and with the answer. */
class ProgressStream implements StreamFormat {
  readonly #wrapResult: WrapResult;
  readonly #token: RequestId | undefined;
  readonly #clock: Clock;
  #progress = 0;
  #characters = 0;
  #message = 'the job waits';
  #lastNotifyMs = Number.NEGATIVE_INFINITY;

  constructor(wrapResult: WrapResult, token: RequestId | undefined, clock: Clock) {
    this.#wrapResult = wrapResult;
    this.#token = token;
    this.#clock = clock;
  }

  formatBeginning(): string {
    return '';
  }

  formatPosition(position: number, reason: WaitReason): string {
    return this.#notify(`the job waits at position ${position} (${reason})`);
  }

  formatStart(): string {
    return this.#notify('the model is working');
  }

  formatEvent(event: WrittenEvent): string {
    if (event.type !== 'text-delta') return '';
    this.#characters += event.text.length;
    const now = this.#clock.monotonicMs();
    if (now - this.#lastNotifyMs < notifyIntervalMs) return '';
    this.#lastNotifyMs = now;
    return this.#notify(`the answer has ${this.#characters} characters so far`);
  }

  /** Repeats the last message, because some clients time out without progress. */
  ping(): string {
    return this.#notify(this.#message);
  }

  formatEnd(answer: CompletedAnswer): string {
    return messageEvent(this.#wrapResult(askResult(answer)));
  }

  formatFailure(error: RelayError): string {
    return messageEvent(this.#wrapResult(failedResult(error)));
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
