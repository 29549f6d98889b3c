type SchemaPart = Readonly<Record<string, unknown>>;

const notes = ['title', 'description', '$ref', 'type', 'enum', 'const', 'format', 'pattern', '$schema'];
const limits = ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf', 'minItems', 'maxItems'];
const structure = ['properties', 'required', 'additionalProperties', 'items', 'anyOf', '$defs', 'definitions'];
const known: ReadonlySet<string> = new Set([...notes, ...limits, ...structure]);

/**
 * The program holds its model to a schema in the strict way of the API, which refuses every schema that leaves something
 * open: each object must name all of its properties as required and allow no others. Undefined for any other schema: that
 * is told in the prompt. `schema` is JSON.
 */
export function strictSchema(schema: string): unknown {
  const value: unknown = JSON.parse(schema);
  return isObject(value) && value.type === 'object' && value.anyOf === undefined && isStrict(value) ? value : undefined;
}

function isStrict(schema: unknown): boolean {
  if (!isObject(schema) || Object.keys(schema).some((keyword) => !known.has(keyword))) return false;
  const { properties, items, anyOf = [], $defs = {}, definitions = {} } = schema;
  const isOpen = schema.type === 'object' && !isClosed(schema);
  if (isOpen || !isObject($defs) || !isObject(definitions) || !Array.isArray(anyOf)) return false;
  const named = [properties ?? {}, $defs, definitions].flatMap((each) =>
    isObject(each) ? Object.values(each) : [null],
  );
  return [...named, ...anyOf, ...(items === undefined ? [] : [items])].every(isStrict);
}

function isClosed({ properties, required, additionalProperties }: SchemaPart): boolean {
  if (!isObject(properties) || !Array.isArray(required) || additionalProperties !== false) return false;
  return Object.keys(properties).every((name) => required.includes(name));
}

function isObject(value: unknown): value is SchemaPart {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
