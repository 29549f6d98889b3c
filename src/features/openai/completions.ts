import { z } from 'zod';
import { invalid } from '../../shared/errors.js';
import { check } from '../../worker/http/body.js';
import type { AsyncHandler } from '../../worker/http/exchange.js';
import type {
  AnswerFormat,
  CompletedAnswer,
  Opening,
  StreamFormat,
  WrittenEvent,
} from '../../worker/jobs/answer-format.js';
import { answerWithJob, type JobParts } from '../../worker/jobs/run-job.js';
import { readSdkBody } from '../doors/sdk-request.js';
import { SdkStream } from '../doors/sdk-stream.js';
import { usageOf } from './chat.js';
import { chatCompletionRequest, type ParsedChat, parseChat } from './chat-request.js';
import { bodyWithUser } from './content.js';
import { openAiStreamError } from './errors.js';
import { finishReasons } from './finish-reasons.js';

/** The older completions of OpenAI's API. Their prompt becomes the only message of a chat completion. */

const { model, models, stream, stream_options, stop, n, temperature, top_p } = chatCompletionRequest.shape;
const { max_tokens, reasoning_effort, response_format, guided_json, user } = chatCompletionRequest.shape;

export const completionRequest = z.looseObject({
  prompt: z.union(
    [z.string(), z.array(z.string()).length(1)],
    'must be one text: the service takes no tokens and no batch',
  ),
  ...{ model, models, stream, stream_options, stop, n, temperature, top_p },
  ...{ max_tokens, reasoning_effort, response_format, guided_json, user },
  suffix: z.string('must be a string').nullish(),
  echo: z.boolean('must be true or false').nullish(),
  best_of: z.number('must be a number').nullish(),
  logprobs: z.union([z.number(), z.boolean()], 'must be a number').nullish(),
});
type CompletionRequest = z.infer<typeof completionRequest>;

/** Returns the job of a completion. Throws `validation_error` for unsupported requests. */
export function parseCompletion(body: CompletionRequest): ParsedChat {
  refuseUnsupported(body);
  const { prompt, suffix: _, echo: __, best_of: ___, logprobs: ____, ...rest } = body;
  const content = typeof prompt === 'string' ? prompt : (prompt[0] ?? '');
  if (content.trim() === '') throw invalid('prompt', 'must not be blank');
  const parsed = parseChat(check({ ...rest, messages: [{ role: 'user', content }] }, chatCompletionRequest));
  const ignored = body.logprobs === 0 ? [...parsed.ignored, 'logprobs'] : parsed.ignored;
  return { ...parsed, ignored, job: { ...parsed.job, thinking: undefined } }; // a completion has no place for thoughts
}

function refuseUnsupported(body: CompletionRequest): void {
  const { suffix, echo, best_of: best, logprobs } = body;
  if (suffix != null && suffix !== '') throw invalid('suffix', 'is not supported: the model only continues a prompt');
  if (echo === true) throw invalid('echo', 'is not supported');
  if (best != null && best !== 1 && best !== 0) throw invalid('best_of', 'must be 1: the service returns one answer');
  if (logprobs) throw invalid('logprobs', 'is not supported');
  const called = ['tools', 'functions'].find((field) => body[field] != null && !isEmptyList(body[field]));
  if (called !== undefined) throw invalid(called, 'cannot be used here: send the request to /v1/chat/completions');
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

/** Returns the form of a completion. `created`: time of the answer, in seconds since the epoch. */
function completionFormat(created: number, wantsUsage: boolean): AnswerFormat {
  return {
    isForSdks: true,
    showsRefusals: true,
    body: (answer) => {
      const { text, ending } = answer;
      const choices = [choiceOf(text, finishReasons[ending].chat)];
      return { ...headOf(answer, created), choices, usage: usageOf(answer) };
    },
    stream: (opening) => new CompletionStream(opening, created, wantsUsage),
  };
}

function headOf({ requestId, model }: Pick<Opening, 'requestId' | 'model'>, created: number): object {
  return { id: `cmpl-${requestId}`, object: 'text_completion', created, model };
}

function choiceOf(text: string, reason: string | null): object {
  return { text, index: 0, logprobs: null, finish_reason: reason };
}

class CompletionStream extends SdkStream implements StreamFormat {
  readonly #opening: Opening;
  readonly #created: number;
  readonly #wantsUsage: boolean;

  constructor(opening: Opening, created: number, wantsUsage: boolean) {
    super();
    this.#opening = opening;
    this.#created = created;
    this.#wantsUsage = wantsUsage;
  }

  formatBeginning(): string {
    return '';
  }

  formatEvent(event: WrittenEvent): string {
    return event.type === 'text-delta' ? this.#chunk([choiceOf(event.text, null)]) : '';
  }

  formatEnd(answer: CompletedAnswer): string {
    const last = this.#chunk([choiceOf('', finishReasons[answer.ending].chat)], answer);
    const usage = this.#wantsUsage ? this.#chunk([], answer, usageOf(answer)) : '';
    return `${last}${usage}data: [DONE]\n\n`;
  }

  formatFailure(error: Parameters<StreamFormat['formatFailure']>[0]): string {
    return `data: ${JSON.stringify(openAiStreamError(error))}\n\n`;
  }

  /** `usage`: null in all chunks but the last, if the client wants the usage. */
  #chunk(choices: readonly object[], { model }: Pick<Opening, 'model'> = this.#opening, usage: object | null = null) {
    const head = headOf({ ...this.#opening, model }, this.#created);
    return `data: ${JSON.stringify({ ...head, choices, ...(this.#wantsUsage && { usage }) })}\n\n`;
  }
}

export function postCompletions(parts: JobParts): AsyncHandler {
  return async (req, res) => {
    const parsed = parseCompletion(await readSdkBody(req, res, parts, bodyWithUser(completionRequest)));
    const nowSeconds = Math.floor(parts.clock.now() / 1000);
    await answerWithJob(parts, res, parsed, completionFormat(nowSeconds, parsed.wantsUsage));
  };
}
