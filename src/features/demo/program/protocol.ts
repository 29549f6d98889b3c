/**
 * Question to the model. Images have a media type and bytes in base64. If `schema` is set, the answer is JSON that
 * matches it.
 */
export interface UserLine extends OfTurn {
  readonly type: 'user';
  readonly text: string;
  readonly images?: readonly DemoImage[];
  readonly schema?: unknown;
  /** Tools that the answer may call. */
  readonly tools?: readonly DemoTool[];
  /** Whether the answer must call a tool; a string names the tool. */
  readonly must?: boolean | string;
  /** Results of the tools that earlier answers have called. */
  readonly results?: readonly DemoResult[];
}

export interface DemoTool {
  readonly name: string;
  readonly schema: unknown;
}

export interface DemoCall {
  readonly id: string;
  readonly name: string;
  readonly input: unknown;
}

export interface DemoResult {
  readonly id: string;
  readonly text: string;
  readonly is_error: boolean;
}

export interface DemoImage {
  readonly media_type: string;
  readonly data: string;
}

/** Line that the program reads, a JSON object. */
export type Input =
  | { readonly type: 'system'; readonly text: string }
  | UserLine
  | {
      readonly type: 'replay';
      readonly role: 'user' | 'assistant';
      readonly text: string;
      readonly calls?: readonly DemoCall[];
    }
  | { readonly type: 'models' };

type TokenCounts = Readonly<Record<'input_tokens' | 'output_tokens', number>>;

/** Number of a turn, which a user line may have. Every line of the answer repeats it. */
interface OfTurn {
  readonly turn?: number;
}

/**
 * Line that the program writes, a JSON object. A delta has at most 16 KiB of UTF-8. Token counts are numbers of words.
 */
export type Output =
  | (OfTurn & { readonly type: 'delta'; readonly text: string })
  | (OfTurn & { readonly type: 'thought'; readonly text: string })
  | (OfTurn & DemoCall & { readonly type: 'call' })
  | (OfTurn & { readonly type: 'end'; readonly model: string; readonly usage: TokenCounts })
  | { readonly type: 'models'; readonly models: readonly object[] }
  | { readonly type: 'error'; readonly reason: 'model_unknown' | 'other'; readonly message: string };

/** Parses a line; null if it breaks the protocol. */
export function parse(line: string): Input | null {
  try {
    const { type, role, text, turn, images, schema, ...more }: Readonly<Record<string, unknown>> = JSON.parse(line);
    if (type === 'models') return { type };
    if (typeof text !== 'string') return null;
    if (type === 'system') return { type, text };
    if (type === 'user')
      return { ...more, type, text, images: imagesOf(images), schema, ...(typeof turn === 'number' && { turn }) };
    return type === 'replay' && (role === 'user' || role === 'assistant') ? { ...more, type, role, text } : null;
  } catch {
    return null;
  }
}

function imagesOf(value: unknown): readonly DemoImage[] {
  if (!Array.isArray(value)) return [];
  return value.map(({ media_type, data }) => ({ media_type: String(media_type), data: String(data) }));
}

/** Splits chunks into lines. node:readline would also split at U+2028 and U+2029, which JSON may contain unescaped. */
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
  const prompt = parts.join('');
  if (prompt !== '') yield prompt;
}

/** Splits an answer into deltas: into words up to 4,096 UTF-16 units, otherwise into pieces of 4,096 code points. */
export function deltasOf(text: string): readonly string[] {
  return text.match(text.length <= 4096 ? /\S+\s*|\s+/g : /.{1,4096}/gsu) ?? [];
}

export function countWords(text: string): number {
  return text.match(/\S+/g)?.length ?? 0;
}
