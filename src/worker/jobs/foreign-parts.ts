import { wellFormed } from '../../shared/text/well-formed.js';
import type { ShownPart } from './message-parts.js';

/**
 * Parts of a history whose types only the servers of another provider know, such as `server_tool_use` and
 * `web_search_call`. They are left out, but for their text: a client sends its history again and again.
 */

/** A part as a client sends it. */
export interface ForeignPart {
  readonly type?: string | null | undefined;
  readonly [field: string]: unknown;
}

/** What stands for a part without a text. `refused`: the question itself would lose it. */
export type WithoutText = 'nothing' | 'a-note' | 'refused';

/** What the model gets instead; null if the part must be refused. */
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

/** Each string that a reader would read: no ids, no encrypted content, no files. */
function textsIn(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(textsIn);
  if (typeof value !== 'object' || value === null) return [];
  const { type, data, title, url } = value as ForeignPart;
  const found = typeof title === 'string' && typeof url === 'string' ? [`${title} (${url})`] : [];
  if (type === 'text' && typeof data === 'string') found.push(data);
  const inner = Object.entries(value).filter(([field]) => textFields.has(field));
  return [...found, ...inner.flatMap(([, part]) => (typeof part === 'string' ? [part] : textsIn(part)))];
}

/** The types among these parts that are not known, each once, as fields of this name. */
export function foreignTypes(name: string, parts: readonly ForeignPart[], known: ReadonlySet<string>): string[] {
  const types = parts.flatMap(({ type }) =>
    type == null || known.has(type) ? [] : [`${name}.${typeForHeader(type)}`],
  );
  return [...new Set(types)];
}

/** The types that are left out stand in a header and in a failure: a client may send anything as one. */
export function typeForHeader(type: string): string {
  return /^[\w.-]{1,64}$/.test(type) ? type : '(odd name)';
}
