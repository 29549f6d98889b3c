import { eventText } from '../../worker/http/event-stream.js';
import {
  type AnswerFormat,
  type CompletedAnswer,
  type Opening,
  type Search,
  type StreamFormat,
  textIn,
  type WrittenCall,
  type WrittenEvent,
} from '../../worker/jobs/answer-format.js';
import { SdkStream } from '../doors/sdk-stream.js';
import { openAiStreamError } from './errors.js';
import { finishReasons } from './finish-reasons.js';
import {
  annotationsOf,
  callItem,
  type ItemStatus,
  itemIds,
  itemsOf,
  messageItem,
  searchItem,
  summaryPart,
  textPart,
  thoughtItem,
} from './responses-items.js';
import { type Repeated, repeatedOf } from './responses-repeated.js';

type ResponseStatus = ItemStatus | 'queued' | 'failed' | 'cancelled';

/** Fields of a response that concern its storage. */
interface ResponsePlace {
  readonly store: boolean;
  readonly previous_response_id: string | null;
}

/** Fields of a response other than its answer. Times are in seconds since the epoch. */
export interface ResponseFrame {
  readonly createdAt: number;
  readonly repeated: Repeated;
  /** Returns the time of completion. Called at the end of the response. */
  completedAt(): number;
  /** Returns the current values: `store` becomes false if the response could not be stored. */
  place(): ResponsePlace;
}

/** Returns the frame of a response that is not stored. `more` replaces its fields. */
export function frameOf(createdAt: number, more: Partial<ResponseFrame> = {}): ResponseFrame {
  const place = () => ({ store: false, previous_response_id: null });
  return { createdAt, repeated: repeatedOf({}), completedAt: () => createdAt, place, ...more };
}

export function responseFormat(frame: ResponseFrame): AnswerFormat {
  return {
    isForSdks: true,
    showsRefusals: true,
    body: (answer) => endedResponse(answer, frame),
    stream: (opening) => new ResponseStream(opening, frame),
  };
}

/** Returns the response of a background job that has no answer (yet). */
export function openResponse(opening: Opening, frame: ResponseFrame, status: ResponseStatus): object {
  return { ...responseOf(opening, frame, status), background: true };
}

/** Returns all fields of the API's response. Unsupported ones have the API's default. */
function responseOf(
  { requestId, model, hasTools, tier }: Opening,
  frame: ResponseFrame,
  status: ResponseStatus,
): object {
  return {
    id: `resp_${requestId}`,
    object: 'response',
    access_programs: null,
    created_at: frame.createdAt,
    completed_at: status === 'completed' ? frame.completedAt() : null,
    status,
    background: false,
    error: null,
    frequency_penalty: 0,
    incomplete_details: null,
    max_tool_calls: null,
    model,
    output: [],
    parallel_tool_calls: hasTools,
    presence_penalty: 0,
    service_tier: tier ?? 'default',
    top_logprobs: 0,
    truncation: 'disabled',
    usage: null,
    ...frame.repeated,
    ...frame.place(),
  };
}

function endedResponse(
  answer: CompletedAnswer,
  frame: ResponseFrame,
  output = itemsOf(answer, statusOf(answer)),
): object {
  const reason = finishReasons[answer.ending].responses;
  const details = reason === null ? null : { reason };
  return {
    ...responseOf(answer, frame, statusOf(answer)),
    incomplete_details: details,
    output,
    usage: usageOf(answer),
  };
}

function statusOf({ ending }: CompletedAnswer): 'completed' | 'incomplete' {
  return finishReasons[ending].responses === null ? 'completed' : 'incomplete';
}

function usageOf({ usage }: CompletedAnswer): object {
  return {
    input_tokens: usage.input,
    input_tokens_details: { cached_tokens: usage.cacheRead, cache_write_tokens: usage.cacheWrite },
    output_tokens: usage.output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: usage.input + usage.output,
  };
}

type ItemKind = keyof typeof itemIds;

/** Reader of a background response. `after`: number of its last event; -1 before the first. */
export interface BackgroundReader {
  readonly after: number;
}

/** Item that is being written. */
interface OpenItem {
  readonly kind: ItemKind;
  readonly id: string;
  readonly call: Omit<WrittenCall, 'input'> | null;
  readonly pieces: string[];
}

/**
 * Writes a response as a stream. If only a message can come, it begins at once, before its text. Otherwise the first
 * item begins with the first output or, at the latest, with a failure: an error before any item makes the AI SDK repeat
 * the request.
 */
export class ResponseStream extends SdkStream implements StreamFormat {
  readonly #opening: Opening;
  readonly #frame: ResponseFrame;
  readonly #background: BackgroundReader | null;
  #hasStarted = false;
  #next = 0;
  #open: OpenItem | null = null;
  /** Items that have ended. */
  readonly #items: object[] = [];
  /** Numbers of items that have begun. */
  readonly #counts: Record<ItemKind, number> = { thought: 0, text: 0, call: 0, search: 0 };

  /** `background`: null if the response ends with its request. */
  constructor(opening: Opening, frame: ResponseFrame, background: BackgroundReader | null = null) {
    super();
    this.#opening = opening;
    this.#frame = frame;
    this.#background = background;
  }

  /** Number of events so far, including the events that the reader of a background response already has. */
  get count(): number {
    return this.#next;
  }

  /** Begins the response. A background response waits for `formatStart`. */
  formatBeginning(): string {
    const isBackground = this.#background !== null;
    const response = this.#responseOf(isBackground ? 'queued' : 'in_progress');
    const created = this.event('response.created', { response });
    return created + (isBackground ? this.event('response.queued', { response }) : this.#progress(response));
  }

  override formatStart(): string {
    if (this.#background === null || this.#hasStarted) return '';
    this.#hasStarted = true;
    return this.#progress(this.#responseOf('in_progress'));
  }

  #progress(response: object): string {
    return this.event('response.in_progress', { response }) + (this.#isMixed ? '' : this.#messageStart());
  }

  #responseOf(status: ResponseStatus): object {
    return { ...responseOf(this.#opening, this.#frame, status), background: this.#background !== null };
  }

  /** Gives the following events higher numbers than `number - 1`. */
  skipTo(number: number): void {
    this.#next = Math.max(this.#next, number);
  }

  formatEvent(event: WrittenEvent): string {
    switch (event.type) {
      case 'text-delta':
        return this.#addText(event.text);
      case 'call-start':
        return (
          this.#stop() +
          this.#itemAdded(callItem(this.#beginItem('call', event), { ...event, input: '' }, 'in_progress'))
        );
      case 'call-delta':
        return this.#addInput(event.text);
      case 'thought-delta':
        return this.#addThought(event.text);
      case 'thought-end':
        return this.#inThought() + this.#stop();
      case 'search':
        return this.#addSearch(event);
      case 'passage':
        return '';
    }
  }

  #addText(text: string): string {
    const start = this.#open?.kind === 'text' ? '' : this.#stop() + this.#messageStart();
    if (this.#isMixed) this.#open?.pieces.push(text);
    return start + this.#itemEvent('response.output_text.delta', { ...firstPart, delta: text, logprobs: [] });
  }

  /** Buffers the input of a custom tool, which is sent at its end. */
  #addInput(text: string): string {
    this.#open?.pieces.push(text);
    if (this.#open?.call?.isCustom !== false) return '';
    return this.#itemEvent('response.function_call_arguments.delta', { delta: text });
  }

  #addThought(text: string): string {
    const start = this.#inThought();
    const isFirst = this.#open?.pieces.length === 0;
    this.#open?.pieces.push(text);
    const part = isFirst
      ? this.#itemEvent('response.reasoning_summary_part.added', { ...firstSummary, part: summaryPart('') })
      : '';
    return start + part + this.#itemEvent('response.reasoning_summary_text.delta', { ...firstSummary, delta: text });
  }

  /** Writes a search that has ended, with the events of its course. */
  #addSearch(search: Search): string {
    const stop = this.#stop();
    const id = this.#beginItem('search');
    const added = this.#itemAdded(searchItem(id, { ...search, results: [] }, 'in_progress'));
    const course = searchEvents.map((name) => this.#itemEvent(`response.web_search_call.${name}`, {})).join('');
    const item = searchItem(id, search, 'completed');
    const done = this.event('response.output_item.done', { output_index: this.#index, item });
    this.#items.push(item);
    this.#open = null;
    return stop + added + course + done;
  }

  /**
   * Ends the response. A single message ends with the final text, because the model may have corrected the streamed
   * one.
   */
  formatEnd(answer: CompletedAnswer): string {
    const status = statusOf(answer);
    const isAlone = answer.calls.length === 0;
    const isRefusal = answer.ending === 'refusal' && this.#isMixed;
    const start = this.#counts.text === 0 && isAlone && !isRefusal ? this.#stop() + this.#messageStart() : '';
    const isWhole = isAlone && this.#open?.kind === 'text' && this.#counts.text === 1;
    const links = this.#open?.kind === 'text' ? annotationsOf(answer) : [];
    const added = links.map((annotation, index) => this.#annotationAdded(annotation, index)).join('');
    const stop =
      added +
      (isWhole ? this.#stop(answer.text, status, links) : this.#stop(undefined, isAlone ? status : undefined, links));
    const ended = endedResponse(answer, this.#frame, this.#items);
    const response = { ...ended, background: this.#background !== null };
    return start + stop + this.event(`response.${status}`, { response });
  }

  /**
   * Ends with two events. `error` has the error one level down, which all versions of the SDKs read; the newest would
   * also accept it at the top. codex reads only `response.failed`.
   */
  formatFailure(error: Parameters<StreamFormat['formatFailure']>[0]): string {
    const body = openAiStreamError(error);
    const { code, message } = body.error;
    const failed = { ...this.#responseOf('failed'), error: { code, message } };
    const isBare = this.#open === null && this.#items.length === 0;
    const start = isBare ? this.#messageStart() : '';
    return start + this.event('error', body) + this.event('response.failed', { response: failed });
  }

  /** Whether items other than a message can come. */
  get #isMixed(): boolean {
    return this.#opening.hasTools || this.#opening.hasThoughts;
  }

  get #index(): number {
    return this.#items.length;
  }

  #beginItem(kind: ItemKind, call: OpenItem['call'] = null): string {
    const id = itemIds[kind](this.#opening.requestId, this.#counts[kind]++);
    this.#open = { kind, id, call, pieces: [] };
    return id;
  }

  #itemAdded(item: object): string {
    return this.event('response.output_item.added', { output_index: this.#index, item });
  }

  #messageStart(): string {
    const added = this.#itemAdded(messageItem(this.#beginItem('text'), null, 'in_progress'));
    return added + this.#itemEvent('response.content_part.added', { ...firstPart, part: textPart('') });
  }

  /** Begins a thought, unless one is open. */
  #inThought(): string {
    if (this.#open?.kind === 'thought') return '';
    return this.#stop() + this.#itemAdded(thoughtItem(this.#beginItem('thought'), ''));
  }

  #annotationAdded(annotation: object, index: number): string {
    const content = { ...firstPart, annotation_index: index, annotation };
    return this.#itemEvent('response.output_text.annotation.added', content);
  }

  /**
   * Ends the open item. `text`: the whole text of a message; by default the buffered pieces. `links`: links of a message to
   * results of searches.
   */
  #stop(text?: string, status: ItemStatus = 'completed', links: readonly object[] = []): string {
    const open = this.#open;
    if (open === null) return '';
    const whole = text ?? open.pieces.join('');
    const item = this.#itemOf(open, whole, status, links);
    const ended =
      this.#itemDone(open, whole, links) + this.event('response.output_item.done', { output_index: this.#index, item });
    this.#items.push(item);
    this.#open = null;
    return ended;
  }

  #itemOf({ kind, id, call }: OpenItem, whole: string, status: ItemStatus, links: readonly object[]): object {
    if (call !== null)
      return callItem(id, { ...call, input: call.isCustom ? textIn(whole) : whole || '{}' }, 'completed');
    return kind === 'thought' ? thoughtItem(id, whole) : messageItem(id, whole, status, links);
  }

  #itemDone({ kind, call }: OpenItem, whole: string, links: readonly object[]): string {
    if (call !== null) return this.#inputDone(call, whole);
    return kind === 'thought' ? this.#thoughtDone(whole) : this.#textDone(whole, links);
  }

  #textDone(text: string, links: readonly object[]): string {
    return (
      this.#itemEvent('response.output_text.done', { ...firstPart, text, logprobs: [] }) +
      this.#itemEvent('response.content_part.done', { ...firstPart, part: textPart(text, links) })
    );
  }

  #thoughtDone(text: string): string {
    if (text === '') return '';
    return (
      this.#itemEvent('response.reasoning_summary_text.done', { ...firstSummary, text }) +
      this.#itemEvent('response.reasoning_summary_part.done', { ...firstSummary, part: summaryPart(text) })
    );
  }

  #inputDone({ name, isCustom }: Omit<WrittenCall, 'input'>, json: string): string {
    if (!isCustom) return this.#itemEvent('response.function_call_arguments.done', { name, arguments: json || '{}' });
    const input = textIn(json);
    const delta = this.#itemEvent('response.custom_tool_call_input.delta', { delta: input });
    return delta + this.#itemEvent('response.custom_tool_call_input.done', { input });
  }

  #itemEvent(type: string, content: object): string {
    return this.event(type, { item_id: this.#open?.id, output_index: this.#index, ...content });
  }

  /** Returns an event with the next number; empty if the reader already has it. */
  event(type: string, content: object): string {
    const number = this.#next++;
    if (number <= (this.#background?.after ?? -1)) return '';
    return eventText(type, { type, sequence_number: number, ...content });
  }
}

/** Events of a search between its start and its end. */
const searchEvents = ['in_progress', 'searching', 'completed'] as const;
const firstPart = { content_index: 0 };
const firstSummary = { summary_index: 0 };
