/** What the program reads: one JSON object a line. */
export type Input =
  | { readonly type: 'system' | 'user'; readonly text: string }
  | { readonly type: 'replay'; readonly role: 'user' | 'assistant'; readonly text: string }
  | { readonly type: 'models' };

export interface Model {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly default: boolean;
}

/** What the program writes: one JSON object a line. Tokens are words. */
export type Output =
  | { readonly type: 'delta'; readonly text: string }
  | {
      readonly type: 'end';
      readonly model: string;
      readonly usage: { readonly input_tokens: number; readonly output_tokens: number };
    }
  | { readonly type: 'models'; readonly models: readonly Model[] }
  | { readonly type: 'error'; readonly reason: 'model_unknown' | 'other'; readonly message: string };

export function encode(output: Output): string {
  return `${JSON.stringify(output)}\n`;
}

/** Null for a line that breaks the protocol. */
export function parse(line: string): Input | null {
  const fields = fieldsOf(line);
  if (fields === null) return null;
  const { type, role, text } = fields;
  if (type === 'models') return { type };
  if (typeof text !== 'string') return null;
  if (type === 'system' || type === 'user') return { type, text };
  if (type === 'replay' && (role === 'user' || role === 'assistant')) return { type, role, text };
  return null;
}

function fieldsOf(line: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null ? { ...value } : null;
  } catch {
    return null;
  }
}

/** Not node:readline, which also breaks lines at U+2028 and U+2029: JSON may hold those as they are. */
export async function* linesOf(chunks: AsyncIterable<string>): AsyncGenerator<string> {
  let parts: string[] = [];
  for await (const chunk of chunks) {
    const [first = '', ...others] = chunk.split('\n');
    parts.push(first);
    for (const next of others) {
      yield parts.join('');
      parts = [next];
    }
  }
  const rest = parts.join('');
  if (rest !== '') yield rest;
}
