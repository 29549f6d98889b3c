type SchemaObject = Readonly<Record<string, unknown>>;

const notes = ['title', 'description', 'default', 'deprecated', 'readOnly', 'writeOnly', 'examples', '$comment'];
const names = ['$id', '$ref', 'format', 'contentMediaType', 'contentEncoding', 'nullable'];
const limits = ['multipleOf', 'maximum', 'exclusiveMaximum', 'minimum', 'exclusiveMinimum', 'maxLength', 'minLength'];
const counts = ['pattern', 'maxItems', 'minItems', 'uniqueItems', 'maxProperties', 'minProperties'];
const plainKeywords = new Set([...notes, ...names, ...limits, ...counts, 'type', 'enum', 'const', 'required']);
const deepKeywords = new Set(
  ['items', 'additionalItems', 'contains', 'propertyNames', 'additionalProperties'].concat(
    ['not', 'if', 'then', 'else', 'anyOf', 'oneOf', 'allOf'], // hold a schema or a list of schemas
  ),
);
const namedKeywords = new Set(['properties', 'patternProperties', '$defs', 'definitions']);

/**
 * A schema as claude takes it: without a word it drops one that names a newer draft than 07 or holds a keyword which that
 * draft does not know, and then it answers as if there were none. Such keywords are told in the description instead; the
 * answer is checked against the whole schema in any case.
 */
export function knownToClaude(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(knownToClaude);
  if (!isObject(schema)) return schema;
  const { $schema: _draft, ...rest } = schema;
  const isTuple = 'prefixItems' in schema; // then `items` means only what comes after those
  const isTaken = ([keyword]: [string, unknown]) => isKnown(keyword) && !(isTuple && keyword === 'items');
  const entries = Object.entries(rest);
  const unknown = Object.fromEntries(entries.filter((entry) => !isTaken(entry)));
  const known = Object.fromEntries(entries.filter(isTaken).map(deeper));
  if (Object.keys(unknown).length === 0) return known;
  return { ...known, description: described(schema.description, unknown) };
}

function isKnown(keyword: string): boolean {
  return plainKeywords.has(keyword) || deepKeywords.has(keyword) || namedKeywords.has(keyword);
}

function deeper([keyword, value]: [string, unknown]): [string, unknown] {
  if (deepKeywords.has(keyword)) return [keyword, knownToClaude(value)];
  if (!namedKeywords.has(keyword) || !isObject(value)) return [keyword, value];
  return [keyword, Object.fromEntries(Object.entries(value).map(([name, part]) => [name, knownToClaude(part)]))];
}

function described(description: unknown, unknown: SchemaObject): string {
  const words = `Of its JSON Schema: ${JSON.stringify(unknown)}`;
  return typeof description === 'string' ? `${description}\n${words}` : words;
}

function isObject(value: unknown): value is SchemaObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
