import type { AnswerForm, Ending, Opening, StreamForm, Told } from '../door.js';
import { anthropicErrorBody } from './errors.js';

const stopReasons = {
  whole: 'end_turn',
  'stop-sequence': 'stop_sequence',
  'tool-call': 'tool_use',
  refusal: 'refusal',
} as const satisfies Record<Ending, string>;

export const messageForm: AnswerForm = {
  body: (told) => ({ ...messageOf(told, contentOf(told)), ...endOf(told), usage: usageOf(told) }),
  stream: (opening) => new MessageStream(opening),
};

function messageOf({ requestId, model }: Opening, content: readonly object[]): object {
  return { id: `msg_${requestId}`, type: 'message', role: 'assistant', model, content, container: null };
}

function contentOf({ requestId, text, value, tool, ending }: Told): object[] {
  if (tool === null) return [textBlock(text)];
  return ending === 'tool-call' ? [callBlock(requestId, tool, value)] : [];
}

function textBlock(text: string): object {
  return { type: 'text', text, citations: null };
}

function callBlock(requestId: string, name: string, input: unknown): object {
  return { type: 'tool_use', id: `toolu_${requestId}`, name, input, caller: { type: 'direct' } };
}

function endOf({ ending, stopSequence }: Told): object {
  const details = ending === 'refusal' ? { type: 'refusal', category: null, explanation: null } : null;
  return { stop_reason: stopReasons[ending], stop_sequence: stopSequence, stop_details: details };
}

/** Anthropic tells the tokens of the cache beside the others of the input, not among them. */
function usageOf({ usage: { input, output, cacheRead, cacheWrite } }: Pick<Told, 'usage'>): object {
  return {
    input_tokens: Math.max(0, input - cacheRead - cacheWrite),
    cache_creation_input_tokens: cacheWrite,
    cache_read_input_tokens: cacheRead,
    output_tokens: output,
  };
}

const nothingUsed = { usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 } };

/** Owns where in the message a stream is: its one block of content begins with the first text, or at the end. */
class MessageStream implements StreamForm {
  readonly #opening: Opening;
  #hasBlock = false;

  constructor(opening: Opening) {
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

  end(told: Told): string {
    const start = contentOf(told).length > 0 ? this.#blockStart() : '';
    const stop = this.#hasBlock ? event('content_block_stop', { index: 0 }) : '';
    const delta = { ...endOf(told), container: null };
    return `${start}${stop}${event('message_delta', { delta, usage: usageOf(told) })}${event('message_stop', {})}`;
  }

  failure(error: Parameters<StreamForm['failure']>[0]): string {
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
