import type { WrittenCall } from '../../worker/jobs/answer-format.js';
import { type CompletedAnswer, cutsIn, type Search } from '../../worker/jobs/answer-format.js';

export type ItemStatus = 'in_progress' | 'completed' | 'incomplete';

/** Returns the items of an answer, with the same ids as in a stream. `status`: status of the last message. */
export function itemsOf(answer: CompletedAnswer, status: ItemStatus): object[] {
  const { requestId, parts } = answer;
  const counts = { thought: 0, text: 0, call: 0, search: 0 };
  const lastText = parts.findLastIndex(({ type }) => type === 'text');
  return parts.map((part, index) => {
    const id = itemIds[part.type](requestId, counts[part.type]++);
    if (part.type === 'call') return callItem(id, part.call, 'completed');
    if (part.type === 'thought') return thoughtItem(id, part.text);
    if (part.type === 'search') return searchItem(id, part, 'completed');
    const isLast = index === lastText;
    return messageItem(id, part.text, isLast ? status : 'completed', isLast ? annotationsOf(answer) : []);
  });
}

/** Returns the id of an item from the number of earlier items of its kind. */
export const itemIds = {
  thought: idsFor('rs'),
  text: idsFor('msg'),
  call: idsFor('fc'),
  search: idsFor('ws'),
} as const;

function idsFor(prefix: string) {
  return (requestId: string, count: number) => `${prefix}_${requestId}${count === 0 ? '' : `_${count}`}`;
}

/** `text` is null if the message has no text yet. */
export function messageItem(
  id: string,
  text: string | null,
  status: ItemStatus,
  annotations: readonly object[] = [],
): object {
  return {
    id,
    type: 'message',
    status,
    role: 'assistant',
    content: text === null ? [] : [textPart(text, annotations)],
  };
}

/** Returns the links to results of web searches in the last text of an answer, in positions of this text. */
export function annotationsOf({ end }: Pick<CompletedAnswer, 'end'>): object[] {
  const { citations = [] } = end;
  const first = cutsIn(end).at(-1) ?? 0;
  return citations
    .filter(({ start }) => start >= first)
    .map(({ start, end: last, title, url }) => ({
      ...{ type: 'url_citation', start_index: start - first, end_index: last - first, title, url },
    }));
}

/** Returns a web search. The API has no code for a failed one. */
export function searchItem(id: string, { query, results, error }: Search, status: ItemStatus): object {
  const sources = results.map(({ url }) => ({ type: 'url', url }));
  const ended = error !== undefined && status === 'completed' ? 'failed' : status;
  return { id, type: 'web_search_call', status: ended, action: { type: 'search', query, sources } };
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

export function textPart(text: string, annotations: readonly object[] = []): object {
  return { type: 'output_text', annotations, logprobs: [], text };
}
