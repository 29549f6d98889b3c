import type { RelayError } from '../../shared/errors.js';
import { type JobDone, type JobEvent, unknownJobUsage, type WaitReason } from '../../shared/job.js';

/** Why an answer has ended: it was whole, a stop sequence came, it is a call of a function, or the model refuses. */
export type Ending = 'whole' | 'stop-sequence' | 'tool-call' | 'refusal';

/** An answer, as a format writes it. */
export interface CompletedAnswer {
  readonly requestId: string;
  /** The one that has answered, as far as it is known; else as the caller named it. */
  readonly model: string;
  /** The function that the answer is a call of. */
  readonly tool: string | null;
  /** Stands for the text, which may be long: only for JSON strings. */
  readonly text: string;
  /** Of a job with a schema: stands for the value that the text is. */
  readonly value: string | undefined;
  readonly ending: Ending;
  readonly stopSequence: string | null;
  readonly usage: TokenUsage;
  readonly end: JobDone;
}

/** Tokens: as the model CLI reports them, else as the tokenizer counts them. */
export interface TokenUsage {
  /** All of the input, what was cached included. */
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
}

/** What is known when a stream begins. */
export type Opening = Pick<CompletedAnswer, 'requestId' | 'model' | 'tool'>;

/** How an API writes a streamed answer: server-sent events. An empty text sends nothing. */
export interface StreamFormat {
  begin(): string;
  queued(position: number, reason: WaitReason): string;
  started(queueMs: number): string;
  delta(text: string): string;
  /** May repeat the whole text, in JSON strings. */
  end(answer: CompletedAnswer): string;
  failure(error: RelayError): string;
}

/** How an API writes answers. */
export interface AnswerFormat {
  /** Where SDKs read it, a refusal by the model is an answer, and a failure says whether to try again. */
  readonly isForSdks: boolean;
  body(answer: CompletedAnswer): object;
  stream(opening: Opening): StreamFormat;
}

/** What the streams for SDKs have in common: they know no events of the queue, but skip comments. */
export abstract class SdkStream {
  queued(position: number): string {
    return `: queued ${position}\n\n`;
  }

  started(_queueMs: number): string {
    return '';
  }
}

/** What an event says in this format, but for the end of the job. */
export function eventIn(format: StreamFormat, event: JobEvent): string {
  switch (event.type) {
    case 'job-admitted':
      return format.begin();
    case 'job-queued':
      return format.queued(event.position, event.reason);
    case 'job-start':
      return format.started(event.queueMs);
    case 'text-delta':
      return format.delta(event.text);
    case 'job-end':
      return '';
  }
}

/** An answer whose end is known. */
export function completed(
  { requestId, model, tool }: Opening,
  { text, value, end }: Pick<CompletedAnswer, 'text' | 'value' | 'end'>,
): CompletedAnswer {
  const { stopSequence } = end;
  const whole = stopSequence === null ? 'whole' : 'stop-sequence';
  const ending = tool === null ? whole : 'tool-call';
  const usage = tokensOf(end);
  return { requestId, model: end.model ?? model, tool, text, value, ending, stopSequence, usage, end };
}

function tokensOf({ usage, estimate }: JobDone): TokenUsage {
  return {
    input: usage.inputTokens ?? estimate?.inputTokens ?? 0,
    output: usage.outputTokens ?? estimate?.outputTokens ?? 0,
    cacheRead: usage.cacheReadTokens ?? 0,
    cacheWrite: usage.cacheWriteTokens ?? 0,
  };
}

const unknown = { inputTokens: null, outputTokens: null, costUsd: null, cacheReadTokens: null, cacheWriteTokens: null };

/** The end of an answer that the model refuses. */
export const refusedAnswer: JobDone = {
  type: 'job-end',
  outcome: 'ok',
  text: null,
  model: null,
  usage: unknown,
  estimate: null,
  stopSequence: null,
  conversation: null,
  queueMs: 0,
  executionMs: 0,
  ...unknownJobUsage,
};
