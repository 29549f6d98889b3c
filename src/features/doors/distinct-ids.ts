import type { Message } from '../../shared/job.js';

/**
 * Returns a function that gives each call of a message a distinct id, because a model or a server may repeat one. `others`:
 * the ids of all calls of the message, if they are known; the new ids then do not depend on the order of the calls.
 */
export function distinctIds(otherIds: readonly string[] = []): (id: string) => string {
  const reserved = new Set(otherIds);
  const usedIds = new Set<string>();
  const counts = new Map<string, number>();
  return (id) => {
    let uniqueId = id;
    let count = counts.get(id) ?? 1;
    while (usedIds.has(uniqueId) || (uniqueId !== id && reserved.has(uniqueId))) uniqueId = `${id}_${++count}`;
    counts.set(id, count);
    usedIds.add(uniqueId);
    return uniqueId;
  };
}

/** Returns messages in which all calls of a message have different ids. The first result with an id belongs to the first such call. */
export function withDistinctIds(messages: readonly Message[]): Message[] {
  return messages.map((message) => {
    const { calls, results } = message;
    if (calls === undefined && results === undefined) return message;
    return { ...message, ...(calls && { calls: renamed(calls) }), ...(results && { results: renamed(results) }) };
  });
}

function renamed<T extends { readonly id: string }>(parts: readonly T[]): T[] {
  const ownId = distinctIds(parts.map(({ id }) => id));
  return parts.map((part) => ({ ...part, id: ownId(part.id) }));
}
