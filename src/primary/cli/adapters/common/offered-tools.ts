import { cliError } from '../../../../shared/errors.js';
import { isObject, jsonOf } from './lines.js';

/** Longest list of names in an error. */
const maxNames = 10;

/**
 * Throws `cli_error` if a trial shows tools that the relay has not allowed: a prompt could make the program use them.
 * A newer version may have tools that no setting of the relay switches off.
 */
export function refuseTools(program: string, version: string | null, offered: readonly string[]): void {
  if (offered.length === 0) return;
  const more = offered.length > maxNames ? ', …' : '';
  const names = offered.slice(0, maxNames).join(', ') + more;
  const which = version === null ? 'this version' : `version ${version}`;
  throw cliError('other', `${which} of ${program} cannot be used safely: it offers the model its own tools: ${names}`);
}

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
