import type { Message, ToolCall, ToolResult, Turn } from '../contract/adapter.js';

/**
 * The turn for a process that has nothing of its history yet. The history may come from any other model or server, so it
 * is put into a form that each API takes: ids of calls by their places, legal names, and no message that is blank.
 */
export function replayable(turn: Turn): Turn {
  const { messages, ids } = normalised(turn.history);
  return { ...turn, history: messages, ...(turn.results && { results: turn.results.map(renamedBy(ids)) }) };
}

/**
 * Messages with ids, names and texts that each API takes. `openIds`: the program's ids of the calls of the last message, by
 * those of the client. Results that come next have these ids, too.
 */
export function replayableHistory(history: readonly Message[], openIds: CallIds): readonly Message[] {
  return normalised(history, openIds).messages;
}

/** The ids of calls for the program, by those of the client. */
type CallIds = ReadonlyMap<string, string>;

/** `ids`: of the calls of the last message. Models that count their calls anew in each answer repeat the same ids. */
function normalised(
  history: readonly Message[],
  openIds?: CallIds,
): { readonly messages: readonly Message[]; readonly ids: CallIds } {
  let ids: CallIds = new Map();
  let count = 0;
  const messages = history.map((message, at): Message => {
    const { calls, results } = message;
    const renamed = results?.map(renamedBy(ids));
    const known = at === history.length - 1 ? openIds : undefined;
    ids = new Map(calls?.map(({ id }) => [id, known ? (known.get(id) ?? id) : `toolu_replay_${count++}`]));
    return {
      ...message,
      text: saidIn(message),
      ...(calls && { calls: calls.map(legalCall(ids)) }),
      ...(renamed && { results: renamed }),
    };
  });
  return { messages, ids };
}

function renamedBy(ids: CallIds): (result: ToolResult) => ToolResult {
  return (result) => ({ ...result, id: ids.get(result.id) ?? result.id });
}

function legalCall(ids: CallIds): (call: ToolCall) => ToolCall {
  return ({ id, name, input }) => ({ id: ids.get(id) ?? id, name: legalName(name), input });
}

const maxNameLength = 128;

/** Only of calls of the past: the names of the tools that are offered are checked at the door. */
function legalName(name: string): string {
  const legal = name.replace(/[^\w-]/gu, '_').slice(0, maxNameLength);
  return legal === '' ? '_' : legal;
}

/** Stands for a message that says nothing, such as the empty answer of a model. */
const nothing = '(no text)';

/** The API refuses blank texts. */
function saidIn({ text, images = [], calls = [], results = [] }: Message): string {
  if (text.trim() !== '' || images.length > 0) return text;
  return calls.length + results.length > 0 ? '' : nothing;
}
