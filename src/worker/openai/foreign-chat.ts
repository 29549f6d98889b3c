import { z } from 'zod';
import { stringifyExactly } from '../../shared/text/exact-json.js';
import { isObject } from '../../shared/text/json-schema.js';
import { chatCompletionRequest } from './chat-request.js';

/**
 * Chat completions in the shapes of other APIs. Some editors send a body of the Responses API, or tools and blocks of
 * Anthropic's API, to /v1/chat/completions, and expect a chat completion.
 */

type Json = Readonly<Record<string, unknown>>;

/** Schema of a chat completion in any of these shapes. */
export const chatBody = z.preprocess(inChatForm, chatCompletionRequest);

function inChatForm(sent: unknown): unknown {
  if (!isObject(sent)) return sent;
  // The service stores no chat completions, so that an earlier response would be lost.
  const body = sent.messages === undefined && sent.previous_response_id == null ? ofResponses(sent) : sent;
  const { system, stop_sequences: stops, messages, tools, tool_choice: choice, ...rest } = body;
  const hasSystem = typeof system === 'string' || Array.isArray(system);
  const before = hasSystem ? [{ role: 'system', content: system }] : [];
  return {
    ...rest,
    ...(!hasSystem && system !== undefined && { system }),
    ...(stops !== undefined && (rest.stop == null ? { stop: stops } : { stop_sequences: stops })),
    ...(messages !== undefined && {
      messages: Array.isArray(messages) ? [...before, ...messages.flatMap(messagesOf)] : messages,
    }),
    ...(tools !== undefined && { tools: Array.isArray(tools) ? tools.map(toolOf) : tools }),
    ...(choice !== undefined && (isObject(choice) ? choiceOf(choice) : { tool_choice: choice })),
  };
}

/** Translates the fields of a Responses request whose names differ. */
function ofResponses(body: Json): Json {
  const { input, instructions, max_output_tokens: limit, reasoning, text, ...rest } = body;
  const items = typeof input === 'string' ? [{ role: 'user', content: input }] : input;
  if (!Array.isArray(items)) return body;
  const { effort, ...otherReasoning } = isObject(reasoning) ? reasoning : {};
  const { format, ...otherText } = isObject(text) ? text : {};
  return {
    ...rest,
    messages: [...(instructions == null ? [] : [{ role: 'system', content: instructions }]), ...items],
    ...(limit !== undefined && { max_completion_tokens: limit }),
    ...(effort !== undefined && { reasoning_effort: effort }),
    ...(Object.keys(otherReasoning).length > 0 && { reasoning: otherReasoning }),
    ...(isObject(format) && { response_format: formatOf(format) }),
    ...(Object.keys(otherText).length > 0 && { text: otherText }),
  };
}

function formatOf(format: Json): Json {
  const { type, ...schema } = format;
  return type === 'json_schema' && schema.json_schema === undefined ? { type, json_schema: schema } : format;
}

/** Returns the messages for one message or item; none for reasoning, because earlier thoughts are not sent again. */
function messagesOf(sent: unknown): readonly unknown[] {
  if (!isObject(sent)) return [sent];
  const { type, id: _, status: __, ...message } = sent;
  switch (type) {
    case 'function_call':
      return [calling([{ id: sent.call_id, name: sent.name, arguments: sent.arguments }])];
    case 'custom_tool_call': {
      const custom = { name: sent.name, input: sent.input };
      return [calling([{ id: sent.call_id, type: 'custom', custom }])];
    }
    case 'function_call_output':
    case 'custom_tool_call_output':
      return [{ role: 'tool', tool_call_id: sent.call_id, content: contentOf(sent.output) }];
    case 'reasoning':
      return [];
    case 'message':
      return messagesWithBlocks(message);
    default:
      return messagesWithBlocks(sent);
  }
}

function calling(calls: readonly Json[]): Json {
  return { role: 'assistant', content: null, tool_calls: calls.map(callOf) };
}

/** Splits a message with Anthropic's blocks: results become messages before it, and calls its `tool_calls`. */
function messagesWithBlocks(message: Json): readonly Json[] {
  const { role, content, tool_calls: made, function_call: legacy } = message;
  const blocks = Array.isArray(content) ? content : [];
  const isResult = (block: unknown) => role === 'user' && isObject(block) && block.type === 'tool_result';
  const isCall = (block: unknown) => role === 'assistant' && isObject(block) && block.type === 'tool_use';
  const results = blocks.filter(isResult).map(resultOf);
  const calls = blocks.filter(isCall).map((block) => callOf({ ...block, arguments: block.input ?? {} }));
  const shown = blocks.filter((block) => !isResult(block) && !isCall(block)).map(partOf);
  const tool_calls = Array.isArray(made) ? [...made.map(callOf), ...calls] : calls.length > 0 ? calls : made;
  if (results.length > 0 && shown.length === 0) return results;
  const rest = {
    ...message,
    ...(Array.isArray(content) && { content: shown.length === 0 && calls.length > 0 ? null : shown }),
    ...(tool_calls !== undefined && { tool_calls }),
    ...(isObject(legacy) && { function_call: withTextArguments(legacy) }),
  };
  return [...results, rest];
}

function resultOf(block: Json): Json {
  const { tool_use_id: tool_call_id, content, is_error } = block;
  return { role: 'tool', tool_call_id, content: contentOf(content ?? ''), ...(is_error === true && { is_error }) };
}

function contentOf(content: unknown): unknown {
  return Array.isArray(content) ? content.map(partOf) : content;
}

/** Returns a call in the form of `tool_calls`. Its name and input may stand beside its id. */
function callOf(call: unknown): unknown {
  if (!isObject(call)) return call;
  if (isObject(call.function)) return { ...call, function: withTextArguments(call.function) };
  const { id, name, arguments: input, args } = call;
  if (call.custom !== undefined || typeof name !== 'string') return call;
  return { id, type: 'function', function: withTextArguments({ name, arguments: input ?? args }) };
}

function withTextArguments(made: Json): Json {
  const { arguments: input } = made;
  if (typeof input === 'string') return made;
  return { ...made, arguments: input == null ? '' : isObject(input) ? stringifyExactly(input) : input };
}

function partOf(part: unknown): unknown {
  if (!isObject(part)) return part;
  const { type, file_data, file_id, file_url, filename, source } = part;
  if (type === 'input_text' || type === 'output_text') return { type: 'text', text: part.text };
  if (type === 'input_image' && part.image_url != null) {
    const { image_url: url, detail } = part;
    return { type: 'image_url', image_url: { url, ...(detail != null && { detail }) } };
  }
  if (type === 'input_file') return { type: 'file', file: set({ file_data, file_id, file_url, filename }) };
  if (!isObject(source)) return part;
  const { type: kind, media_type: mediaType, data } = source;
  const url = kind === 'base64' ? `data:${mediaType};base64,${data}` : source.url;
  if (type === 'image' && url != null) return { type: 'image_url', image_url: { url } };
  return type === 'document' ? documentOf(part, source) : part;
}

/** Returns the fields that have a value. */
function set(fields: Json): Json {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value != null));
}

function documentOf(part: Json, { type: kind, media_type: mediaType, data, url }: Json): Json {
  const filename = part.title;
  if (kind === 'url') return { type: 'file', file: set({ file_url: url, filename }) };
  if (typeof data !== 'string' || (kind !== 'base64' && kind !== 'text')) return part;
  const base64 = kind === 'text' ? Buffer.from(data).toString('base64') : data;
  return { type: 'file', file: set({ file_data: `data:${mediaType};base64,${base64}`, filename }) };
}

function toolOf(tool: unknown): unknown {
  if (!isObject(tool) || tool.function !== undefined || tool.custom !== undefined) return tool;
  const { type, name, description, parameters, input_schema: schema, strict, format } = tool;
  if (typeof name !== 'string') return tool;
  const named = { name, ...(description !== undefined && { description }) };
  const more = strict !== undefined && { strict };
  if (schema !== undefined) return { type: 'function', function: { ...named, parameters: schema, ...more } };
  if (type === 'function' || (type === undefined && parameters !== undefined))
    return { type: 'function', function: { ...named, ...(parameters !== undefined && { parameters }), ...more } };
  return type === 'custom' ? { type, custom: { ...named, ...(format !== undefined && { format }) } } : tool;
}

/** Returns `tool_choice` in the form of chat completions, and whether calls may be parallel. */
function choiceOf(choice: Json): Json {
  const { type, name, mode, tools, disable_parallel_tool_use: isSingle } = choice;
  const parallel = isSingle === true && { parallel_tool_calls: false };
  const isWord = type === 'auto' || type === 'none' || type === 'any' || type === 'required';
  if (isWord) return { tool_choice: type, ...parallel };
  if (type === 'tool') return { tool_choice: { type: 'function', function: { name } }, ...parallel };
  if ((type === 'function' || type === 'custom') && typeof name === 'string')
    return { tool_choice: { type, [type]: { name } } };
  if (type === 'allowed_tools' && Array.isArray(tools))
    return { tool_choice: { type, allowed_tools: { mode, tools: tools.map(toolOf) } } };
  return { tool_choice: choice };
}
