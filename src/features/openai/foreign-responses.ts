import { z } from 'zod';
import { isObject, withoutEmptyList } from '../../shared/text/json-schema.js';
import type { SentFields } from '../../worker/jobs/job-request.js';
import { messagesWithBlocks } from './foreign-chat.js';
import { pairedItems } from './foreign-items.js';
import { responsesRequest } from './responses-input.js';

/**
 * Responses requests in the shapes of other APIs. Some clients send messages, tools and settings of chat completions, or
 * Anthropic's tools and blocks, to /v1/responses, and expect a response.
 */

/** Schema of a responses request in any of these shapes. */
export const responsesBody = z.preprocess(inResponsesForm, responsesRequest);

function inResponsesForm(sent: unknown): unknown {
  if (!isObject(sent)) return sent;
  const { messages, tools, tool_choice: choice, previous_response_id: previous, ...body } = sent;
  const input = body.input === undefined && Array.isArray(messages) ? messages : body.input;
  const isForeign = body.input === undefined && input !== undefined;
  return {
    ...ofChat(body),
    ...(!isForeign && messages !== undefined && { messages }),
    ...(previous !== '' && { previous_response_id: previous }),
    ...(input !== undefined && { input: Array.isArray(input) ? pairedItems(input).flatMap(itemsOf) : input }),
    ...(tools !== undefined && { tools: Array.isArray(tools) ? tools.map(toolOf) : tools }),
    ...(choice !== undefined && choice !== '' && { tool_choice: isObject(choice) ? choiceOf(choice) : choice }),
  };
}

/** Translates the settings of a chat completion whose names differ. A field of this API comes first. */
function ofChat(body: SentFields): SentFields {
  const { max_tokens: older, max_completion_tokens: newer, reasoning_effort: effort, ...rest } = body;
  const { response_format: format, text, reasoning, ...others } = rest;
  const limit = newer ?? older;
  const shownText = withField(text, 'format', isObject(format) ? formatOf(format) : null);
  const shownReasoning = withField(reasoning, 'effort', effort);
  return {
    ...others,
    ...(limit !== undefined && { [others.max_output_tokens == null ? 'max_output_tokens' : 'max_tokens']: limit }),
    ...(shownText !== undefined && { text: shownText }),
    ...(shownText === text && format != null && { response_format: format }),
    ...(shownReasoning !== undefined && { reasoning: shownReasoning }),
    ...(shownReasoning === reasoning && effort != null && { reasoning_effort: effort }),
  };
}

/** Returns the object with one more field. Returns it unchanged if it has the field, or there is no value. */
function withField(own: unknown, key: string, value: unknown): unknown {
  if (value == null) return own;
  if (own == null) return { [key]: value };
  return isObject(own) && own[key] == null ? { ...own, [key]: value } : own;
}

function formatOf(format: SentFields): SentFields {
  const { type, json_schema: schema } = format;
  return isObject(schema) ? { type, ...schema } : format;
}

/** Types of parts that this API writes in another way, or as items. */
const foreignParts: ReadonlySet<unknown> = new Set([
  ...['image_url', 'file', 'image', 'document', 'tool_use', 'tool_result'],
]);

/** Whether the part is not one of this API, or its image is an object as in a chat completion. */
function isForeign(part: unknown): boolean {
  return isObject(part) && (foreignParts.has(part.type) || (part.type === 'input_image' && isObject(part.image_url)));
}

/** Returns the items for one item or message. */
function itemsOf(item: unknown): readonly unknown[] {
  if (!isObject(item)) return [item];
  const { role, content, tool_calls: calls, function_call: legacy } = item;
  const isCalling = role === 'assistant' && (Array.isArray(calls) || isObject(legacy));
  const hasParts = Array.isArray(content) && content.some(isForeign);
  if (role !== 'tool' && role !== 'function' && !isCalling && !hasParts) return [item];
  return messagesWithBlocks(item).flatMap(itemsOfMessage);
}

/** Returns the items for a message of a chat completion. */
function itemsOfMessage(message: SentFields): readonly SentFields[] {
  const { role, content, tool_calls: calls, function_call: legacy, tool_call_id, name, ...rest } = message;
  const shown = Array.isArray(content) ? content.map(partOf) : content;
  if (role === 'tool' || role === 'function')
    return [{ ...rest, type: 'function_call_output', call_id: tool_call_id ?? name, output: shown ?? '' }];
  const made = [
    ...(Array.isArray(calls) ? calls : []),
    ...(isObject(legacy) ? [{ id: legacy.name, function: legacy }] : []),
  ];
  const isSilent = made.length > 0 && (shown == null || shown === '');
  return [...(isSilent ? [] : [{ ...rest, role, content: shown }]), ...made.flatMap(callOf)];
}

function callOf(call: unknown): SentFields[] {
  if (!isObject(call)) return [];
  const { id: call_id, function: made, custom } = call;
  if (isObject(custom)) return [{ type: 'custom_tool_call', call_id, name: custom.name, input: custom.input }];
  return isObject(made)
    ? [{ type: 'function_call', call_id, name: made.name, arguments: withoutEmptyList(made.arguments) }]
    : [];
}

function partOf(part: unknown): unknown {
  if (!isObject(part)) return part;
  const { type, text, image_url: image, file } = part;
  if (type === 'text') return { type: 'input_text', text };
  if (type === 'image_url') {
    const { url: image_url, ...rest } = isObject(image) ? image : { url: image };
    return { type: 'input_image', ...rest, ...(image_url !== undefined && { image_url }) };
  }
  return type === 'file' && isObject(file) ? { type: 'input_file', ...file } : part;
}

function toolOf(tool: unknown): unknown {
  if (!isObject(tool)) return tool;
  const { type, function: made, custom, input_schema: schema, ...rest } = tool;
  if (isObject(made)) {
    const { function: _, ...fields } = made;
    return toolOf({ ...rest, type: 'function', ...fields });
  }
  if (isObject(custom)) return { ...rest, type: 'custom', ...custom };
  if (schema !== undefined && (type === undefined || type === 'custom'))
    return toolOf({ ...rest, type: 'function', parameters: schema });
  if (type === undefined && typeof rest.name === 'string') return toolOf({ ...rest, type: 'function' });
  return Array.isArray(rest.parameters) ? { ...tool, parameters: withoutEmptyList(rest.parameters) } : tool;
}

function choiceOf(choice: SentFields): unknown {
  const { type, function: made, custom, allowed_tools: allowed, name } = choice;
  if (type === 'auto' || type === 'none' || type === 'any' || type === 'required') return type;
  if (type === 'tool') return { type: 'function', name };
  if (type === 'function' && isObject(made)) return { type, ...made };
  if (type === 'custom' && isObject(custom)) return { type, ...custom };
  if (type !== 'allowed_tools' || !isObject(allowed)) return choice;
  const { mode, tools } = allowed;
  return { type, mode, tools: Array.isArray(tools) ? tools.map(toolOf) : tools };
}
