import type { AnswerForm, Ending, Opening, StreamForm, Told } from '../door.js';
import { openAiStreamError } from './errors.js';

const finishReasons = {
  whole: 'stop',
  'stop-sequence': 'stop',
  'tool-call': 'tool_calls',
  refusal: 'content_filter',
} as const satisfies Record<Ending, string>;

function usageOf({ usage }: Told): object {
  return {
    prompt_tokens: usage.input,
    completion_tokens: usage.output,
    total_tokens: usage.input + usage.output,
    prompt_tokens_details: { cached_tokens: usage.cacheRead },
  };
}

interface ChatManner {
  readonly wantsUsage: boolean;
  /** Whether a call is told as it was before there were tools. */
  readonly isLegacyCall: boolean;
}

/** `nowSeconds` is the time of the answer, since the epoch. */
export function chatCompletionForm(nowSeconds: number, wantsUsage: boolean, isLegacyCall = false): AnswerForm {
  const manner = { wantsUsage, isLegacyCall };
  return {
    body: (told) => bodyOf(told, nowSeconds, manner),
    stream: (opening) => new ChatCompletionStream(opening, nowSeconds, manner),
  };
}

function bodyOf(told: Told, created: number, { isLegacyCall }: ChatManner): object {
  const { requestId, model } = told;
  const finish = finishOf(told, isLegacyCall);
  const choice = { index: 0, message: messageOf(told, isLegacyCall), logprobs: null, finish_reason: finish };
  return { id: idOf(requestId), object: 'chat.completion', created, model, choices: [choice], usage: usageOf(told) };
}

function finishOf({ ending }: Told, isLegacyCall: boolean): string {
  return isLegacyCall && ending === 'tool-call' ? 'function_call' : finishReasons[ending];
}

function messageOf({ requestId, text, tool, ending }: Told, isLegacyCall: boolean): object {
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
 * Events without names: the OpenAI SDK stumbles over any other in a chat completion. Owns whether the call has begun, which
 * it only does where there is one.
 */
class ChatCompletionStream implements StreamForm {
  readonly #opening: Opening;
  readonly #created: number;
  readonly #manner: ChatManner;
  #hasCall = false;

  constructor(opening: Opening, created: number, manner: ChatManner) {
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

  end(told: Told): string {
    const last = this.#choice({}, finishOf(told, this.#manner.isLegacyCall));
    const usage = this.#manner.wantsUsage ? this.#chunk({ choices: [], usage: usageOf(told) }) : '';
    return `${last}${usage}data: [DONE]\n\n`;
  }

  failure(error: Parameters<StreamForm['failure']>[0]): string {
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
