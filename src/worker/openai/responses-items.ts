import type { CompletedAnswer } from '../jobs/answer-format.js';
import type { WrittenCall } from '../jobs/tool-offer.js';

export type ItemStatus = 'in_progress' | 'completed' | 'incomplete';

/** Returns the items of an answer, with the same ids as in a stream. `status`: status of the last message. */
export function itemsOf(answer: CompletedAnswer, status: ItemStatus): object[] {
  const { requestId, parts } = answer;
  const counts = { thought: 0, text: 0, call: 0 };
  return parts.map((part) => {
    const id = itemIds[part.type](requestId, counts[part.type]++);
    if (part.type === 'call') return callItem(id, part.call, 'completed');
    if (part.type === 'thought') return thoughtItem(id, part.text);
    const isLast = !parts.slice(parts.indexOf(part) + 1).some(({ type }) => type === 'text');
    return messageItem(id, part.text, isLast ? status : 'completed');
  });
}

/** Returns the id of an item from the number of earlier items of its kind. */
export const itemIds = { thought: idsFor('rs'), text: idsFor('msg'), call: idsFor('fc') } as const;

function idsFor(prefix: string) {
  return (requestId: string, count: number) => `${prefix}_${requestId}${count === 0 ? '' : `_${count}`}`;
}

/** `text` is null if the message has no text yet. */
export function messageItem(id: string, text: string | null, status: ItemStatus): object {
  return { id, type: 'message', status, role: 'assistant', content: text === null ? [] : [textPart(text)] };
}

export function callItem(id: string, call: WrittenCall, status: ItemStatus): object {
  const { id: callId, name, namespace, input, isCustom } = call;
  const made = { id, status, call_id: callId, name, ...(namespace !== undefined && { namespace }) };
  if (isCustom) return { ...made, type: 'custom_tool_call', input };
  return { ...made, type: 'function_call', arguments: input };
}

/** Returns a thought, which has no summary if it has no text. */
export function thoughtItem(id: string, text: string): object {
  return { id, type: 'reasoning', summary: text === '' ? [] : [summaryPart(text)] };
}

export function summaryPart(text: string): object {
  return { type: 'summary_text', text };
}

export function textPart(text: string): object {
  return { type: 'output_text', annotations: [], logprobs: [], text };
}
