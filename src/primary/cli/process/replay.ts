import type { Message, ToolCall, ToolResult, Turn } from '../contract/adapter.js';

/**
 * Prepares a turn for a process without history. The history may come from any model or server, so it is adapted to
 * what every API accepts: ids of calls by their position, legal names, no blank messages.
 */
export function replayable(turn: Turn): Turn {
  const { messages, ids } = normalised(turn.history);
  return { ...turn, history: messages, ...(turn.results && { results: turn.results.map(renamedBy(ids)) }) };
}

/**
 * Adapts messages to what every API accepts. `openIds`: for the calls of the last message, maps the client's ids to the
 * program's. The results of the calls use the program's ids, too.
 */
export function replayableHistory(history: readonly Message[], openIds: CallIds): readonly Message[] {
  return normalised(history, openIds).messages;
}

/** Maps the client's ids of calls to the program's. */
type CallIds = ReadonlyMap<string, string>;

/**
 * Returns the adapted messages, and the ids of the last message's calls. Ids are renewed because some models restart
 * their numbering in each answer.
 */
function normalised(
  history: readonly Message[],
  openIds?: CallIds,
): { readonly messages: readonly Message[]; readonly ids: CallIds } {
  let ids: CallIds = new Map();
  let count = 0;
  const messages = history.map((message, at): Message => {
    const { role, images, calls, results } = message;
    const renamed = results?.map(renamedBy(ids));
    const known = at === history.length - 1 ? openIds : undefined;
    ids = new Map(calls?.map(({ id }) => [id, known ? (known.get(id) ?? id) : `toolu_replay_${count++}`]));
    const tools = {
      ...(calls && { calls: calls.map(legalCall(ids)) }),
      ...(renamed && { results: renamed }),
    };
    if (isDecoded(message)) return { role, images, text: saidIn(message), ...tools };
    return {
      role,
      images,
      // A process that has the history needs none of its texts.
      get text() {
        return saidIn(message);
      },
      ...tools,
    };
  });
  return { messages, ids };
}

/** Whether a message has its text. A conversation decodes its texts on access, which takes longer for many messages. */
function isDecoded(message: Message): boolean {
  return Object.getOwnPropertyDescriptor(message, 'text')?.value !== undefined;
}

function renamedBy(ids: CallIds): (result: ToolResult) => ToolResult {
  return (result) => ({ ...result, id: ids.get(result.id) ?? result.id });
}

function legalCall(ids: CallIds): (call: ToolCall) => ToolCall {
  return ({ id, name, input }) => ({ id: ids.get(id) ?? id, name: legalName(name), input });
}

const maxNameLength = 128;

/** Makes a tool name legal in a call of the history. Names of offered tools are checked when the request arrives. */
function legalName(name: string): string {
  const legal = name.replace(/[^\w-]/gu, '_').slice(0, maxNameLength);
  return legal === '' ? '_' : legal;
}

/** Replaces a message without content, such as an empty answer of a model. */
const nothing = '(no text)';

/** Returns the text of a message; replaces blank text, which APIs refuse. */
function saidIn({ text, images = [], calls = [], results = [] }: Message): string {
  if (text.trim() !== '' || images.length > 0) return text;
  return calls.length + results.length > 0 ? '' : nothing;
}
