import type { Service } from '../service/service.js';

export interface OllamaMessage {
  readonly role: string;
  readonly content: string;
  readonly thinking?: string;
  readonly tool_calls?: readonly OllamaCall[];
  readonly tool_name?: string;
}

interface OllamaCall {
  readonly id?: string;
  readonly function: { readonly name: string; readonly arguments: Readonly<Record<string, unknown>> };
}

/** Line of a stream, or whole answer. */
interface OllamaPiece {
  readonly model: string;
  readonly message?: OllamaMessage;
  readonly response?: string;
  readonly done: boolean;
  readonly done_reason?: string;
  readonly error?: string;
}

export interface OllamaAnswer {
  readonly status: number;
  readonly session: string | null;
  readonly type: string | null;
  readonly ignored: string | null;
  readonly text: string;
  readonly pieces: readonly OllamaPiece[];
}

/** Sends a request like Ollama's clients. Every answer is checked against the OpenAPI document. */
export async function askOllama(
  service: Pick<Service, 'url' | 'contract'>,
  path: string,
  body: object | string,
  headers: Readonly<Record<string, string>> = {},
): Promise<OllamaAnswer> {
  const content = typeof body === 'string' ? body : JSON.stringify(body);
  const response = await service.contract.fetch(service.url, path, { method: 'POST', headers, body: content });
  const text = await response.text();
  const header = (name: string) => response.headers.get(name);
  const pieces = text.split('\n').flatMap((line) => (line.trim() === '' ? [] : [JSON.parse(line) as OllamaPiece]));
  return {
    status: response.status,
    session: header('x-session'),
    type: header('content-type'),
    ignored: header('x-ignored-parameters'),
    text,
    pieces,
  };
}

/** Joins the texts of a stream. */
export function saidIn({ pieces }: Pick<OllamaAnswer, 'pieces'>): string {
  return pieces.map(({ message, response }) => message?.content ?? response ?? '').join('');
}
