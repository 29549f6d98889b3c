import { subClientByBody } from '../access/authenticate.js';
import { readBody } from '../http/body.js';
import type { AsyncHandler } from '../http/exchange.js';
import {
  type AnswerFormat,
  answerWithJob,
  type CompletedAnswer,
  type Ending,
  type JobParts,
  type Opening,
  SdkStream,
  type StreamFormat,
} from '../jobs/run-job.js';
import { openAiStreamError } from '../jobs/sdk-errors.js';
import { chatCompletionRequest, parseChat } from './chat-request.js';

const finishReasons = {
  whole: 'stop',
  'stop-sequence': 'stop',
  'tool-call': 'tool_calls',
  refusal: 'content_filter',
} as const satisfies Record<Ending, string>;

function usageOf({ usage }: CompletedAnswer): object {
  return {
    prompt_tokens: usage.input,
    completion_tokens: usage.output,
    total_tokens: usage.input + usage.output,
    prompt_tokens_details: { cached_tokens: usage.cacheRead },
  };
}

interface ChatManner {
  readonly wantsUsage: boolean;
  /** Whether a call is written as it was before there were tools. */
  readonly isLegacyCall: boolean;
}

/** `nowSeconds` is the time of the answer, since the epoch. */
export function chatCompletionFormat(nowSeconds: number, wantsUsage: boolean, isLegacyCall = false): AnswerFormat {
  const manner = { wantsUsage, isLegacyCall };
  return {
    isForSdks: true,
    body: (answer) => bodyOf(answer, nowSeconds, manner),
    stream: (opening) => new ChatCompletionStream(opening, nowSeconds, manner),
  };
}

function bodyOf(answer: CompletedAnswer, created: number, { isLegacyCall }: ChatManner): object {
  const { requestId, model } = answer;
  const finish = finishOf(answer, isLegacyCall);
  const choice = { index: 0, message: messageOf(answer, isLegacyCall), logprobs: null, finish_reason: finish };
  return { id: idOf(requestId), object: 'chat.completion', created, model, choices: [choice], usage: usageOf(answer) };
}

function finishOf({ ending }: CompletedAnswer, isLegacyCall: boolean): string {
  return isLegacyCall && ending === 'tool-call' ? 'function_call' : finishReasons[ending];
}

function messageOf({ requestId, text, tool, ending }: CompletedAnswer, isLegacyCall: boolean): object {
  if (tool === null || ending === 'refusal') return { role: 'assistant', content: text, refusal: null };
  const made = { name: tool, arguments: text };
  const calls = { tool_calls: [{ id: callId(requestId), type: 'function', function: made }] };
  return { role: 'assistant', content: null, refusal: null, ...(isLegacyCall ? { function_call: made } : calls) };
}

function idOf(requestId: string): string {
  return `chatcmpl-${requestId}`;
}

function callId(requestId: string): string {
  return `call_${requestId}`;
}

/**
 * Writes events without names: the OpenAI SDK fails at any other in a chat completion. Owns whether the call of a function,
 * if the answer is one, has begun.
 */
class ChatCompletionStream extends SdkStream implements StreamFormat {
  readonly #opening: Opening;
  readonly #created: number;
  readonly #manner: ChatManner;
  #hasCall = false;

  constructor(opening: Opening, created: number, manner: ChatManner) {
    super();
    this.#opening = opening;
    this.#created = created;
    this.#manner = manner;
  }

  begin(): string {
    return this.#choice({ role: 'assistant', content: this.#opening.tool === null ? '' : null });
  }

  delta(text: string): string {
    if (this.#opening.tool === null) return this.#choice({ content: text });
    return this.#callStart() + this.#call({ arguments: text });
  }

  end(answer: CompletedAnswer): string {
    const last = this.#choice({}, finishOf(answer, this.#manner.isLegacyCall));
    const usage = this.#manner.wantsUsage ? this.#chunk({ choices: [], usage: usageOf(answer) }) : '';
    return `${last}${usage}data: [DONE]\n\n`;
  }

  failure(error: Parameters<StreamFormat['failure']>[0]): string {
    return `data: ${JSON.stringify(openAiStreamError(error))}\n\n`;
  }

  #callStart(): string {
    if (this.#hasCall) return '';
    this.#hasCall = true;
    const { tool, requestId } = this.#opening;
    return this.#call({ name: tool, arguments: '' }, { id: callId(requestId), type: 'function' });
  }

  #call(made: object, more: object = {}): string {
    if (this.#manner.isLegacyCall) return this.#choice({ function_call: made });
    return this.#choice({ tool_calls: [{ index: 0, ...more, function: made }] });
  }

  #choice(delta: object, reason: string | null = null): string {
    return this.#chunk({ choices: [{ index: 0, delta, logprobs: null, finish_reason: reason }] });
  }

  #chunk(content: object): string {
    const { requestId, model } = this.#opening;
    const chunk = { id: idOf(requestId), object: 'chat.completion.chunk', created: this.#created, model, ...content };
    return `data: ${JSON.stringify(chunk)}\n\n`;
  }
}

export function postChatCompletions(parts: JobParts): AsyncHandler {
  return async (req, res) => {
    const body = await readBody(req, res, parts.bodies, chatCompletionRequest);
    const usesUser = subClientByBody(req, res, body.user ?? undefined);
    const parsed = parseChat(usesUser ? { ...body, user: undefined } : body);
    const nowSeconds = Math.floor(parts.clock.now() / 1000);
    const format = chatCompletionFormat(nowSeconds, parsed.wantsUsage, parsed.isLegacyCall);
    await answerWithJob(parts, res, parsed, format);
  };
}
