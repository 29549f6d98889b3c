import { invalid } from '../../shared/errors.js';

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
export function calledTool(tools: readonly OfferedTool[], wish: ToolWish): OfferedTool | null {
  if (wish.kind === 'free') return null;
  if (wish.kind === 'any') {
    const [only, ...others] = tools;
    if (only === undefined) throw invalid('tool_choice', 'needs tools');
    if (others.length > 0) throw invalid('tool_choice', 'can only require a call where there is one tool: name it');
    return only;
  }
  const named = tools.find(({ name }) => name === wish.name);
  if (named === undefined) throw invalid('tool_choice', 'must name one of the tools');
  return named;
}

/** The schema of a call's arguments. It tells the model what the function is for. */
export function argumentsSchema({ name, description, schema }: OfferedTool): Readonly<Record<string, unknown>> {
  const told = { title: name, ...(description !== undefined && { description }) };
  return { type: 'object', ...told, ...schema };
}
