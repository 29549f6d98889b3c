import { eventText } from '../http/event-stream.js';
import {
  type AnswerFormat,
  type CompletedAnswer,
  type Opening,
  SdkStream,
  type StreamFormat,
} from '../jobs/run-job.js';
import { openAiStreamError } from '../jobs/sdk-errors.js';

type ResponseStatus = 'queued' | 'in_progress' | 'completed' | 'incomplete' | 'failed' | 'cancelled';

/** `nowSeconds` is the time of the answer, since the epoch. */
export function responseFormat(nowSeconds: number): AnswerFormat {
  return {
    isForSdks: true,
    body: (answer) => endedResponse(answer, nowSeconds),
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

function endedResponse(answer: CompletedAnswer, createdAt: number): object {
  const status = statusOf(answer);
  const details = status === 'incomplete' ? { reason: 'content_filter' } : null;
  const output = hasItem(answer) ? [itemOf(answer, answer.text, status)] : [];
  return { ...responseOf(answer, createdAt, status), incomplete_details: details, output, usage: usageOf(answer) };
}

function statusOf({ ending }: CompletedAnswer): ResponseStatus {
  return ending === 'refusal' ? 'incomplete' : 'completed';
}

/** A call that the model refuses was never made. */
function hasItem({ tool, ending }: CompletedAnswer): boolean {
  return tool === null || ending !== 'refusal';
}

function usageOf({ usage }: CompletedAnswer): object {
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
class ResponseStream extends SdkStream implements StreamFormat {
  readonly #opening: Opening;
  readonly #createdAt: number;
  #next = 0;

  constructor(opening: Opening, createdAt: number) {
    super();
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

  end(answer: CompletedAnswer): string {
    const status = statusOf(answer);
    const item = itemOf(answer, answer.text, status);
    return [
      ...(hasItem(answer) ? this.#wholeText(answer) : []),
      hasItem(answer) ? this.#event('response.output_item.done', { ...onlyItem, item }) : '',
      this.#event(`response.${status}`, { response: endedResponse(answer, this.#createdAt) }),
    ].join('');
  }

  /** With the error one level down, as all versions of the SDKs know it; the newest would find it at the top, too. */
  failure(error: Parameters<StreamFormat['failure']>[0]): string {
    return this.#event('error', openAiStreamError(error));
  }

  #wholeText({ text, tool }: CompletedAnswer): string[] {
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
