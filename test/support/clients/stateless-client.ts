import type { Service } from '../service/service.js';

export interface Said {
  readonly role: 'user' | 'assistant' | 'system';
  readonly content: string;
}

export interface Answered {
  readonly content: string;
  /** `live` or `replay`. */
  readonly session: string | null;
}

export function user(content: string): Said {
  return { role: 'user', content };
}

export function assistant(content: string): Said {
  return { role: 'assistant', content };
}

/** Client of OpenAI's API that sends the whole conversation with each request. */
export class StatelessClient {
  readonly #service: Service;
  readonly #key: string;
  readonly messages: Said[];

  constructor(service: Service, key: string, said: readonly Said[] = []) {
    this.#service = service;
    this.#key = key;
    this.messages = [...said];
  }

  async say(text: string): Promise<Answered> {
    this.messages.push(user(text));
    const answered = await this.aside(this.messages);
    this.messages.push(assistant(answered.content));
    return answered;
  }

  /** Sends a request outside the conversation, such as for its title. */
  async aside(messages: readonly Said[]): Promise<Answered> {
    const response = await fetch(`${this.#service.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${this.#key}` },
      body: JSON.stringify({ model: 'echo', messages }),
    });
    const body = (await response.json()) as { choices: { message: { content: string } }[] };
    expect(response.status).toBe(200);
    return { content: body.choices[0]?.message.content ?? '', session: response.headers.get('x-session') };
  }
}
