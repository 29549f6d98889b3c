import type { IncomingHttpHeaders } from 'node:http';

interface Part {
  readonly text?: string;
  readonly inlineData?: { readonly mimeType: string; readonly data: string };
}

/** A request's body, as far as the tests look into it. */
export interface GenerateBody {
  readonly contents: readonly { readonly role: string; readonly parts: readonly Part[] }[];
  readonly systemInstruction?: { readonly parts: readonly Part[] };
  readonly tools?: readonly { readonly functionDeclarations?: readonly unknown[] }[];
}

export interface GenerateRequest {
  readonly model: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: GenerateBody;
}

/** What the user and the model said, without what the CLI says of itself at the start. */
export function saidIn({ body }: GenerateRequest): { readonly role: string; readonly text: string }[] {
  return body.contents.flatMap(({ role, parts }) =>
    parts.flatMap(({ text = '' }) => (text.startsWith('<session_context>') ? [] : [{ role, text }])),
  );
}

export function lastSaidIn(request: GenerateRequest): string {
  return saidIn(request).findLast(({ role }) => role === 'user')?.text ?? '';
}
