import type { Request } from 'express';
import type { JobRequest } from '../../shared/job.js';
import { subClientByBody } from '../access/authenticate.js';
import { readBody } from '../http/body.js';
import type { AsyncHandler, Reply } from '../http/exchange.js';
import { sendJson } from '../http/responses.js';
import { type ParsedRequest, requestOf, setIgnored } from '../jobs/job-request.js';
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
import { anthropicErrorBody } from '../jobs/sdk-errors.js';
import { messagesRequest } from './messages-content.js';
import { parseMessages } from './messages-request.js';

const stopReasons = {
  whole: 'end_turn',
  'stop-sequence': 'stop_sequence',
  'tool-call': 'tool_use',
  refusal: 'refusal',
} as const satisfies Record<Ending, string>;

export const messageFormat: AnswerFormat = {
  isForSdks: true,
  body: (answer) => ({ ...messageOf(answer, contentOf(answer)), ...endOf(answer), usage: usageOf(answer) }),
  stream: (opening) => new MessageStream(opening),
};

function messageOf({ requestId, model }: Opening, content: readonly object[]): object {
  return { id: `msg_${requestId}`, type: 'message', role: 'assistant', model, content, container: null };
}

function contentOf({ requestId, text, value, tool, ending }: CompletedAnswer): object[] {
  if (tool === null) return [textBlock(text)];
  return ending === 'tool-call' ? [callBlock(requestId, tool, value)] : [];
}

function textBlock(text: string): object {
  return { type: 'text', text, citations: null };
}

function callBlock(requestId: string, name: string, input: unknown): object {
  return { type: 'tool_use', id: `toolu_${requestId}`, name, input, caller: { type: 'direct' } };
}

function endOf({ ending, stopSequence }: CompletedAnswer): object {
  const details = ending === 'refusal' ? { type: 'refusal', category: null, explanation: null } : null;
  return { stop_reason: stopReasons[ending], stop_sequence: stopSequence, stop_details: details };
}

/** Anthropic reports the tokens of the cache beside the others of the input, not among them. */
function usageOf({ usage: { input, output, cacheRead, cacheWrite } }: Pick<CompletedAnswer, 'usage'>): object {
  return {
    input_tokens: Math.max(0, input - cacheRead - cacheWrite),
    cache_creation_input_tokens: cacheWrite,
    cache_read_input_tokens: cacheRead,
    output_tokens: output,
  };
}

const nothingUsed = { usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 } };

/** Owns where in the message a stream is: its one block of content begins with the first text, or at the end. */
class MessageStream extends SdkStream implements StreamFormat {
  readonly #opening: Opening;
  #hasBlock = false;

  constructor(opening: Opening) {
    super();
    this.#opening = opening;
  }

  begin(): string {
    const unended = { stop_reason: null, stop_sequence: null, stop_details: null, usage: usageOf(nothingUsed) };
    return event('message_start', { message: { ...messageOf(this.#opening, []), ...unended } });
  }

  delta(text: string): string {
    const isCall = this.#opening.tool !== null;
    const delta = isCall ? { type: 'input_json_delta', partial_json: text } : { type: 'text_delta', text };
    return this.#blockStart() + event('content_block_delta', { index: 0, delta });
  }

  end(answer: CompletedAnswer): string {
    const start = contentOf(answer).length > 0 ? this.#blockStart() : '';
    const stop = this.#hasBlock ? event('content_block_stop', { index: 0 }) : '';
    const delta = { ...endOf(answer), container: null };
    return `${start}${stop}${event('message_delta', { delta, usage: usageOf(answer) })}${event('message_stop', {})}`;
  }

  failure(error: Parameters<StreamFormat['failure']>[0]): string {
    return written('error', anthropicErrorBody(error, this.#opening.requestId));
  }

  #blockStart(): string {
    if (this.#hasBlock) return '';
    this.#hasBlock = true;
    const { requestId, tool } = this.#opening;
    const block = tool === null ? textBlock('') : callBlock(requestId, tool, {});
    return event('content_block_start', { index: 0, content_block: block });
  }
}

function event(type: string, content: object): string {
  return written(type, { type, ...content });
}

function written(name: string, content: object): string {
  return `event: ${name}\ndata: ${JSON.stringify(content)}\n\n`;
}

export function postMessages(parts: JobParts): AsyncHandler {
  return async (req, res) => answerWithJob(parts, res, await readRequest(req, res, parts), messageFormat);
}

/** Counts what the model would be sent. That is no job, and starts nothing. */
export function postCountTokens(parts: JobParts): AsyncHandler {
  return async (req, res) => {
    const parsed = await readRequest(req, res, parts);
    const request = await requestOf(parsed.job, parts.primary, res);
    const { tokens } = await parts.primary.call('countTokens', { texts: textsOf(request) });
    setIgnored(res, parsed.ignored);
    sendJson(res, { input_tokens: tokens + tokensOfImages(request) });
  };
}

async function readRequest(req: Request, res: Reply, { bodies }: JobParts): Promise<ParsedRequest> {
  const body = await readBody(req, res, bodies, messagesRequest);
  const usesUser = subClientByBody(req, res, body.metadata?.user_id ?? undefined);
  return parseMessages(usesUser ? { ...body, metadata: undefined } : body);
}

function textsOf({ system, history, text, schema }: JobRequest): string[] {
  return [system ?? '', ...history.map((message) => message.text), text, schema ?? ''];
}

/** About what Anthropic's models take for an image of the greatest size that they don't make smaller. */
const tokensOfImage = 1600;

function tokensOfImages({ history, images }: JobRequest): number {
  const count = history.reduce((sum, message) => sum + (message.images?.length ?? 0), images.length);
  return count * tokensOfImage;
}
