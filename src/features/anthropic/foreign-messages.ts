import { z } from 'zod';
import { parseExactly } from '../../shared/text/exact-json.js';
import { isObject, withoutEmptyList } from '../../shared/text/json-schema.js';
import type { SentFields } from '../../worker/jobs/job-request.js';
import { dataUrlIn } from '../doors/messages.js';
import { messagesRequest } from './messages-request.js';

/**
 * Messages requests in the shapes of OpenAI's APIs. Some clients send functions, calls and parts of a chat completion to
 * /v1/messages, and expect a message.
 */

/** Schema of a messages request in any of these shapes. */
export const messagesBody = z.preprocess(inMessagesForm, messagesRequest);

function inMessagesForm(sent: unknown): unknown {
  if (!isObject(sent)) return sent;
  const {
    messages,
    tools,
    tool_choice: choice,
    stop,
    max_completion_tokens: limit,
    response_format: format,
    parallel_tool_calls: parallel,
    ...body
  } = sent;
  const { type, json_schema: schema } = isObject(format) ? format : {};
  const hasFormat = body.output_format != null || (isObject(body.output_config) && body.output_config.format != null);
  const isAsked = !hasFormat && isObject(schema);
  const named = typeof choice === 'string' ? { type: choice } : choice;
  const chosen = isObject(named) ? choiceOf(named) : named;
  const single = parallel === false ? singleCallOf(chosen) : null;
  return {
    ...body,
    ...(isAsked
      ? { output_format: { type, schema: schema.schema } }
      : format !== undefined && { response_format: format }),
    ...(limit !== undefined &&
      limit !== 0 && { [body.max_tokens == null ? 'max_tokens' : 'max_completion_tokens']: limit }),
    ...(stop !== undefined && (body.stop_sequences == null ? { stop_sequences: [stop ?? []].flat() } : { stop })),
    ...(messages !== undefined && { messages: Array.isArray(messages) ? messages.map(messageOf) : messages }),
    ...(tools !== undefined && { tools: Array.isArray(tools) ? tools.map(toolOf) : tools }),
    ...(chosen !== undefined && { tool_choice: chosen }),
    ...(single !== null ? { tool_choice: single } : parallel !== undefined && { parallel_tool_calls: parallel }),
  };
}

/** Types of parts that OpenAI's APIs have in place of blocks. */
const foreignParts: ReadonlySet<unknown> = new Set([
  ...['image_url', 'file', 'input_text', 'output_text', 'input_image', 'input_file', 'refusal'],
]);

function messageOf(message: unknown): unknown {
  if (!isObject(message)) return message;
  const { role, content, tool_calls: sent, function_call: legacy, tool_call_id: id, ...rest } = message;
  const made = Array.isArray(sent) ? sent : [];
  const calls = made.length === 0 && isObject(legacy) ? [{ function: legacy }] : made;
  if (role === 'tool' || role === 'function') {
    const { is_error, cache_control } = rest;
    const result = { type: 'tool_result', tool_use_id: id, content: blocksOf(content) ?? '' };
    return { role: 'user', content: [set({ ...result, is_error, cache_control })] };
  }
  if (role === 'developer') return { ...message, role: 'system', content: blocksOf(content) };
  if (role === 'assistant' && (calls.length > 0 || Array.isArray(sent))) {
    const shown = typeof content === 'string' ? [{ type: 'text', text: content }] : blocksOf(content);
    return { ...rest, role, content: [...(Array.isArray(shown) ? shown : []), ...calls.map(callOf)] };
  }
  if (role === 'assistant' && content === null) return { ...message, content: '' };
  return Array.isArray(content) ? { ...message, content: blocksOf(content) } : message;
}

function callOf(call: unknown): unknown {
  if (!isObject(call) || !isObject(call.function)) return call;
  const { name, arguments: input } = call.function;
  return { type: 'tool_use', id: call.id, name, input: typeof input === 'string' ? inputOf(input) : input };
}

function inputOf(json: string): unknown {
  try {
    return parseExactly(json);
  } catch {
    return {};
  }
}

function blocksOf(content: unknown): unknown {
  return Array.isArray(content) ? content.map(blockOf) : content;
}

function blockOf(part: unknown): unknown {
  return isObject(part) && foreignParts.has(part.type)
    ? set({ ...ownBlockOf(part), cache_control: part.cache_control })
    : part;
}

function ownBlockOf(part: SentFields): SentFields {
  const { type, text, refusal, image_url: image, file } = part;
  if (type === 'image_url' || type === 'input_image') {
    const { url, file_id: id = part.file_id } = isObject(image) ? image : { url: image };
    return { type: 'image', source: sourceOf(url, id) };
  }
  if (type === 'input_file' || type === 'file') {
    const { file_data: data, file_id: id, filename } = isObject(file) ? file : part;
    return { type: 'document', source: sourceOf(data, id), ...(typeof filename === 'string' && { title: filename }) };
  }
  return { type: 'text', text: text ?? refusal };
}

function sourceOf(url: unknown, id: unknown): SentFields {
  if (id != null) return { type: 'file', file_id: id };
  const found = typeof url === 'string' ? dataUrlIn(url) : null;
  if (found === null) return { type: 'url', url };
  return { type: 'base64', media_type: found.mediaType, data: found.data };
}

/** Returns the fields that have a value. */
function set(fields: SentFields): SentFields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

function toolOf(tool: unknown): unknown {
  if (!isObject(tool)) return tool;
  const { type, function: made, parameters, ...rest } = tool;
  if (isObject(made)) {
    const { function: _, ...fields } = made;
    return toolOf({ ...rest, type: 'function', ...fields });
  }
  if (type !== 'function' && (type !== undefined || parameters === undefined))
    return Array.isArray(tool.input_schema) ? { ...tool, input_schema: withoutEmptyList(tool.input_schema) } : tool;
  return { ...rest, ...(parameters !== undefined && { input_schema: withoutEmptyList(parameters) }) };
}

/** Returns the choice for at most one call; null if no call can be made, or the choice is invalid. */
function singleCallOf(chosen: unknown): SentFields | null {
  if (chosen == null) return { type: 'auto', disable_parallel_tool_use: true };
  return isObject(chosen) && chosen.type !== 'none' ? { ...chosen, disable_parallel_tool_use: true } : null;
}

function choiceOf(choice: SentFields): SentFields {
  const { type, function: made, name, ...rest } = choice;
  if (type === 'required') return { ...rest, type: 'any' };
  if (type === 'function') return { ...rest, type: 'tool', name: isObject(made) ? made.name : name };
  return type === '' ? { ...rest, type: 'auto' } : choice;
}
