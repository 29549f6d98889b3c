import { z } from 'zod';
import { checkPatterns } from '../../shared/api/ask.js';
import { invalid } from '../../shared/errors.js';
import type { Sampling, Tool, ToolForms, ToolOffer, WebSearch } from '../../shared/job.js';
import { parseExactly } from '../../shared/text/exact-json.js';
import { isObject, needsWrapper, wrappedSchema } from '../../shared/text/json-schema.js';
import { isLargeJson } from '../../shared/text/json-size.js';
import { mustBeSent } from '../../worker/http/body.js';
import { checkedSchema } from '../../worker/jobs/job-request.js';
import { listed, typeForHeader } from './messages.js';

/** Tool as the client sent it. */
export interface SentTool {
  /** Field of the tool in the request. */
  readonly path: string;
  /** `custom`: the input is a text. `provider`: only the provider's servers could run it. */
  readonly kind: 'function' | 'custom' | 'provider';
  /** Name of this kind in the API. */
  readonly type: string;
  readonly name: string | null | undefined;
  readonly description?: string | null | undefined;
  readonly schema?: Readonly<Record<string, unknown>> | null | undefined;
  readonly namespace?: string | undefined;
  readonly strict?: boolean | null | undefined;
  /** The declared web search, for the kind `provider`. */
  readonly search?: WebSearch | undefined;
}

export interface ToolWish {
  readonly choice: ToolOffer['choice'];
  /** Request field of the choice. */
  readonly path: string;
  readonly isParallel: boolean;
  /** Names of the only tools that may be called; left out if all may. */
  readonly allowed?: readonly string[] | undefined;
}

/** Tools of a request, checked and translated. */
export interface ParsedTools {
  /** Tools that the client runs; undefined if the request offers none. */
  readonly offer: ToolOffer | undefined;
  readonly forms: ToolForms;
  /** Types of the tools that are ignored, because only the provider's servers could run them. */
  readonly dropped: readonly string[];
  /** Web search that the request declares. A request with tools of the client gets none. */
  readonly search?: WebSearch | undefined;
}

const maxTools = 128;
const maxToolBytes = 256 * 1024;
const toolName = /^[a-zA-Z0-9_-]{1,128}$/;
/** Limit of a name with its namespace as a prefix. */
const longestName = 256;
const textInput = { type: 'object', properties: { input: { type: 'string' } }, required: ['input'] };

/** Checks and translates the tools of a request. Throws `validation_error` that names the field. */
export function parsedTools(sent: readonly SentTool[], { choice, path, isParallel, allowed }: ToolWish): ParsedTools {
  const clientTools = sent.filter(({ kind }) => kind !== 'provider');
  const search = clientTools.length === 0 && choice !== 'none' ? sent.find((tool) => tool.search)?.search : undefined;
  const droppedTools = sent.filter((tool) => tool.kind === 'provider' && (search === undefined || !tool.search));
  const dropped = [...new Set(droppedTools.map(({ type }) => typeForHeader(type)))];
  if (search !== undefined) return { offer: undefined, forms: {}, dropped, search };
  if (clientTools.length === 0) {
    if (dropped.length > 0 && choice !== 'none')
      throw invalid(
        'tools',
        `must have a tool of the client: ${listed(dropped)} can only run on the provider's servers`,
      );
    if (choice !== 'auto' && choice !== 'none') throw invalid(path, 'needs tools');
    return { offer: undefined, forms: {}, dropped };
  }
  checkSize(clientTools);
  const tools = clientTools.map(checkedTool);
  checkNames(tools, clientTools);
  if (typeof choice !== 'string' && !tools.some(({ name }) => name === choice.name))
    throw invalid(path, 'must name one of the tools');
  const offer = { tools, choice, isParallel };
  return {
    offer: allowed === undefined ? offer : narrowed(offer, allowed, path),
    forms: formsOf(clientTools),
    dropped,
  };
}

/**
 * Reduces the offer to the allowed tools. `allowed` does not name provider-hosted tools, so it may be empty: the choice
 * is then `none`.
 */
function narrowed(offer: ToolOffer, allowed: readonly string[], path: string): ToolOffer {
  const names = new Set(allowed);
  const tools = offer.tools.filter(({ name }) => names.has(name));
  if (tools.length < names.size) throw invalid(path, 'must allow only tools of this request');
  if (tools.length > 0) return { ...offer, tools };
  if (offer.choice === 'required') throw invalid(path, 'must allow a tool of the client');
  return { ...offer, choice: 'none' };
}

function checkedTool(sent: SentTool): Tool {
  const name = nameOf(sent);
  if (sent.name == null) throw invalid(`${sent.path}.name`, mustBeSent);
  const isNamed = toolName.test(sent.name) && toolName.test(sent.namespace ?? '_') && name.length <= longestName;
  if (!isNamed) throw invalid(`${sent.path}.name`, 'must be 1 to 128 letters, digits, _ and -');
  const isStrict = sent.strict === true;
  const schema = sent.kind === 'custom' ? textInput : inputSchema(sent, isStrict);
  const wrapped = needsWrapper(schema) && { wrappedSchema: JSON.stringify(wrappedSchema(schema)) };
  const description = sent.description ?? '';
  return { name, description, schema: JSON.stringify(schema), ...(isStrict && { isStrict }), ...wrapped };
}

/**
 * Returns the input schema of a tool. Throws `validation_error` if the input is not an object, or if the schema of a
 * strict tool cannot be checked.
 */
function inputSchema({ path, schema }: SentTool, isStrict: boolean): Readonly<Record<string, unknown>> {
  const type = schema?.type ?? 'object';
  if (type !== 'object' && !(Array.isArray(type) && type.includes('object')))
    throw invalid(path, 'must have the schema of an object');
  const modern = checkedSchema({ type: 'object', ...schema }, path);
  const [loss] = modern.losses;
  if (isStrict && loss !== undefined) throw invalid(path, `must have a schema that can be checked: ${loss}`);
  return { ...modern.schema, type: 'object' };
}

/**
 * Throws `validation_error` for too many or too large tools. Must precede the translation of the schemas, which is slow
 * for large ones.
 */
function checkSize(sent: readonly SentTool[]): void {
  if (sent.length > maxTools) throw invalid('tools', `must be at most ${maxTools} tools`);
  const texts = sent.map(({ name, description, schema }) => [name, description, schema]);
  const json = isLargeJson(texts, maxToolBytes) ? null : JSON.stringify(texts);
  if (json === null || Buffer.byteLength(json) > maxToolBytes)
    throw invalid('tools', `must be at most ${maxToolBytes} bytes in total`);
  checkPatterns(json, 'tools');
}

function checkNames(tools: readonly Tool[], sent: readonly SentTool[]): void {
  const names = new Set<string>();
  const twice = tools.findIndex(({ name }) => names.size === names.add(name).size);
  if (twice >= 0) throw invalid(`${sent[twice]?.path}.name`, 'must not be the name of another tool');
}

/** Returns the one name by which the model knows a tool, with its namespace as a prefix. */
export function nameOf({ name, namespace }: Pick<SentTool, 'name' | 'namespace'>): string {
  return namespace === undefined ? (name ?? '') : `${namespace}__${name}`;
}

function formsOf(tools: readonly SentTool[]): ToolForms {
  const special = tools.filter(({ kind, namespace }) => kind === 'custom' || namespace !== undefined);
  return Object.fromEntries(
    special.map((tool) => {
      const { kind, name, namespace } = tool;
      return [nameOf(tool), { isCustom: kind === 'custom', name: name ?? '', ...(namespace && { namespace }) }];
    }),
  );
}

/** Removes the format of a custom tool if it is plain text. A grammar has no effect: no model CLI accepts one. */
export function withoutTextFormat({
  format,
  ...tool
}: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const isText = isObject(format) && format.type === 'text';
  return isText ? tool : { ...tool, format };
}

/**
 * Returns the input of an earlier call unchanged if it is the JSON of an object, else `{}`: a client may send any text,
 * and later code does not check it.
 */
export function callInput(json: string): string {
  const value = parsed(json, JSON.parse);
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? json : '{}';
}

/** Parses the input of a call for `stringifyExactly`. Returns {} if the model did not write an object. */
export function inputObject(input: string): object {
  const value = parsed(input, parseExactly);
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};
}

/** Returns the JSON input that the model writes for a custom tool with this text. */
export function wrappedText(text: string): string {
  return JSON.stringify({ input: text });
}

function parsed(json: string, parse: (json: string) => unknown): unknown {
  try {
    return parse(json);
  } catch {
    return null;
  }
}

export const temperature = z.number('must be a number').min(0, 'must be 0 to 2').max(2, 'must be 0 to 2');
export const topP = z.number('must be a number').min(0, 'must be 0 to 1').max(1, 'must be 0 to 1');
/** Limit of output tokens. A number below 1 means that there is no limit, as for several local servers. */
export const tokenLimit = z.int('must be a whole number').min(-1, 'must be at least 1, or -1 for no limit');

/** Returns undefined if the request sets nothing. */
export function samplingOf(
  settings: { readonly [wish in keyof Sampling]?: number | null | undefined },
): Sampling | undefined {
  const sent = Object.entries(settings).filter(
    ([wish, value]) => value != null && (wish !== 'maxTokens' || value >= 1),
  );
  return sent.length === 0 ? undefined : (Object.fromEntries(sent) as Sampling);
}
