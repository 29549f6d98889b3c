type Schema = Readonly<Record<string, unknown>>;

/**
 * Depths that bound samples of recursive schemas. From the first on, only required parts are included; beyond the
 * second, every part is null.
 */
const shallowDepth = 5;
const maxDepth = 30;

/**
 * Returns a simple value for a JSON Schema. Only a few keywords are supported. Every free text in the value is `text`.
 */
export function sampleOf(schema: unknown, text: string, root: unknown = schema, depth = 0): unknown {
  if (!isSchema(schema) || depth > maxDepth) return null;
  const { const: constant, enum: choices } = schema;
  if (constant !== undefined) return constant;
  if (Array.isArray(choices)) return choices[0];
  const deeper = (part: unknown) => sampleOf(part, text, root, depth + 1);
  const isDeep = depth >= shallowDepth;
  const inner = resolved(schema, root) ?? oneOf(schema.anyOf ?? schema.oneOf, isDeep);
  if (inner !== undefined) return deeper(inner);
  if (Array.isArray(schema.allOf)) return Object.assign({}, ...schema.allOf.map(deeper));
  return plainSample(schema, text, isDeep, deeper);
}

function plainSample(schema: Schema, text: string, isDeep: boolean, deeper: (part: unknown) => unknown): unknown {
  switch (typeOf(schema)) {
    case 'object':
      return Object.fromEntries(propertiesOf(schema, isDeep).map(([name, part]) => [name, deeper(part)]));
    case 'array':
      return Array.from({ length: Math.min(Number(schema.minItems ?? (isDeep ? 0 : 1)), 100) }, () =>
        deeper(schema.items ?? {}),
      );
    case 'string':
      return text.padEnd(Number(schema.minLength ?? 0), '.').slice(0, Number(schema.maxLength ?? text.length + 1e6));
    case 'number':
    case 'integer':
      return numberOf(schema);
    case 'boolean':
      return true;
    default:
      return null;
  }
}

/** Returns 0, or the nearest number within the limits. */
function numberOf({ minimum, maximum, exclusiveMinimum, exclusiveMaximum }: Schema): number {
  const lowest = typeof exclusiveMinimum === 'number' ? Math.floor(exclusiveMinimum) + 1 : Number(minimum ?? -Infinity);
  const highest = typeof exclusiveMaximum === 'number' ? Math.ceil(exclusiveMaximum) - 1 : Number(maximum ?? Infinity);
  return Math.max(Math.ceil(lowest), Math.min(0, Math.floor(highest)));
}

function typeOf({ type, properties }: Schema): unknown {
  if (type === undefined) return properties === undefined ? 'string' : 'object';
  return Array.isArray(type) ? type[0] : type;
}

function propertiesOf({ properties, required }: Schema, onlyRequired: boolean): [name: string, part: unknown][] {
  const needed = Array.isArray(required) ? required : [];
  const all = Object.entries(isSchema(properties) ? properties : {});
  return onlyRequired ? all.filter(([name]) => needed.includes(name)) : all;
}

/** Resolves a reference within the same document; undefined if `$ref` is missing. */
function resolved({ $ref: reference }: Schema, root: unknown): unknown {
  if (typeof reference !== 'string' || !reference.startsWith('#')) return undefined;
  const names = reference.slice(1).split('/').filter(Boolean);
  return names.reduce<unknown>((part, name) => (isSchema(part) ? part[unescaped(name)] : undefined), root);
}

function unescaped(name: string): string {
  return decodeURIComponent(name).replaceAll('~1', '/').replaceAll('~0', '~');
}

/**
 * Chooses a branch of `anyOf` or `oneOf`. In a deeply nested schema this is the last one, which often ends a recursion,
 * such as null.
 */
function oneOf(choices: unknown, isDeep: boolean): unknown {
  return Array.isArray(choices) ? choices.at(isDeep ? -1 : 0) : undefined;
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
