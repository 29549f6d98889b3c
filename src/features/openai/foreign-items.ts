import { stringifyExactly } from '../../shared/text/exact-json.js';
import { isObject } from '../../shared/text/json-schema.js';
import type { SentFields } from '../../worker/jobs/job-request.js';
import { foreignParts } from '../doors/messages.js';

/**
 * Items of the Responses API for tools that this service does not offer, such as `shell_call` and `mcp_call`. A client may
 * send them with its history.
 */

const knownCalls: ReadonlySet<unknown> = new Set(['function_call', 'custom_tool_call']);

function typeOf(item: unknown): string {
  return isObject(item) && typeof item.type === 'string' ? item.type : '';
}

/** Whether the item is a call that is not one of a function. */
function isForeignCall(item: unknown): item is SentFields {
  const type = typeOf(item);
  return type.endsWith('_call') && !knownCalls.has(type);
}

function isOutput(item: unknown): item is SentFields {
  return typeOf(item).endsWith('_output');
}

/** Returns what connects a call and its output. The output of a local shell has no `call_id`. */
function keyOf({ call_id: callId, id }: SentFields): unknown {
  return callId ?? id;
}

/**
 * Replaces each foreign call that has an output by the call of a function and its output, so that the model gets both.
 * A call without an output stays as it is, and so does an output without a call.
 */
export function pairedItems(items: readonly unknown[]): readonly unknown[] {
  if (!items.some(isForeignCall)) return items;
  const called = new Set(items.filter(isForeignCall).map(keyOf).filter(Boolean));
  const answered = new Set(items.filter(isOutput).map(keyOf).filter(Boolean));
  const open = new Set();
  return items.flatMap((item) => {
    if (isOutput(item)) open.delete(keyOf(item));
    else if (knownCalls.has(typeOf(item)) || (isForeignCall(item) && answered.has(keyOf(item))))
      open.add(keyOf(item as SentFields));
    if (isOutput(item)) return called.has(keyOf(item)) ? [outputOf(item)] : [item];
    if (!isForeignCall(item)) return [item];
    if (answered.has(keyOf(item))) return [callOf(item)];
    return open.size > 0 ? [item] : withOwnOutput(item); // its result would stand between a call and the result of that
  });
}

function callOf(item: SentFields): SentFields {
  const { type, id: _, call_id: __, status: ___, ...fields } = item;
  const { output: ____, outputs: _____, results: ______, ...asked } = fields;
  const input = [asked.action, asked.operation].find(isObject) ?? asked;
  return {
    type: 'function_call',
    call_id: keyOf(item),
    name: nameOf(String(type)),
    arguments: stringifyExactly(input),
  };
}

function nameOf(type: string): string {
  return type
    .replace(/_call$/, '')
    .replace(/[^\w-]/g, '_')
    .slice(0, 64);
}

function outputOf(item: SentFields): SentFields {
  return { type: 'function_call_output', call_id: keyOf(item), output: shownOutput(item) };
}

/** Returns an output as text or parts. Without one, its other fields say more, such as found tools or a status. */
function shownOutput({ type: _, id: __, call_id: ___, output, status, ...fields }: SentFields): unknown {
  const moreFields = Object.entries(fields).filter(([, value]) => value != null);
  if (output == null)
    return moreFields.length > 0 ? stringifyExactly(Object.fromEntries(moreFields)) : String(status ?? '');
  if (typeof output === 'string' || (Array.isArray(output) && output.every((part) => typeOf(part) !== '')))
    return output;
  const { image_url, file_id } = isObject(output) ? output : {};
  if (image_url != null || file_id != null) return [{ type: 'input_image', image_url, file_id }];
  return stringifyExactly(output);
}

/** Splits a call whose output is in the same item, because a server of its provider has run it. */
function withOwnOutput(item: SentFields): SentFields[] {
  const [part] = foreignParts(item, 'nothing') ?? [];
  if (part?.type !== 'text' || keyOf(item) == null) return [item];
  return [callOf(item), { type: 'function_call_output', call_id: keyOf(item), output: part.text }];
}
