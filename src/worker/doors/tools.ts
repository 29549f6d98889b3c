import { invalid } from '../../shared/errors.js';
import type { Part } from './parts.js';

/** A function that a foreign request offers to the model. */
export interface OfferedTool {
  readonly name: string;
  readonly description?: string | undefined;
  readonly schema?: Readonly<Record<string, unknown>> | undefined;
}

/** What the caller wants of the tools: a call of one, a call of any, or nothing in particular. */
export type ToolWish =
  | { readonly kind: 'named'; readonly name: string }
  | { readonly kind: 'any' }
  | { readonly kind: 'free' };

/**
 * The one function whose call the answer is to be, as structured output; null where the model may just talk. A model
 * behind this service has no tools. Throws `validation_error` where it would have to choose among several.
 */
export function calledTool(
  tools: readonly OfferedTool[],
  wish: ToolWish,
  field = 'tool_choice',
  what = 'tools',
): OfferedTool | null {
  if (wish.kind === 'free') return null;
  if (wish.kind === 'any') {
    const [only, ...others] = tools;
    if (only === undefined) throw invalid(field, `needs ${what}`);
    if (others.length > 0) throw invalid(field, 'can only require a call where there is one tool: name it');
    return only;
  }
  const named = tools.find(({ name }) => name === wish.name);
  if (named === undefined) throw invalid(field, `must name one of the ${what}`);
  return named;
}

const functionName = /^[\w.-]{1,128}$/;

/** The names of functions by the ids of their calls. What is no id and no name is left out. */
export function namesOfCalls(calls: readonly (readonly [id: unknown, name: unknown])[]): ReadonlyMap<unknown, unknown> {
  return new Map(calls.filter(([id]) => typeof id === 'string'));
}

/** The result of a call as text for the model, with the name of the function, which tells several results apart. */
export function resultParts(name: unknown, result: readonly Part[], isError = false): Part[] {
  const what = typeof name === 'string' && functionName.test(name) ? name : 'the function';
  const end: Part[] = result.at(-1)?.type === 'image' ? [{ type: 'text', text: '' }] : []; // so that a blank line follows
  return [{ type: 'text', text: `${isError ? 'Error' : 'Result'} of ${what}:` }, ...result, ...end];
}

/** The schema of a call's arguments. It tells the model what the function is for. */
export function argumentsSchema({ name, description, schema }: OfferedTool): Readonly<Record<string, unknown>> {
  const told = { title: name, ...(description !== undefined && { description }) };
  return { type: 'object', ...told, ...schema };
}
