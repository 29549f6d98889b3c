import { isLargeJson } from '../../shared/text/json-size.js';
import type { ResponsesRequest } from './responses-input.js';

/** Fields of a request that its response repeats. */
export type Repeated = ReturnType<typeof repeatedOf>;

/** Limit of each field, in UTF-16 units of its JSON. A stream contains the response three times. */
const maxLength = 256 * 1024;
/** Limit of each field that is stored with a background job. */
export const maxStoredLength = 1024;

/** Returns the repeated fields. Missing fields get the API's default; fields longer than `max` are left out. */
export function repeatedOf(body: Partial<ResponsesRequest>, max = maxLength) {
  const { instructions, metadata, reasoning, safety_identifier: holder, prompt_cache_key: key, user } = body;
  const { tools, tool_choice: choice, parallel_tool_calls: isParallel } = body;
  const short = <T>(value: T, otherwise: T): T =>
    !isLargeJson(value, max) && JSON.stringify(value).length <= max ? value : otherwise;
  const shortText = (value: unknown) => (typeof value === 'string' ? short<string | null>(value, null) : null);
  return {
    instructions: shortText(instructions),
    max_output_tokens: Number(body.max_output_tokens) >= 1 ? body.max_output_tokens : null,
    metadata: short(Object(metadata) === metadata ? metadata : {}, {}),
    reasoning: { effort: reasoning?.effort || null, summary: reasoning?.summary || null },
    temperature: body.temperature ?? 1,
    top_p: body.top_p ?? 1,
    text: { format: short(formatOf(body.text?.format), { type: 'text' }) },
    tool_choice: short<unknown>(choice === 'any' ? 'required' : (choice ?? 'auto'), 'auto'),
    tools: short((tools ?? []).flatMap(toolOf), []),
    safety_identifier: shortText(holder),
    prompt_cache_key: shortText(key),
    ...(isParallel != null && { parallel_tool_calls: isParallel }),
    ...(user != null && { user: shortText(user) }),
  };
}

type SentFormat = NonNullable<ResponsesRequest['text']>['format'];

function formatOf(format: SentFormat): { readonly type: string; readonly [field: string]: unknown } {
  if (format?.type !== 'json_schema') return { type: format?.type || 'text' };
  const { name, description = null, schema, strict } = format;
  return { type: format.type, name, description, schema, strict: strict === true };
}

type RepeatedTool = NonNullable<ResponsesRequest['tools']>[number];

/** Returns a tool, or an empty list for a provider-hosted one, which the model does not get. */
function toolOf(tool: RepeatedTool): object[] {
  if (tool.type === 'custom' || tool.type === 'namespace') return [tool];
  if (tool.type !== 'function') return [];
  const { name, description = null, parameters = null, strict = null } = tool;
  return [{ ...tool, name, description, parameters, strict }];
}
