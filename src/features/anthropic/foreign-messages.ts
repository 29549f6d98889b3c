import { z } from 'zod';
import { parseExactly } from '../../shared/text/exact-json.js';
import { isObject, withoutEmptyList } from '../../shared/text/json-schema.js';
import type { SentFields } from '../../worker/jobs/job-request.js';
import { dataUrlIn } from '../../worker/jobs/message-parts.js';
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
    ...body
  } = sent;
  const { type, json_schema: schema } = isObject(format) ? format : {};
  const hasFormat = body.output_format != null || (isObject(body.output_config) && body.output_config.format != null);
  const isAsked = !hasFormat && isObject(schema);
  const isSingle = body.parallel_tool_calls === false && choice == null;
  const named = typeof choice === 'string' ? { type: choice } : choice;
  return {
    ...body,
    ...(isAsked
      ? { output_format: { type, schema: schema.schema } }
      : format !== undefined && { response_format: format }),
    ...(limit !== undefined && { [body.max_tokens == null ? 'max_tokens' : 'max_completion_tokens']: limit }),
    ...(stop !== undefined && (body.stop_sequences == null ? { stop_sequences: [stop ?? []].flat() } : { stop })),
    ...(messages !== undefined && { messages: Array.isArray(messages) ? messages.map(messageOf) : messages }),
    ...(tools !== undefined && { tools: Array.isArray(tools) ? tools.map(toolOf) : tools }),
    ...(named !== undefined && { tool_choice: isObject(named) ? choiceOf(named) : named }),
    ...(isSingle && { tool_choice: { type: 'auto', disable_parallel_tool_use: true } }),
  };
}

/** Types of parts that OpenAI's APIs have in place of blocks. */
const foreignParts: ReadonlySet<unknown> = new Set([
  ...['image_url', 'file', 'input_text', 'output_text', 'input_image', 'input_file', 'refusal'],
]);

function messageOf(message: unknown): unknown {
  if (!isObject(message)) return message;
  const { role, content, tool_calls: sent, function_call: legacy, tool_call_id: id, ...rest } = message;
  const calls = sent ?? (isObject(legacy) ? [{ function: legacy }] : null);
  if (role === 'tool' || role === 'function')
    return { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: blocksOf(content) ?? '' }] };
  if (role === 'developer') return { ...message, role: 'system' };
  if (role === 'assistant' && Array.isArray(calls)) {
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
  if (!isObject(part) || !foreignParts.has(part.type)) return part;
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

function toolOf(tool: unknown): unknown {
  if (!isObject(tool)) return tool;
  const { type, function: made, parameters, ...rest } = tool;
  if (isObject(made)) return toolOf({ ...rest, type: 'function', ...made });
  if (type !== 'function' && (type !== undefined || parameters === undefined))
    return Array.isArray(tool.input_schema) ? { ...tool, input_schema: withoutEmptyList(tool.input_schema) } : tool;
  return { ...rest, ...(parameters !== undefined && { input_schema: withoutEmptyList(parameters) }) };
}

function choiceOf(choice: SentFields): SentFields {
  const { type, function: made, name, ...rest } = choice;
  if (type === 'required') return { ...rest, type: 'any' };
  if (type === 'function') return { ...rest, type: 'tool', name: isObject(made) ? made.name : name };
  return type === '' ? { ...rest, type: 'auto' } : choice;
}
