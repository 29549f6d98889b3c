const maxSchemaBytes = 64 * 1024;

/** What a pasted JSON Schema is: nothing where the field is empty, a value to send, or what is wrong with it. */
export type PastedSchema =
  | { readonly kind: 'none' }
  | { readonly kind: 'schema'; readonly value: object }
  | { readonly kind: 'fault'; readonly message: string };

export function readSchema(text: string): PastedSchema {
  if (text.trim() === '') return { kind: 'none' };
  if (new TextEncoder().encode(text).length > maxSchemaBytes) return faultOf('At most 64 KB.');
  const value = parsed(text);
  if (value instanceof Error) return faultOf(`This is not JSON: ${value.message}`);
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return faultOf('A JSON Schema is an object.');
  const { type, properties, $ref: reference } = value as Readonly<Record<string, unknown>>;
  const isOfObjects = type === 'object' || (type === undefined && (properties ?? reference) !== undefined);
  return isOfObjects ? { kind: 'schema', value } : faultOf('It needs an object at its root: "type": "object".');
}

function faultOf(message: string): PastedSchema {
  return { kind: 'fault', message };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    return error;
  }
}
