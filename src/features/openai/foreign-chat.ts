import { z } from 'zod';
import { invalid } from '../../shared/errors.js';
import { stringifyExactly } from '../../shared/text/exact-json.js';
import { isObject, withoutEmptyList } from '../../shared/text/json-schema.js';
import type { SentFields } from '../../worker/jobs/job-request.js';
import { chatCompletionRequest } from './chat-request.js';
import { pairedItems } from './foreign-items.js';

/**
 * Chat completions in the shapes of other APIs. Some editors send a body of the Responses API, or tools and blocks of
 * Anthropic's API, to /v1/chat/completions, and expect a chat completion.
 */

/** Schema of a chat completion in any of these shapes. */
export const chatBody = z.preprocess(inChatForm, chatCompletionRequest);

function inChatForm(sent: unknown): unknown {
  if (!isObject(sent)) return sent;
  // The service stores no chat completions, so that an earlier response would be lost.
  const body = sent.messages !== undefined || !sent.previous_response_id ? ofResponses(sent) : sent;
  const { system, stop_sequences: stops, messages, tools, tool_choice: choice, function_call: call, ...rest } = body;
  const hasSystem = typeof system === 'string' || Array.isArray(system);
  const before = hasSystem ? [{ role: 'system', content: system }] : [];
  const laterTools = Array.isArray(messages) ? messages.flatMap(laterToolsIn) : [];
  const all = laterTools.length === 0 ? tools : [...(Array.isArray(tools) ? tools : []), ...laterTools];
  return {
    ...rest,
    ...(!hasSystem && system !== undefined && { system }),
    ...(stops !== undefined && (rest.stop == null ? { stop: stops } : { stop_sequences: stops })),
    ...(messages !== undefined && {
      messages: Array.isArray(messages) ? [...before, ...pairedItems(messages).flatMap(messagesOf)] : messages,
    }),
    ...(all !== undefined && { tools: Array.isArray(all) ? all.map(toolOf) : all }),
    ...(call !== undefined && call !== '' && { function_call: call }),
    ...(choice !== undefined && choice !== '' && (isObject(choice) ? choiceOf(choice) : { tool_choice: choice })),
  };
}

/** Translates the fields of a Responses request whose names differ. A field of this API comes first. */
function ofResponses(body: SentFields): SentFields {
  const { input, instructions, max_output_tokens: limit, reasoning, text, ...rest } = body;
  const items = typeof input === 'string' ? [{ role: 'user', content: input }] : input;
  const messages = rest.messages ?? items;
  if (!Array.isArray(messages)) return body;
  const effort = isObject(reasoning) && rest.reasoning_effort == null ? reasoning.effort : null;
  const format = isObject(text) && rest.response_format == null ? text.format : null;
  const otherReasoning = othersOf(reasoning, effort == null ? null : 'effort');
  const otherText = othersOf(text, isObject(format) ? 'format' : null);
  const hasLimit = rest.max_tokens != null || rest.max_completion_tokens != null;
  return {
    ...rest,
    ...(limit !== undefined && { [hasLimit ? 'max_output_tokens' : 'max_completion_tokens']: limit }),
    ...(effort != null && { reasoning_effort: effort }),
    ...(isObject(format) && { response_format: formatOf(format) }),
    ...(rest.messages !== undefined && input !== undefined && { input }),
    messages: instructions == null ? messages : [{ role: 'system', content: instructions }, ...messages],
    ...(otherReasoning !== null && { reasoning: otherReasoning }),
    ...(otherText !== null && { text: otherText }),
  };
}

/** Returns the fields that have a value, without the one that is translated; null if there are none. */
function othersOf(sent: unknown, translated: string | null): SentFields | null {
  const fields = Object.entries(isObject(sent) ? sent : {});
  const others = fields.filter(([name, value]) => name !== translated && value != null);
  return others.length > 0 ? Object.fromEntries(others) : null;
}

function formatOf(format: SentFields): SentFields {
  const { type, ...schema } = format;
  return type === 'json_schema' && schema.json_schema === undefined ? { type, json_schema: schema } : format;
}

/** Type of the item in which codex offers tools to some models. */
const additionalTools = 'additional_tools';

function laterToolsIn(item: unknown): readonly unknown[] {
  return isObject(item) && item.type === additionalTools && Array.isArray(item.tools) ? item.tools : [];
}

/** Returns the messages for one message or item; none for reasoning, because earlier thoughts are not sent again. */
function messagesOf(sent: unknown): readonly unknown[] {
  if (!isObject(sent)) return [sent];
  if (sent.type === undefined) return messagesWithBlocks(sent);
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
    case additionalTools:
      return [];
    case 'message':
      return messagesWithBlocks(message);
    case 'item_reference':
      throw invalid('input', 'must not have an item_reference: only /v1/responses knows stored items');
    default:
      return typeof type === 'string' && sent.role === undefined ? [itemAsPart(sent, type)] : messagesWithBlocks(sent);
  }
}

/** Returns a message with an item of another provider's servers as its only part. Only its text reaches the model. */
function itemAsPart(item: SentFields, type: string): SentFields {
  return { role: type.endsWith('_output') ? 'user' : 'assistant', content: [item] };
}

function calling(calls: readonly SentFields[]): SentFields {
  return { role: 'assistant', content: null, tool_calls: calls.map(callOf) };
}

/** Splits a message with Anthropic's blocks: results become messages before it, and calls its `tool_calls`. */
export function messagesWithBlocks(message: SentFields): readonly SentFields[] {
  const { role, content, tool_calls: made, function_call: legacy } = message;
  if (made === undefined && legacy === undefined && isOfTexts(content)) return [message];
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

/** Whether content is no list, or a list of texts, as in most messages. */
function isOfTexts(content: unknown): boolean {
  return !Array.isArray(content) || content.every((part) => isObject(part) && part.type === 'text');
}

function resultOf(block: SentFields): SentFields {
  const { tool_use_id: tool_call_id, content, is_error } = block;
  return { role: 'tool', tool_call_id, content: contentOf(content ?? ''), ...(is_error === true && { is_error }) };
}

function contentOf(content: unknown): unknown {
  return Array.isArray(content) ? content.map(partOf) : content;
}

/** Returns a call in the form of `tool_calls`. Its name and input may stand beside its id. */
function callOf(call: unknown): unknown {
  if (!isObject(call)) return call;
  if (isObject(call.function)) {
    const made = withTextArguments(call.function);
    return made === call.function ? call : { ...call, function: made };
  }
  const { id, name, arguments: input, args } = call;
  if (call.custom !== undefined || typeof name !== 'string') return call;
  return { id, type: 'function', function: withTextArguments({ name, arguments: input ?? args }) };
}

function withTextArguments(made: SentFields): SentFields {
  const input = withoutEmptyList(made.arguments);
  if (typeof input === 'string') return made;
  return { ...made, arguments: input == null ? '' : isObject(input) ? stringifyExactly(input) : input };
}

function partOf(part: unknown): unknown {
  if (!isObject(part)) return part;
  const { type, file_data, file_id, file_url, filename, source } = part;
  if (type === 'input_text' || type === 'output_text') return { type: 'text', text: part.text };
  if (type === 'input_image') {
    const { image_url: image, detail } = part;
    return { type: 'image_url', image_url: set({ file_id, detail, ...(isObject(image) ? image : { url: image }) }) };
  }
  if (type === 'input_file') return { type: 'file', file: set({ file_data, file_id, file_url, filename }) };
  if (!isObject(source)) return part;
  const { type: kind, media_type: mediaType, data } = source;
  const url = kind === 'base64' ? `data:${mediaType};base64,${data}` : source.url;
  const image = kind === 'file' ? set({ file_id: source.file_id }) : set({ url });
  if (type === 'image') return { type: 'image_url', image_url: image };
  return type === 'document' ? documentOf(part, source) : part;
}

/** Returns the fields that have a value. */
function set(fields: SentFields): SentFields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value != null));
}

function documentOf(
  part: SentFields,
  { type: kind, media_type: mediaType, data, url, file_id }: SentFields,
): SentFields {
  const filename = part.title;
  if (kind === 'file') return { type: 'file', file: set({ file_id, filename }) };
  if (kind === 'url') return { type: 'file', file: set({ file_url: url, filename }) };
  if (typeof data !== 'string' || (kind !== 'base64' && kind !== 'text')) return part;
  const base64 = kind === 'text' ? Buffer.from(data).toString('base64') : data;
  return { type: 'file', file: set({ file_data: `data:${mediaType};base64,${base64}`, filename }) };
}

function toolOf(tool: unknown): unknown {
  if (!isObject(tool) || tool.custom !== undefined) return tool;
  if (isObject(tool.function)) {
    const made = withSchema(tool.function);
    return made === tool.function && tool.type !== undefined ? tool : { type: 'function', ...tool, function: made };
  }
  if (tool.function !== undefined) return tool;
  const { type, name, description, parameters, input_schema: schema, strict, format } = tool;
  if (typeof name !== 'string') return tool;
  const named = { name, ...(description !== undefined && { description }) };
  const more = strict !== undefined && { strict };
  const inputs = schema ?? parameters;
  if (type === 'function' || schema !== undefined || (type === undefined && parameters !== undefined)) {
    const made = { ...named, ...(inputs !== undefined && { parameters: inputs }), ...more };
    return { type: 'function', function: withSchema(made) };
  }
  return type === 'custom' ? { type, custom: { ...named, ...(format !== undefined && { format }) } } : tool;
}

function withSchema(made: SentFields): SentFields {
  const { parameters } = made;
  return Array.isArray(parameters) ? { ...made, parameters: withoutEmptyList(parameters) } : made;
}

/** Returns `tool_choice` in the form of chat completions, and whether calls may be parallel. */
function choiceOf(choice: SentFields): SentFields {
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
