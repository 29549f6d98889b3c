import type { AsyncHandler } from '../../worker/http/exchange.js';
import {
  type AnswerFormat,
  type CompletedAnswer,
  type Opening,
  type StreamFormat,
  ThoughtPieces,
  textIn,
  thoughtText,
  type WrittenCall,
  type WrittenEvent,
} from '../../worker/jobs/answer-format.js';
import { answerWithJob, type JobParts } from '../../worker/jobs/run-job.js';
import { readSdkBody } from '../doors/sdk-request.js';
import { SdkStream } from '../doors/sdk-stream.js';
import { chatFiles, parseChat } from './chat-request.js';
import { bodyWithUser } from './content.js';
import { openAiStreamError } from './errors.js';
import { finishReasons } from './finish-reasons.js';
import { chatBody } from './foreign-chat.js';

/** Returns the usage in the form of completions. */
export function usageOf({ usage }: CompletedAnswer): object {
  return {
    prompt_tokens: usage.input,
    completion_tokens: usage.output,
    total_tokens: usage.input + usage.output,
    prompt_tokens_details: { cached_tokens: usage.cacheRead },
  };
}

interface ChatManner {
  readonly wantsUsage: boolean;
  /** Whether calls are written as `function_call`, the form before `tools`. */
  readonly isLegacyCall: boolean;
}

/** `nowSeconds`: time of the answer, in seconds since the epoch. */
export function chatCompletionFormat(nowSeconds: number, wantsUsage: boolean, isLegacyCall = false): AnswerFormat {
  const manner = { wantsUsage, isLegacyCall };
  return {
    isForSdks: true,
    showsRefusals: true,
    body: (answer) => bodyOf(answer, nowSeconds, manner),
    stream: (opening) => new ChatCompletionStream(opening, nowSeconds, manner),
  };
}

function bodyOf(answer: CompletedAnswer, created: number, { isLegacyCall }: ChatManner): object {
  const { requestId, model } = answer;
  const finish = finishOf(answer, isLegacyCall);
  const choice = { index: 0, message: messageOf(answer, isLegacyCall), logprobs: null, finish_reason: finish };
  const head = { id: idOf(requestId), object: 'chat.completion', created, model };
  return { ...head, choices: [choice], usage: usageOf(answer), ...tierIn(answer) };
}

function tierIn({ tier }: Pick<Opening, 'tier'>): object {
  return tier === undefined ? {} : { service_tier: tier };
}

function finishOf({ ending }: CompletedAnswer, isLegacyCall: boolean): string {
  return isLegacyCall && ending === 'tool-call' ? 'function_call' : finishReasons[ending].chat;
}

/** Returns the links to results of web searches; undefined if there are none. */
function annotationsOf({ end: { citations = [] } }: CompletedAnswer): object[] | undefined {
  if (citations.length === 0) return undefined;
  return citations.map(({ start, end, title, url }) => ({
    type: 'url_citation',
    url_citation: { start_index: start, end_index: end, title, url },
  }));
}

function messageOf(answer: CompletedAnswer, isLegacyCall: boolean): object {
  const { text, hasText, calls, parts } = answer;
  const [first] = calls;
  const thought = thoughtText(parts);
  const content = hasText || first === undefined ? text : null;
  const annotations = annotationsOf(answer);
  const more = { ...(thought !== '' && { reasoning_content: thought }), ...(annotations && { annotations }) };
  const output = { content, refusal: null, ...more };
  if (first === undefined) return { role: 'assistant', ...output };
  const { name, input } = first;
  const made = isLegacyCall ? { function_call: { name, arguments: input } } : { tool_calls: calls.map(callOf) };
  return { role: 'assistant', ...output, ...made };
}

function callOf({ id, name, input, isCustom }: WrittenCall): object {
  if (isCustom) return { id, type: 'custom', custom: { name, input } };
  return { id, type: 'function', function: { name, arguments: input } };
}

function idOf(requestId: string): string {
  return `chatcmpl-${requestId}`;
}

/**
 * Writes events without names, because the OpenAI SDK fails on named ones in a chat completion. Counts the calls that
 * have begun, and buffers the input of a custom tool until its end.
 */
class ChatCompletionStream extends SdkStream implements StreamFormat {
  readonly #opening: Opening;
  readonly #created: number;
  readonly #manner: ChatManner;
  #model: string;
  #calls = 0;
  #custom: string[] | null = null;
  /** Whether the open function call has no input yet. */
  #isBare = false;
  readonly #thoughts = new ThoughtPieces();

  constructor(opening: Opening, created: number, manner: ChatManner) {
    super();
    this.#opening = opening;
    this.#model = opening.model;
    this.#created = created;
    this.#manner = manner;
  }

  formatBeginning(): string {
    return this.#choice({ role: 'assistant', content: this.#opening.hasTools ? null : '' });
  }

  formatEvent(event: WrittenEvent): string {
    switch (event.type) {
      case 'text-delta':
        return this.#callEnd() + this.#choice({ content: event.text });
      case 'call-start':
        return this.#callStart(event);
      case 'call-delta':
        return this.#callDelta(event.text);
      case 'thought-delta':
        return this.#callEnd() + this.#choice({ reasoning_content: this.#thoughts.addText(event.text) });
      case 'thought-end':
        this.#thoughts.endThought();
        return '';
      default:
        return '';
    }
  }

  formatEnd(answer: CompletedAnswer): string {
    this.#model = answer.model;
    const annotations = annotationsOf(answer);
    const links = annotations === undefined ? '' : this.#choice({ annotations });
    const last = this.#choice({}, finishOf(answer, this.#manner.isLegacyCall));
    const usage = this.#manner.wantsUsage ? this.#chunk({ choices: [] }, usageOf(answer)) : '';
    return `${this.#callEnd()}${links}${last}${usage}data: [DONE]\n\n`;
  }

  formatFailure(error: Parameters<StreamFormat['formatFailure']>[0]): string {
    return `data: ${JSON.stringify(openAiStreamError(error))}\n\n`;
  }

  #callStart({ id, name, isCustom }: Omit<WrittenCall, 'input'>): string {
    const end = this.#callEnd();
    this.#calls++;
    if (isCustom) this.#custom = [];
    this.#isBare = !isCustom;
    const head = isCustom ? { type: 'custom', custom: { name, input: '' } } : { type: 'function' };
    return end + (isCustom ? this.#call({ id, ...head }) : this.#function({ name, arguments: '' }, { id, ...head }));
  }

  #callDelta(text: string): string {
    this.#isBare &&= text === '';
    if (this.#custom === null) return this.#function({ arguments: text });
    this.#custom.push(text);
    return '';
  }

  #callEnd(): string {
    const input = this.#custom;
    const isBare = this.#isBare;
    this.#custom = null;
    this.#isBare = false;
    if (isBare) return this.#function({ arguments: '{}' });
    return input === null ? '' : this.#call({ custom: { input: textIn(input.join('')) } });
  }

  #function(made: object, more: object = {}): string {
    return this.#manner.isLegacyCall ? this.#choice({ function_call: made }) : this.#call({ ...more, function: made });
  }

  #call(made: object): string {
    return this.#choice({ tool_calls: [{ index: this.#calls - 1, ...made }] });
  }

  #choice(delta: object, reason: string | null = null): string {
    return this.#chunk({ choices: [{ index: 0, delta, logprobs: null, finish_reason: reason }] });
  }

  /** `usage`: null in all chunks but the last, if the client wants the usage. */
  #chunk(content: object, usage: object | null = null): string {
    const [id, model, tier] = [idOf(this.#opening.requestId), this.#model, tierIn(this.#opening)];
    const last = this.#manner.wantsUsage && { usage };
    const chunk = { id, object: 'chat.completion.chunk', created: this.#created, model, ...content, ...tier, ...last };
    return `data: ${JSON.stringify(chunk)}\n\n`;
  }
}

export function postChatCompletions(parts: JobParts): AsyncHandler {
  return async (req, res) => {
    const parsed = parseChat(await readSdkBody(req, res, parts, bodyWithUser(chatBody, chatFiles)));
    const nowSeconds = Math.floor(parts.clock.now() / 1000);
    const format = chatCompletionFormat(nowSeconds, parsed.wantsUsage, parsed.isLegacyCall);
    await answerWithJob(parts, res, parsed, format);
  };
}
