import { randomUUID } from 'node:crypto';
import type { DemoCall, DemoResult, DemoTool, UserLine } from './protocol.js';
import { sampleOf } from './sample.js';

/** At the beginning of a line: `call NAME`, and the arguments. */
const order = /^call ([\w-]{1,64})[ \t]*(\{)?/gm;

/** At the beginning of a line: `think`, and what the model is to think. */
const thoughts = /^think (.+)$/gm;

/** What the text has the model think before it answers. */
export function thoughtsIn({ text }: Pick<UserLine, 'text'>): string[] {
  return [...text.matchAll(thoughts)].flatMap(([, thought]) => thought ?? []);
}

/** What the text asks for: calls of tools that there are. One that must call a tool calls one in any case. */
export function callsIn({ text, tools: all = [], must = false }: UserLine): DemoCall[] {
  const tools = typeof must === 'string' ? all.filter(({ name }) => name === must) : all;
  const orders = [...text.matchAll(order)];
  const wanted = orders.flatMap(({ 0: head, 1: name, 2: brace, index }, at): DemoCall[] => {
    if (!tools.some((tool) => tool.name === name) || name === undefined) return [];
    const rest = text.slice(index + head.length - 1, orders[at + 1]?.index); // no JSON holds the line of another order
    return [{ id: `call_${randomUUID()}`, name, input: brace === undefined ? {} : objectIn(rest) }];
  });
  return wanted.length > 0 || must === false ? wanted : sampleCalls(tools, text);
}

function sampleCalls([tool]: readonly DemoTool[], text: string): DemoCall[] {
  if (tool === undefined) return [];
  return [{ id: `call_${randomUUID()}`, name: tool.name, input: sampleOf(tool.schema, text) }];
}

/** The JSON object that the text begins with; an empty one where there is none. Reads the text once, however long it is. */
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

/** What the model says of these results. `names`: of the tools that were called, by the ids of the calls. */
export function saidOf(results: readonly DemoResult[], names: ReadonlyMap<string, string>): string {
  const said = results.map(({ id, text, is_error: isError }) => {
    return `The ${isError ? 'error' : 'result'} of ${names.get(id) ?? 'the tool'} is: ${text}`;
  });
  return said.join(' ');
}
