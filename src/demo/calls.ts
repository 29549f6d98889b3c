import { randomUUID } from 'node:crypto';
import type { DemoCall, DemoResult, DemoTool, UserLine } from './protocol.js';
import { sampleOf } from './sample.js';

/** At the beginning of a line: `call NAME`, and the arguments. */
const order = /^call ([\w-]{1,64})[ \t]*(\{)?/gm;

/** What the text asks for: calls of tools that there are. One that must call a tool calls one in any case. */
export function callsIn({ text, tools = [], must = false }: UserLine): DemoCall[] {
  const wanted = [...text.matchAll(order)].flatMap(({ 0: head, 1: name, 2: brace, index }): DemoCall[] => {
    if (!tools.some((tool) => tool.name === name) || name === undefined) return [];
    const input = brace === undefined ? {} : objectAt(text, index + head.length - 1);
    return [{ id: `call_${randomUUID()}`, name, input }];
  });
  return wanted.length > 0 || must === false ? wanted : [sampleCall(tools, must, text)].flat();
}

function sampleCall(tools: readonly DemoTool[], must: true | string, text: string): DemoCall[] {
  const tool = tools.find(({ name }) => name === must) ?? tools[0];
  if (tool === undefined) return [];
  return [{ id: `call_${randomUUID()}`, name: tool.name, input: sampleOf(tool.schema, text) }];
}

/** The JSON object that begins there: up to the first brace with which it is whole. */
function objectAt(text: string, from: number): unknown {
  for (let end = text.indexOf('}', from); end >= 0; end = text.indexOf('}', end + 1)) {
    try {
      return JSON.parse(text.slice(from, end + 1));
    } catch {} // it goes on
  }
  return {};
}

/** What the model says of these results. `names`: of the tools that were called, by the ids of the calls. */
export function saidOf(results: readonly DemoResult[], names: ReadonlyMap<string, string>): string {
  const said = results.map(({ id, text, is_error: isError }) => {
    return `The ${isError ? 'error' : 'result'} of ${names.get(id) ?? 'the tool'} is: ${text}`;
  });
  return said.join(' ');
}
