import type { JobRequest, PassageCited, ServiceTier, ThoughtEnd } from '../../shared/job.js';
import { sampleForTokens } from '../../shared/text/token-sample.js';
import { attachmentsIn, attachmentTokens } from '../../shared/text/turns.js';
import type { AsyncHandler, Reply } from '../../worker/http/exchange.js';
import { sendJson, sendTyped } from '../../worker/http/responses.js';
import type {
  AnswerFormat,
  AnswerPart,
  CompletedAnswer,
  Ending,
  Opening,
  Search,
  StreamFormat,
  WrittenCall,
  WrittenEvent,
} from '../../worker/jobs/answer-format.js';
import { type ParsedRequest, requestOf, setIgnored } from '../../worker/jobs/job-request.js';
import { answerWithJob, type JobParts } from '../../worker/jobs/run-job.js';
import { readSdkBody } from '../doors/sdk-request.js';
import { SdkStream } from '../doors/sdk-stream.js';
import { inputObject } from '../doors/tool-offer.js';
import { fileForms } from './attachments.js';
import { anthropicErrorBody } from './errors.js';
import { messagesBody } from './foreign-messages.js';
import { type MessagesRequest, parseCountedMessages, parseMessages } from './messages-request.js';
import { promptTexts } from './prompt-texts.js';
import { countCalls } from './shared.js';

const stopReasons = {
  whole: 'end_turn',
  'stop-sequence': 'stop_sequence',
  'tool-call': 'tool_use',
  length: 'max_tokens',
  refusal: 'refusal',
} as const satisfies Record<Ending, string>;

/** A stream reports an estimate of the tokens of its prompt before the model CLI has counted them. */
function messageFormat(request: JobRequest): AnswerFormat {
  return {
    isForSdks: true,
    showsRefusals: true,
    body: messageBody,
    stream: (opening) => new MessageStream(opening, () => estimateOf(request)),
  };
}

export function messageBody(answer: CompletedAnswer): object {
  return { ...messageOf(answer, contentOf(answer)), ...endOf(answer), usage: usageOfAnswer(answer) };
}

function messageOf({ requestId, model }: Pick<Opening, 'requestId' | 'model'>, content: readonly object[]): object {
  return { id: `msg_${requestId}`, type: 'message', role: 'assistant', model, content, container: null };
}

function contentOf({ parts, hasText, ending }: CompletedAnswer): object[] {
  const isLeftOut = ({ type }: AnswerPart) => type === 'text' && !hasText && (ending === 'refusal' || parts.length > 1);
  return parts.filter((part) => !isLeftOut(part)).flatMap(blocksOf);
}

function blocksOf(part: AnswerPart): object[] {
  switch (part.type) {
    case 'text':
      return [{ ...textBlock(part.text), ...(part.passages && { citations: part.passages }) }];
    case 'search':
      return [searchBlock(part, { query: part.query }), foundBlock(part)];
    case 'call':
      return [callBlock(part.call, inputObject(part.call.input))];
    case 'thought':
      return [thoughtBlock(part)];
  }
}

/** Returns the call of the search tool. Its id has the form of the API, because the model CLI names its own tool. */
function searchBlock({ id }: Search, input: object): object {
  return { type: 'server_tool_use', id: searchId(id), name: 'web_search', input, caller: { type: 'direct' } };
}

/** Returns the result of a search. The model CLI reports no content of pages, which a client could send back. */
function foundBlock({ id, results, error }: Search): object {
  const pages = results.map((page) => ({ type: 'web_search_result', ...page, encrypted_content: '', page_age: null }));
  const content = error === undefined ? pages : { type: 'web_search_tool_result_error', error_code: error };
  return { type: 'web_search_tool_result', tool_use_id: searchId(id), content, caller: { type: 'direct' } };
}

function searchId(id: string): string {
  return `srvtoolu_${id.replace(/^toolu_/, '')}`;
}

function thoughtBlock({
  text,
  signature = '',
  redacted,
}: Omit<Extract<AnswerPart, { type: 'thought' }>, 'type'>): object {
  if (redacted !== undefined) return { type: 'redacted_thinking', data: redacted };
  return { type: 'thinking', thinking: text, signature };
}

function textBlock(text: string): object {
  return { type: 'text', text };
}

function callBlock({ id, name }: Pick<WrittenCall, 'id' | 'name'>, input: unknown): object {
  return { type: 'tool_use', id, name, input, caller: { type: 'direct' } };
}

function endOf({ ending, stopSequence, end: { refusal } }: CompletedAnswer): object {
  const details = refusal === undefined ? null : { type: 'refusal', ...refusal };
  return { stop_reason: stopReasons[ending], stop_sequence: stopSequence, stop_details: details };
}

/** Returns the usage of a finished answer, with the number of its searches if it has any. */
function usageOfAnswer(answer: CompletedAnswer): object {
  const { searches = [] } = answer.end;
  const count = searches.reduce((sum, search) => sum + search.count, 0);
  const made = searches.length > 0 && { server_tool_use: { web_search_requests: count, web_fetch_requests: 0 } };
  return { ...usageOf(answer), ...made, ...tierIn(answer) };
}

/** Words of Anthropic's API for the ranks of jobs. */
const tiers = { flex: 'batch', default: 'standard', priority: 'priority' } as const satisfies Record<
  ServiceTier,
  string
>;

function tierIn({ tier }: Pick<Opening, 'tier'>): object {
  return tier === undefined ? {} : { service_tier: tiers[tier] };
}

/** Returns the token counts. Anthropic's `input_tokens` does not include the cached tokens. */
function usageOf({ usage: { input, output, cacheRead, cacheWrite } }: Pick<CompletedAnswer, 'usage'>): object {
  return {
    input_tokens: Math.max(0, input - cacheRead - cacheWrite),
    cache_creation_input_tokens: cacheWrite,
    cache_read_input_tokens: cacheRead,
    output_tokens: output,
  };
}

/** Returns the token counts of a message without an answer. */
function usageOfPrompt(input: number): object {
  return usageOf({ usage: { input, output: 0, cacheRead: 0, cacheWrite: 0 } });
}

/** Writes a message as a stream. Its blocks follow each other without overlap. */
class MessageStream extends SdkStream implements StreamFormat {
  readonly #opening: Opening;
  readonly #countInput: () => number;
  #open: 'text' | 'call' | 'thought' | 'search' | null = null;
  #blocks = 0;

  constructor(opening: Opening, countInput: () => number) {
    super();
    this.#opening = opening;
    this.#countInput = countInput;
  }

  formatBeginning(): string {
    const usage = { ...usageOfPrompt(this.#countInput()), ...tierIn(this.#opening) };
    const openEnd = { stop_reason: null, stop_sequence: null, stop_details: null, usage };
    return event('message_start', { message: { ...messageOf(this.#opening, []), ...openEnd } });
  }

  formatEvent(event: WrittenEvent): string {
    switch (event.type) {
      case 'text-delta':
        return this.#textStart() + this.#delta({ type: 'text_delta', text: event.text });
      case 'call-start':
        return this.#start('call', callBlock(event, {}));
      case 'call-delta':
        return this.#delta({ type: 'input_json_delta', partial_json: event.text });
      case 'thought-delta':
        return this.#thoughtStart() + this.#delta({ type: 'thinking_delta', thinking: event.text });
      case 'thought-end':
        return this.#thoughtEnd(event);
      case 'search':
        return this.#searchBlocks(event);
      case 'passage':
        return this.#cite(event.passage);
    }
  }

  formatEnd(answer: CompletedAnswer): string {
    const start = this.#blocks === 0 && contentOf(answer).length > 0 ? this.#textStart() : '';
    const delta = { ...endOf(answer), container: null };
    const end = event('message_delta', { delta, usage: usageOfAnswer(answer) }) + event('message_stop', {});
    return start + this.#stop() + end;
  }

  formatFailure(error: Parameters<StreamFormat['formatFailure']>[0]): string {
    return written('error', anthropicErrorBody(error, this.#opening.requestId));
  }

  /** Begins a block with the next text, or adds a citation to the open one. */
  #cite(passage: PassageCited['passage']): string {
    if (passage === null) return this.#open === 'text' ? this.#stop() : '';
    return this.#textStart() + this.#delta({ type: 'citations_delta', citation: passage });
  }

  #thoughtEnd({ signature = '', redacted }: Pick<ThoughtEnd, 'signature' | 'redacted'>): string {
    if (redacted !== undefined) return this.#start('thought', thoughtBlock({ text: '', redacted })) + this.#stop();
    return this.#thoughtStart() + this.#delta({ type: 'signature_delta', signature }) + this.#stop();
  }

  #searchBlocks(search: Search): string {
    const input = { type: 'input_json_delta', partial_json: JSON.stringify({ query: search.query }) };
    const call = this.#start('search', searchBlock(search, {})) + this.#delta(input);
    return call + this.#start('search', foundBlock(search)) + this.#stop();
  }

  #textStart(): string {
    return this.#open === 'text' ? '' : this.#start('text', textBlock(''));
  }

  #thoughtStart(): string {
    return this.#open === 'thought' ? '' : this.#start('thought', thoughtBlock({ text: '' }));
  }

  #start(kind: 'text' | 'call' | 'thought' | 'search', block: object): string {
    const stop = this.#stop();
    this.#open = kind;
    return stop + event('content_block_start', { index: this.#blocks++, content_block: block });
  }

  #stop(): string {
    const stop = this.#open === null ? '' : event('content_block_stop', { index: this.#blocks - 1 });
    this.#open = null;
    return stop;
  }

  #delta(delta: object): string {
    return event('content_block_delta', { index: this.#blocks - 1, delta });
  }
}

function event(type: string, content: object): string {
  return written(type, { type, ...content });
}

function written(name: string, content: object): string {
  return `event: ${name}\ndata: ${JSON.stringify(content)}\n\n`;
}

const sdkBody = {
  schema: messagesBody,
  fileForms,
  userIn: ({ metadata }: MessagesRequest) => metadata?.user_id,
  withoutUser: (body: MessagesRequest) => ({ ...body, metadata: undefined }),
};

export function postMessages(parts: JobParts): AsyncHandler {
  return async (req, res) => {
    const body = await readSdkBody(req, res, parts, sdkBody);
    const parsed = parseMessages(body);
    if (body.max_tokens === 0) await answerWithNothing(parts, res, parsed);
    else await answerWithJob(parts, res, parsed, messageFormat);
  };
}

/**
 * Answers a request with `max_tokens: 0`, by which clients fill the cache of Anthropic's API. The answer has only the
 * tokens of the prompt; no job runs.
 */
async function answerWithNothing(parts: JobParts, res: Reply, parsed: ParsedRequest): Promise<void> {
  const { model, job, ignored } = parsed;
  const input = await tokensOf(await requestOf(job, parts, res), parts.primary);
  setIgnored(res, ignored);
  const end = { stop_reason: stopReasons.length, stop_sequence: null, stop_details: null };
  const usage = usageOfPrompt(input);
  const message = messageOf({ requestId: res.locals.requestId, model }, []);
  if (!job.stream) return sendJson(res, { ...message, ...end, usage });
  const begin = event('message_start', { message: { ...message, ...end, stop_reason: null, usage } });
  const ending = event('message_delta', { delta: { ...end, container: null }, usage }) + event('message_stop', {});
  sendTyped(res, 'text/event-stream; charset=utf-8', begin + ending);
}

/** Counts the tokens of a prompt, without a job. */
export function postCountTokens(parts: JobParts): AsyncHandler {
  return async (req, res) => {
    const parsed = parseCountedMessages(await readSdkBody(req, res, parts, sdkBody));
    const tokens = await tokensOf(await requestOf(parsed.job, parts, res), parts.primary);
    setIgnored(res, parsed.ignored);
    sendJson(res, { input_tokens: tokens });
  };
}

async function tokensOf(request: JobRequest, primary: JobParts['primary']): Promise<number> {
  const { texts, factor } = sampleForTokens(promptTexts(request));
  const { client, model } = request;
  const { tokens } = await countCalls(primary).call('countTokens', { texts, client, model });
  return Math.round(tokens * factor) + tokensOfImages(request);
}

/** Estimates the tokens of a prompt. The tokenizer would delay the answer. */
function estimateOf(request: JobRequest): number {
  const bytes = promptTexts(request).reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  return Math.max(1, Math.ceil(bytes / bytesOfToken) + tokensOfImages(request));
}

/** Average for English text. */
const bytesOfToken = 4;

function tokensOfImages({ history, ...question }: JobRequest): number {
  return attachmentsIn([...history, question]).reduce((sum, each) => sum + attachmentTokens(each), 0);
}
