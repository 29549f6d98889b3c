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

/** `nowSeconds` is the time of the answer, since the epoch. */
export function chatCompletionForm(nowSeconds: number, wantsUsage: boolean): AnswerForm {
  return {
    body: (told) => bodyOf(told, nowSeconds),
    stream: (opening) => new ChatCompletionStream(opening, nowSeconds, wantsUsage),
  };
}

function bodyOf(told: Told, created: number): object {
  const { requestId, model, ending } = told;
  const choice = { index: 0, message: messageOf(told), logprobs: null, finish_reason: finishReasons[ending] };
  return { id: idOf(requestId), object: 'chat.completion', created, model, choices: [choice], usage: usageOf(told) };
}

function messageOf({ requestId, text, tool, ending }: Told): object {
  if (tool === null || ending === 'refusal') return { role: 'assistant', content: text, refusal: null };
  const call = { id: callId(requestId), type: 'function', function: { name: tool, arguments: text } };
  return { role: 'assistant', content: null, refusal: null, tool_calls: [call] };
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
  readonly #wantsUsage: boolean;
  #hasCall = false;

  constructor(opening: Opening, created: number, wantsUsage: boolean) {
    this.#opening = opening;
    this.#created = created;
    this.#wantsUsage = wantsUsage;
  }

  begin(): string {
    return this.#choice({ role: 'assistant', content: this.#opening.tool === null ? '' : null });
  }

  delta(text: string): string {
    if (this.#opening.tool === null) return this.#choice({ content: text });
    return this.#callStart() + this.#choice({ tool_calls: [{ index: 0, function: { arguments: text } }] });
  }

  end(told: Told): string {
    const last = this.#choice({}, finishReasons[told.ending]);
    const usage = this.#wantsUsage ? this.#chunk({ choices: [], usage: usageOf(told) }) : '';
    return `${last}${usage}data: [DONE]\n\n`;
  }

  failure(error: Parameters<StreamForm['failure']>[0]): string {
    return `data: ${JSON.stringify(openAiStreamError(error))}\n\n`;
  }

  #callStart(): string {
    if (this.#hasCall) return '';
    this.#hasCall = true;
    const { tool, requestId } = this.#opening;
    const call = { index: 0, id: callId(requestId), type: 'function', function: { name: tool, arguments: '' } };
    return this.#choice({ tool_calls: [call] });
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
