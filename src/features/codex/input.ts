import { HeldCalls } from '../../primary/cli/adapters/common/held-calls.js';
import { isObject } from '../../primary/cli/adapters/common/lines.js';
import { type MessageContent, piecesOf } from '../../primary/cli/adapters/common/transcript.js';
import type { Image, Message, Tool, ToolCall, ToolResult } from '../../primary/cli/contract/adapter.js';
import { type RpcId, rpcResult } from '../protocols/json-rpc.js';

/** Returns the input of a turn for the protocol. */
export function inputOf(message: MessageContent): readonly unknown[] {
  return parts(message, (text) => ({ type: 'text', text, text_elements: [] }), imageInput);
}

export function imageInput(image: Image) {
  return { type: 'image', url: dataUrl(image) } as const;
}

/** Returns a message of the history as items of the Responses API, where calls and results are separate items. */
export function itemsOf(message: Message): readonly unknown[] {
  const { role, calls = [], results = [] } = message;
  const content = contentParts(message, role === 'assistant' ? 'output_text' : 'input_text');
  const isSilent = content.length === 0 && calls.length + results.length > 0;
  const items = isSilent ? [] : [{ type: 'message', role, content }];
  return [...results.map(resultItem), ...items, ...calls.map(callItem)];
}

/**
 * Lower-case names that the program reserves: it refuses such a tool, or hides it from the model. The relay capitalises
 * them.
 */
const reserved = /^(?:mcp(?:__|$)|(?:exec|shell)_command$)/;

export function nameForCodex(name: string): string {
  return reserved.test(name) ? name.charAt(0).toUpperCase() + name.slice(1) : name;
}

export function nameForClient(name: string): string {
  const builtInName = name.charAt(0).toLowerCase() + name.slice(1);
  return reserved.test(builtInName) ? builtInName : name;
}

function callItem({ id, name, input }: ToolCall): unknown {
  return { type: 'function_call', call_id: id, name: nameForCodex(name), arguments: input };
}

export function resultItem(result: ToolResult): unknown {
  const hasImages = (result.images ?? []).length > 0;
  const output = hasImages ? contentParts(result, 'input_text') : result.text;
  return { type: 'function_call_output', call_id: result.id, output };
}

/** Returns the result of an open call for the protocol. */
function resultContent(result: ToolResult): readonly unknown[] {
  return parts(
    result,
    (text) => ({ type: 'inputText', text }),
    (image) => ({ type: 'inputImage', imageUrl: dataUrl(image) }),
  );
}

function contentParts(message: MessageContent, type: string): readonly unknown[] {
  return parts(
    message,
    (text) => ({ type, text }),
    (image) => ({ type: 'input_image', image_url: dataUrl(image) }),
  );
}

/** Converts a message to parts, without empty texts, which the API rejects. */
function parts(
  message: MessageContent,
  textPart: (text: string) => unknown,
  imagePart: (image: Image) => unknown,
): readonly unknown[] {
  const pieces = piecesOf(message).filter((piece) => piece !== '');
  return pieces.map((piece) => (typeof piece === 'string' ? textPart(piece) : imagePart(piece)));
}

function dataUrl({ mediaType, data }: Image): string {
  return `data:${mediaType};base64,${data}`;
}

/** Owns the client's tools in one codex thread. The program requests the result of each call from the relay. */
export class DynamicTools {
  #tools: readonly Tool[] = [];
  readonly calls = new HeldCalls<RpcId | null>((id, result) =>
    rpcResult(id, { contentItems: resultContent(result), success: !result.isError }),
  );

  offers(name: string): boolean {
    return this.#tools.some((tool) => tool.name === name);
  }

  /** Returns the tools for the start of the thread, which keeps them until its end. */
  introduce(tools: readonly Tool[]): readonly object[] {
    this.#tools = tools;
    return tools.map(toolForCodex);
  }

  /** Returns the client's name of a tool. */
  nameOf(name: string): string {
    return this.offers(name) ? name : nameForClient(name);
  }
}

/**
 * Converts a tool. The program passes on only a part of JSON Schema, and drops the descriptions of a long schema. In
 * these cases the description of the tool contains the whole schema; the program never cuts it (20,000 characters
 * tested).
 */
function toolForCodex({ name, description, schema }: Tool): object {
  const inputSchema: unknown = JSON.parse(schema);
  const isPassedOn = schema.length <= maxSchemaLength && isKnown(inputSchema);
  const fullDescription = isPassedOn ? description : `${description}\n\nJSON Schema of the arguments: ${schema}`.trim();
  return { type: 'function', name: nameForCodex(name), description: fullDescription, inputSchema };
}

const maxSchemaLength = 2000;

const passedOn = ['type', 'description', 'enum', 'items', 'properties', 'required', 'additionalProperties', '$ref'];
const known: ReadonlySet<string> = new Set([...passedOn, 'anyOf', 'oneOf', 'allOf', '$defs', 'definitions', '$schema']);

function isKnown(schema: unknown): boolean {
  if (!isObject(schema)) return typeof schema !== 'boolean' || !schema;
  const { properties, items, additionalProperties, $defs, definitions, anyOf = [], oneOf = [], allOf = [] } = schema;
  const named = [properties, $defs, definitions].flatMap((each) => (isObject(each) ? Object.values(each) : []));
  const listed = [anyOf, oneOf, allOf, items ?? []].flat();
  const open = isObject(additionalProperties) ? [additionalProperties] : [];
  return Object.keys(schema).every((keyword) => known.has(keyword)) && [...named, ...listed, ...open].every(isKnown);
}
