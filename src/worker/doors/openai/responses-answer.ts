import { eventText } from '../../http/event-stream.js';
import type { AnswerForm, Opening, StreamForm, Told } from '../door.js';
import { openAiStreamError } from './errors.js';

type ResponseStatus = 'queued' | 'in_progress' | 'completed' | 'incomplete' | 'failed' | 'cancelled';

/** `nowSeconds` is the time of the answer, since the epoch. */
export function responseForm(nowSeconds: number): AnswerForm {
  return {
    body: (told) => endedResponse(told, nowSeconds),
    stream: (opening) => new ResponseStream(opening, nowSeconds),
  };
}

/** Of a background job that has no answer, or none yet. */
export function openResponse(opening: Opening, createdAt: number, status: ResponseStatus): object {
  return { ...responseOf(opening, createdAt, status), background: true };
}

/** What this service never has is there all the same, as the API has it. */
function responseOf({ requestId, model, tool }: Opening, createdAt: number, status: ResponseStatus): object {
  return {
    id: `resp_${requestId}`,
    object: 'response',
    created_at: createdAt,
    status,
    background: false,
    error: null,
    incomplete_details: null,
    instructions: null,
    max_output_tokens: null,
    metadata: {},
    model,
    output: [],
    parallel_tool_calls: false,
    previous_response_id: null,
    reasoning: { effort: null, summary: null },
    store: false,
    temperature: null,
    text: { format: { type: 'text' } },
    tool_choice: tool === null ? 'auto' : { type: 'function', name: tool },
    tools: [],
    top_p: null,
    truncation: 'disabled',
    usage: null,
    user: null,
  };
}

function endedResponse(told: Told, createdAt: number): object {
  const status = statusOf(told);
  const details = status === 'incomplete' ? { reason: 'content_filter' } : null;
  const output = hasItem(told) ? [itemOf(told, told.text, status)] : [];
  return { ...responseOf(told, createdAt, status), incomplete_details: details, output, usage: usageOf(told) };
}

function statusOf({ ending }: Told): ResponseStatus {
  return ending === 'refusal' ? 'incomplete' : 'completed';
}

/** A call that the model refuses was never made. */
function hasItem({ tool, ending }: Told): boolean {
  return tool === null || ending !== 'refusal';
}

function usageOf({ usage }: Told): object {
  return {
    input_tokens: usage.input,
    input_tokens_details: { cached_tokens: usage.cacheRead },
    output_tokens: usage.output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: usage.input + usage.output,
  };
}

/** The one item of an answer. A text of null: it has none yet. */
function itemOf(opening: Opening, text: string | null, status: ResponseStatus): object {
  const { requestId, tool } = opening;
  if (tool === null) {
    const content = text === null ? [] : [textPart(text)];
    return { id: itemId(opening), type: 'message', status, role: 'assistant', content };
  }
  const call = { call_id: `call_${requestId}`, name: tool, arguments: text ?? '' };
  return { id: itemId(opening), type: 'function_call', status, ...call };
}

function itemId({ requestId, tool }: Opening): string {
  return `${tool === null ? 'msg' : 'fc'}_${requestId}`;
}

function textPart(text: string): object {
  return { type: 'output_text', annotations: [], logprobs: [], text };
}

const onlyItem = { output_index: 0 };
const onlyPart = { ...onlyItem, content_index: 0 };

/**
 * Owns the numbers of a stream's events. The item is begun at once, before there is anything in it: an error before the
 * first item makes the AI SDK send the request again.
 */
class ResponseStream implements StreamForm {
  readonly #opening: Opening;
  readonly #createdAt: number;
  #next = 0;

  constructor(opening: Opening, createdAt: number) {
    this.#opening = opening;
    this.#createdAt = createdAt;
  }

  begin(): string {
    const response = responseOf(this.#opening, this.#createdAt, 'in_progress');
    const item = itemOf(this.#opening, null, 'in_progress');
    return [
      this.#event('response.created', { response }),
      this.#event('response.in_progress', { response }),
      this.#event('response.output_item.added', { ...onlyItem, item }),
      this.#isCall ? '' : this.#ofItem('response.content_part.added', { ...onlyPart, part: textPart('') }),
    ].join('');
  }

  delta(text: string): string {
    if (this.#isCall) return this.#ofItem('response.function_call_arguments.delta', { ...onlyItem, delta: text });
    return this.#ofItem('response.output_text.delta', { ...onlyPart, delta: text, logprobs: [] });
  }

  end(told: Told): string {
    const status = statusOf(told);
    const item = itemOf(told, told.text, status);
    return [
      ...(hasItem(told) ? this.#wholeText(told) : []),
      hasItem(told) ? this.#event('response.output_item.done', { ...onlyItem, item }) : '',
      this.#event(`response.${status}`, { response: endedResponse(told, this.#createdAt) }),
    ].join('');
  }

  /** With the error one level down, as all versions of the SDKs know it; the newest would find it at the top, too. */
  failure(error: Parameters<StreamForm['failure']>[0]): string {
    return this.#event('error', openAiStreamError(error));
  }

  #wholeText({ text, tool }: Told): string[] {
    if (tool !== null)
      return [this.#ofItem('response.function_call_arguments.done', { ...onlyItem, name: tool, arguments: text })];
    return [
      this.#ofItem('response.output_text.done', { ...onlyPart, text, logprobs: [] }),
      this.#ofItem('response.content_part.done', { ...onlyPart, part: textPart(text) }),
    ];
  }

  get #isCall(): boolean {
    return this.#opening.tool !== null;
  }

  #ofItem(type: string, content: object): string {
    return this.#event(type, { item_id: itemId(this.#opening), ...content });
  }

  #event(type: string, content: object): string {
    return eventText(type, { type, sequence_number: this.#next++, ...content });
  }
}
