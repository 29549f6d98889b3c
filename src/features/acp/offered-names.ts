import { isObject, jsonOf } from '../../primary/cli/adapters/common/lines.js';

/** Returns the names of the tools in a request to a model, in the format of any API that agents use. */
export function toolsIn(request: string): readonly string[] {
  const body = jsonOf(request);
  return isObject(body) ? listIn(body.tools).flatMap(namesIn) : [];
}

/** Chat Completions have the name below `function`, Gemini's API in a list, and native tools have only a type. */
function namesIn(tool: unknown): readonly string[] {
  if (!isObject(tool)) return ['unnamed'];
  if (Array.isArray(tool.functionDeclarations)) return tool.functionDeclarations.flatMap(namesIn);
  if (isObject(tool.function)) return namesIn(tool.function);
  const name = tool.name ?? tool.type ?? Object.keys(tool)[0];
  return [typeof name === 'string' ? name : 'unnamed'];
}

function listIn(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
