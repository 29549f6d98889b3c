import { randomUUID } from 'node:crypto';
import type { DemoCall, DemoResult, DemoTool, UserLine } from './protocol.js';
import { sampleOf } from './sample.js';

/** Instruction to call a tool: a line that begins with `call NAME`, and optional arguments as a JSON object. */
const order = /^call ([\w-]{1,64})[ \t]*(\{)?/gm;

/** Instruction to think: a line that begins with `think`, and the text of the thought. */
const thoughts = /^think (.+)$/gm;

/** Returns the thoughts that the prompt requests. */
export function thoughtsIn({ text }: Pick<UserLine, 'text'>): string[] {
  return [...text.matchAll(thoughts)].flatMap(([, thought]) => thought ?? []);
}

/**
 * Returns the tool calls that the prompt requests, without unknown tools. If a call is required (`must`) and none is
 * requested, returns a call with sample arguments.
 */
export function callsIn({ text, tools: all = [], must = false }: UserLine): DemoCall[] {
  const tools = typeof must === 'string' ? all.filter(({ name }) => name === must) : all;
  const orders = [...text.matchAll(order)];
  const wanted = orders.flatMap(({ 0: head, 1: name, 2: brace, index }, at): DemoCall[] => {
    if (!tools.some((tool) => tool.name === name) || name === undefined) return [];
    // The arguments of a call end before the next instruction.
    const argumentText = text.slice(index + head.length - 1, orders[at + 1]?.index);
    return [{ id: `call_${randomUUID()}`, name, input: brace === undefined ? {} : objectIn(argumentText) }];
  });
  return wanted.length > 0 || must === false ? wanted : sampleCalls(tools, text);
}

function sampleCalls([tool]: readonly DemoTool[], text: string): DemoCall[] {
  if (tool === undefined) return [];
  return [{ id: `call_${randomUUID()}`, name: tool.name, input: sampleOf(tool.schema, text) }];
}

/**
 * Parses the JSON object at the beginning of a text; an empty object if it is missing. Takes linear time.
 */
function objectIn(text: string): unknown {
  let depth = 0;
  let isQuoted = false;
  for (let at = 0; at < text.length; at++) {
    const unit = text[at];
    if (isQuoted && unit === '\\') at++;
    else if (unit === '"') isQuoted = !isQuoted;
    else if (!isQuoted && unit === '{') depth++;
    else if (!isQuoted && unit === '}' && --depth === 0) return parsed(text.slice(0, at + 1));
  }
  return {};
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return {};
  }
}

/** Formats the results of tools as text. `names` maps the IDs of calls to the names of tools. */
export function saidOf(results: readonly DemoResult[], names: ReadonlyMap<string, string>): string {
  const sentences = results.map(({ id, text, is_error: isError }) => {
    return `The ${isError ? 'error' : 'result'} of ${names.get(id) ?? 'the tool'} is: ${text}`;
  });
  return sentences.join(' ');
}
