import type { Service } from '../service/service.js';

interface SentCall {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: string };
}

interface ChatMessage {
  readonly role: string;
  readonly content: string | null;
  readonly tool_calls?: readonly SentCall[];
  readonly tool_call_id?: string;
}

export interface Round {
  readonly status: number;
  readonly text: string | null;
  readonly calls: readonly SentCall[];
  /** `live` or `replay`. */
  readonly session: string | null;
}

export const note = {
  type: 'function',
  function: { name: 'note', parameters: { type: 'object', properties: { who: { type: 'string' } } } },
} as const;

/** Client of OpenAI's API with one tool, `note`, that stores the conversation. */
export class ToolClient {
  readonly messages: ChatMessage[] = [];
  readonly #service: Pick<Service, 'url'>;
  readonly #key: string;
  readonly #asks: { readonly model: string; readonly tools: readonly object[] };

  constructor(service: Pick<Service, 'url'>, key = 'any', asks: { model?: string; tools?: readonly object[] } = {}) {
    this.#service = service;
    this.#key = key;
    this.#asks = { model: 'eliza', tools: [note], ...asks };
  }

  say(content: string): Promise<Round> {
    return this.send([{ role: 'user', content }]);
  }

  /** Sends the results of all calls of the last answer. */
  answer(textOf: (call: SentCall) => string, more: object = {}): Promise<Round> {
    const calls = this.messages.at(-1)?.tool_calls ?? [];
    const results = calls.map((call) => ({ role: 'tool', tool_call_id: call.id, content: textOf(call) }));
    return this.send(results, undefined, more);
  }

  /** Refused messages are not added to the conversation. */
  async send(messages: readonly ChatMessage[], signal?: AbortSignal, more: object = {}): Promise<Round> {
    const response = await fetch(`${this.#service.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${this.#key}` },
      body: JSON.stringify({ ...this.#asks, ...more, messages: [...this.messages, ...messages] }),
      ...(signal && { signal }),
    });
    const body = (await response.json()) as { choices?: readonly { message: ChatMessage }[] };
    const message = body.choices?.[0]?.message;
    if (message !== undefined) this.messages.push(...messages, message);
    const session = response.headers.get('x-session');
    return { status: response.status, text: message?.content ?? null, calls: message?.tool_calls ?? [], session };
  }
}

/** Returns a prompt that makes the demo model call the tool for this name. */
export function orderFor(who: string): string {
  return `call note ${JSON.stringify({ who })}`;
}
