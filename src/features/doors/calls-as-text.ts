import type { Attachment, Message, ToolCall, ToolResult, Turn } from '../../primary/cli/contract/adapter.js';

/** Calls of tools and their results as text, for a model that has no tools. */

/** Returns the turn with calls and results as text. */
export function withoutTools({ results, offer: _, history, heard, ...turn }: Turn): Turn {
  const names: NamesById = new Map();
  const plain = (messages: readonly Message[]) => messages.map((message) => messageWithout(message, names));
  const before = { ...(heard && { heard: plain(heard) }), history: plain(history) };
  const message = { role: 'user', text: turn.text, images: turn.images, results } as const;
  const { text, images = [] } = messageWithout(message, names);
  return { ...turn, text, images, ...before };
}

/** Returns the messages with calls and results as text. */
export function callsAsText(history: readonly Message[]): Message[] {
  const names: NamesById = new Map();
  return history.map((message) => messageWithout(message, names));
}

/** Tool names by the ids of the calls so far. Later calls may reuse an id. */
type NamesById = Map<string, string>;

type AnyMessage = Pick<Message, 'role' | 'text'> & {
  readonly images?: readonly Attachment[] | undefined;
  readonly calls?: readonly ToolCall[] | undefined;
  readonly results?: readonly ToolResult[] | undefined;
};

function messageWithout({ role, text, images = [], calls = [], results = [] }: AnyMessage, names: NamesById): Message {
  const made = calls.map(
    ({ name, input }) => `{"kind": "call", "name": ${JSON.stringify(name)}, "arguments": ${input}}`,
  );
  let whole = '';
  const shown: Attachment[] = [];
  const parts = [
    ...results.map((result) => resultText(result, names)),
    { text, images },
    ...made.map((call) => ({ text: call, images: [] })),
  ];
  for (const part of parts) {
    if (part.text === '' && part.images.length === 0) continue;
    if (whole !== '') whole += '\n\n';
    for (const image of part.images) shown.push({ ...image, at: image.at + whole.length });
    whole += part.text;
  }
  for (const { id, name } of calls) names.set(id, name);
  return { role, text: whole, ...(shown.length > 0 && { images: shown }) };
}

function resultText({ id, text, images = [], isError }: ToolResult, names: NamesById) {
  const head = `${isError ? 'Error' : 'Result'} of ${names.get(id) ?? 'the tool'} (${id}):\n`;
  return { text: head + text, images: images.map((image) => ({ ...image, at: image.at + head.length })) };
}
