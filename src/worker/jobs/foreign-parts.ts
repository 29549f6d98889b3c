import { wellFormed } from '../../shared/text/well-formed.js';
import type { ShownPart } from './message-parts.js';

/**
 * Parts of a history with types that only another provider's servers know, such as `server_tool_use` and
 * `web_search_call`. Only their text is passed to the model. Refusing them would block the conversation, because a
 * client sends its history with every request.
 */

/** Part of a message, as the client sent it. */
export interface ForeignPart {
  readonly type?: string | null | undefined;
  readonly [field: string]: unknown;
}

/**
 * Replacement for a part without text: nothing, a note for the model, or `refused` if the question itself would lose
 * the part.
 */
export type WithoutText = 'nothing' | 'a-note' | 'refused';

/** Returns parts that the model can read, or null if the part must be refused. */
export function foreignParts(part: ForeignPart, withoutText: WithoutText): ShownPart[] | null {
  const text = textsIn(part)
    .filter((each) => each.trim() !== '')
    .join('\n\n');
  if (text !== '') return [{ type: 'text', text: wellFormed(text) }];
  if (withoutText === 'refused') return null;
  return withoutText === 'nothing' ? [] : [{ type: 'text', text: `(${typeForHeader(part.type ?? '')}: not shown)` }];
}

const textFields = new Set([
  'text',
  'content',
  'source',
  'summary',
  'stdout',
  'stderr',
  'logs',
  'output',
  'outputs',
  'results',
]);

/** Collects the readable strings of a value: no ids, encrypted content or files. */
function textsIn(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(textsIn);
  if (typeof value !== 'object' || value === null) return [];
  const { type, data, title, url } = value as ForeignPart;
  const found = typeof title === 'string' && typeof url === 'string' ? [`${title} (${url})`] : [];
  if (type === 'text' && typeof data === 'string') found.push(data);
  const inner = Object.entries(value).filter(([field]) => textFields.has(field));
  return [...found, ...inner.flatMap(([, part]) => (typeof part === 'string' ? [part] : textsIn(part)))];
}

/** Returns the unknown types of these parts as `name.type`, each once. */
export function foreignTypes(name: string, parts: readonly ForeignPart[], known: ReadonlySet<string>): string[] {
  const types = parts.flatMap(({ type }) =>
    type == null || known.has(type) ? [] : [`${name}.${typeForHeader(type)}`],
  );
  return [...new Set(types)];
}

/** Replaces a type that is unsafe in a header or an error message, because a client may send any string. */
export function typeForHeader(type: string): string {
  return /^[\w.-]{1,64}$/.test(type) ? type : '(odd name)';
}
