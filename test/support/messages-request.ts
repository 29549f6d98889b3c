import type { IncomingHttpHeaders } from 'node:http';

interface Block {
  readonly type: string;
  readonly text?: string;
  readonly source?: unknown;
}

/** A request's body, as far as the tests look into it. */
export interface MessagesBody {
  readonly model: string;
  readonly stream?: boolean;
  readonly max_tokens: number;
  readonly system?: string | readonly Block[];
  readonly messages: readonly { readonly role: string; readonly content: string | readonly Block[] }[];
  readonly tools?: readonly { readonly name: string; readonly input_schema?: unknown }[];
  readonly output_config?: { readonly effort?: string };
}

export interface MessagesRequest {
  readonly headers: IncomingHttpHeaders;
  readonly body: MessagesBody;
}

/** The texts that users and the model said, without what the CLI adds of its own. */
export function conversationOf({ body }: MessagesRequest): { readonly role: string; readonly text: string }[] {
  return body.messages
    .filter(({ role }) => role !== 'system')
    .flatMap(({ role, content }) => textsOf(content).map((text) => ({ role, text })))
    .filter(({ text }) => !text.startsWith('<system-reminder>\nAs you answer'));
}

/** The texts of the system blocks. */
export function systemOf({ body }: MessagesRequest): readonly string[] {
  return textsOf(body.system ?? []);
}

function textsOf(content: string | readonly Block[]): readonly string[] {
  return typeof content === 'string' ? [content] : content.map(({ text }) => text ?? '');
}
