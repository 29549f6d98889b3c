import { eventText } from '../http/event-stream.js';
import {
  type AnswerFormat,
  type CompletedAnswer,
  type Opening,
  SdkStream,
  type StreamFormat,
} from '../jobs/run-job.js';
import { openAiStreamError } from '../jobs/sdk-errors.js';
import { textIn, type WrittenCall } from '../jobs/tool-offer.js';

type ResponseStatus = 'queued' | 'in_progress' | 'completed' | 'incomplete' | 'failed' | 'cancelled';

/** What a response says of its own storing. */
export interface ResponsePlace {
  readonly store: boolean;
  readonly previous_response_id: string | null;
}

const nowhere: ResponsePlace = { store: false, previous_response_id: null };

/** `nowSeconds` is the time of the answer, since the epoch. */
export function responseFormat(nowSeconds: number, place: () => ResponsePlace = () => nowhere): AnswerFormat {
  return {
    isForSdks: true,
    body: (answer) => ({ ...endedResponse(answer, nowSeconds), ...place() }),
    stream: (opening) => new ResponseStream(opening, nowSeconds, place),
  };
}

/** Of a background job that has no answer, or none yet. */
export function openResponse(opening: Opening, createdAt: number, status: ResponseStatus): object {
  return { ...responseOf(opening, createdAt, status), background: true };
}

/** What this service never has is there all the same, as the API has it. */
function responseOf({ requestId, model, hasTools }: Opening, createdAt: number, status: ResponseStatus): object {
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
    parallel_tool_calls: hasTools,
    previous_response_id: null,
    reasoning: { effort: null, summary: null },
    store: false,
    temperature: null,
    text: { format: { type: 'text' } },
    tool_choice: 'auto',
    tools: [],
    top_p: null,
    truncation: 'disabled',
    usage: null,
    user: null,
  };
}

function endedResponse(answer: CompletedAnswer, createdAt: number, output = itemsOf(answer)): object {
  const status = statusOf(answer);
  const reason = answer.ending === 'refusal' ? 'content_filter' : 'max_output_tokens';
  const details = status === 'incomplete' ? { reason } : null;
  return { ...responseOf(answer, createdAt, status), incomplete_details: details, output, usage: usageOf(answer) };
}

function statusOf({ ending }: CompletedAnswer): ResponseStatus {
  return ending === 'refusal' || ending === 'length' ? 'incomplete' : 'completed';
}

function itemsOf(answer: CompletedAnswer): object[] {
  const { requestId, text, hasText, calls } = answer;
  const message = messageItem(`msg_${requestId}`, text, statusOf(answer));
  const own = calls.map((call, index) => callItem(callItemId(requestId, index), call, 'completed'));
  return hasText || calls.length === 0 ? [message, ...own] : own;
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

/** A text of null: it has none yet. */
function messageItem(id: string, text: string | null, status: ResponseStatus): object {
  return { id, type: 'message', status, role: 'assistant', content: text === null ? [] : [textPart(text)] };
}

function callItem(id: string, call: WrittenCall, status: ResponseStatus): object {
  const { id: callId, name, namespace, input, isCustom } = call;
  const made = { id, status, call_id: callId, name, ...(namespace !== undefined && { namespace }) };
  if (isCustom) return { ...made, type: 'custom_tool_call', input };
  return { ...made, type: 'function_call', arguments: input };
}

function callItemId(requestId: string, index: number): string {
  return `fc_${requestId}${index === 0 ? '' : `_${index}`}`;
}

function textPart(text: string): object {
  return { type: 'output_text', annotations: [], logprobs: [], text };
}

/** The item that is being written: a message, or a call. */
interface OpenItem {
  readonly id: string;
  readonly call: Omit<WrittenCall, 'input'> | null;
  readonly pieces: string[];
}

/**
 * Owns where in the response a stream is. Without tools the only item, a message, is begun at once, before there is anything
 * in it: an error before the first item makes the AI SDK send the request again.
 */
class ResponseStream extends SdkStream implements StreamFormat {
  readonly #opening: Opening;
  readonly #createdAt: number;
  #next = 0;
  #open: OpenItem | null = null;
  /** The items that are whole; of an answer without tools, none is kept. */
  readonly #items: object[] = [];

  readonly #place: () => ResponsePlace;

  constructor(opening: Opening, createdAt: number, place: () => ResponsePlace) {
    super();
    this.#opening = opening;
    this.#createdAt = createdAt;
    this.#place = place;
  }

  begin(): string {
    const response = { ...responseOf(this.#opening, this.#createdAt, 'in_progress'), ...this.#place() };
    return [
      this.#event('response.created', { response }),
      this.#event('response.in_progress', { response }),
      this.#opening.hasTools ? '' : this.#messageStart(),
    ].join('');
  }

  delta(text: string): string {
    const start = this.#open === null || this.#open.call !== null ? this.#stop() + this.#messageStart() : '';
    if (this.#opening.hasTools) this.#open?.pieces.push(text);
    return start + this.#ofItem('response.output_text.delta', { ...firstPart, delta: text, logprobs: [] });
  }

  callStart(call: Parameters<StreamFormat['callStart']>[0]): string {
    const stop = this.#stop();
    const count = this.#items.filter((item) => !('role' in item)).length;
    this.#open = { id: callItemId(this.#opening.requestId, count), call, pieces: [] };
    const item = callItem(this.#open.id, { ...call, input: '' }, 'in_progress');
    return stop + this.#event('response.output_item.added', { output_index: this.#index, item });
  }

  /** The input of a custom tool is sent when it is whole. */
  callDelta(text: string): string {
    this.#open?.pieces.push(text);
    if (this.#open?.call?.isCustom !== false) return '';
    return this.#ofItem('response.function_call_arguments.delta', { delta: text });
  }

  /** Without calls, the whole text is that of the answer: the model may have corrected itself. */
  end(answer: CompletedAnswer): string {
    const status = statusOf(answer);
    const isRefusal = answer.ending === 'refusal' && this.#opening.hasTools && this.#open === null;
    const start = this.#index === 0 && this.#open === null && !isRefusal ? this.#messageStart() : '';
    const stop = answer.calls.length === 0 ? this.#stop(answer.text, status) : this.#stop();
    const output = answer.calls.length === 0 && !isRefusal ? itemsOf(answer) : this.#items;
    const response = { ...endedResponse(answer, this.#createdAt, output), ...this.#place() };
    return start + stop + this.#event(`response.${status}`, { response });
  }

  /**
   * With the error one level down, as all versions of the SDKs know it; the newest would find it at the top, too. codex knows
   * only the event behind it.
   */
  failure(error: Parameters<StreamFormat['failure']>[0]): string {
    const body = openAiStreamError(error);
    const { code, message } = body.error;
    const failed = {
      ...responseOf(this.#opening, this.#createdAt, 'failed'),
      ...this.#place(),
      error: { code, message },
    };
    return this.#event('error', body) + this.#event('response.failed', { response: failed });
  }

  get #index(): number {
    return this.#items.length;
  }

  #messageStart(): string {
    const { requestId } = this.#opening;
    const id = this.#index === 0 ? `msg_${requestId}` : `msg_${requestId}_${this.#index}`;
    this.#open = { id, call: null, pieces: [] };
    const item = messageItem(id, null, 'in_progress');
    return [
      this.#event('response.output_item.added', { output_index: this.#index, item }),
      this.#ofItem('response.content_part.added', { ...firstPart, part: textPart('') }),
    ].join('');
  }

  /** `text`: of a message, where it is known as a whole. */
  #stop(text?: string, status: ResponseStatus = 'completed'): string {
    const open = this.#open;
    if (open === null) return '';
    const whole = text ?? open.pieces.join('');
    const item = open.call === null ? messageItem(open.id, whole, status) : this.#callDone(open.id, open.call, whole);
    const done = open.call === null ? this.#textDone(whole) : this.#inputDone(open.call, whole);
    const ended = done + this.#event('response.output_item.done', { output_index: this.#index, item });
    this.#items.push(item);
    this.#open = null;
    return ended;
  }

  #textDone(text: string): string {
    return (
      this.#ofItem('response.output_text.done', { ...firstPart, text, logprobs: [] }) +
      this.#ofItem('response.content_part.done', { ...firstPart, part: textPart(text) })
    );
  }

  #callDone(id: string, call: Omit<WrittenCall, 'input'>, json: string): object {
    return callItem(id, { ...call, input: call.isCustom ? textIn(json) : json || '{}' }, 'completed');
  }

  #inputDone({ name, isCustom }: Omit<WrittenCall, 'input'>, json: string): string {
    if (!isCustom) return this.#ofItem('response.function_call_arguments.done', { name, arguments: json || '{}' });
    const input = textIn(json);
    const delta = this.#ofItem('response.custom_tool_call_input.delta', { delta: input });
    return delta + this.#ofItem('response.custom_tool_call_input.done', { input });
  }

  #ofItem(type: string, content: object): string {
    return this.#event(type, { item_id: this.#open?.id, output_index: this.#index, ...content });
  }

  #event(type: string, content: object): string {
    return eventText(type, { type, sequence_number: this.#next++, ...content });
  }
}

const firstPart = { content_index: 0 };
