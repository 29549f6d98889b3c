type JsonSchema = Readonly<Record<string, unknown>>;

/** Schema converted to draft 2020-12, and the parts that could not be converted. */
export interface ModernSchema {
  readonly schema: JsonSchema;
  /** Phrases for lost parts, such as `enum has no values`; empty if the meaning is unchanged. */
  readonly losses: readonly string[];
}

const typeNames: ReadonlySet<unknown> = new Set(['array', 'boolean', 'integer', 'null', 'number', 'object', 'string']);
/** Keywords whose value is one schema or a list of schemas. */
const schemaKeywords: ReadonlySet<string> = new Set(
  ['additionalProperties', 'propertyNames', 'unevaluatedProperties', 'unevaluatedItems', 'contains', 'contentSchema']
    .concat(['items', 'prefixItems'])
    .concat(['not', 'if', 'then', 'else', 'anyOf', 'oneOf', 'allOf']),
);
/** Keywords whose value is an object with a schema for each name. */
const namedKeywords: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  '$defs',
  'definitions',
  'dependentSchemas',
]);
/** Keywords of older drafts and of OpenAPI that draft 2020-12 replaces by other keywords. */
const olderKeywords: ReadonlySet<string> = new Set(['$schema', 'nullable', 'dependencies', 'additionalItems']);

/**
 * Translates a schema of an older draft, of OpenAPI 3.0 or of Python's validators to draft 2020-12. A part that cannot
 * be translated is omitted, and its text is added to the description at the same place. Throws `RangeError` for a
 * schema with thousands of levels.
 */
export function modernSchema(root: JsonSchema): ModernSchema {
  const losses: string[] = [];
  return { schema: translateObject(root, { root, losses }), losses };
}

interface Translation {
  readonly root: JsonSchema;
  readonly losses: string[];
}

function translate(schema: unknown, to: Translation): unknown {
  if (Array.isArray(schema)) return schema.map((part) => translate(part, to));
  if (typeof schema === 'boolean') return schema;
  if (isObject(schema)) return translateObject(schema, to);
  to.losses.push(`${shortened(JSON.stringify(schema))} is not a schema`);
  return {};
}

function translateObject(schema: JsonSchema, to: Translation): JsonSchema {
  const lost: Record<string, unknown> = {};
  const lose: Lose = (keyword, value, phrase) => {
    lost[keyword] = value;
    to.losses.push(phrase);
    return undefined;
  };
  const result: Record<string, unknown> = {};
  for (const [keyword, value] of Object.entries(schema)) {
    if (isOlder(keyword, value)) continue;
    const translated = translateKeyword(keyword, value, to, lose);
    if (translated !== undefined) setOwn(result, keyword, translated);
  }
  translateBounds(schema, result);
  translateItems(schema, result, to);
  translateDependencies(schema, result, to);
  if (Object.keys(lost).length > 0) result.description = withNote(result.description, lost);
  return schema.nullable === true ? nullable(result) : result;
}

/** Whether the keyword has this meaning only before draft 2020-12. */
function isOlder(keyword: string, value: unknown): boolean {
  if (keyword === 'id') return isString(value);
  if (keyword === 'items') return Array.isArray(value);
  if (keyword === 'exclusiveMinimum' || keyword === 'exclusiveMaximum') return typeof value !== 'number';
  return olderKeywords.has(keyword);
}

type Lose = (keyword: string, value: unknown, phrase: string) => undefined;

/** Translates a keyword. Returns undefined if it must be omitted. */
function translateKeyword(keyword: string, value: unknown, to: Translation, lose: Lose): unknown {
  if (keyword === 'type') return translateType(value, lose);
  if (keyword === 'required') return translateRequired(value, lose);
  if (keyword === 'enum') return translateEnum(value, lose);
  if (keyword === 'pattern') return translatePattern(value, lose);
  if (keyword === '$ref') return translateReference(value, to, lose);
  if (schemaKeywords.has(keyword)) return translate(value, to);
  if (!namedKeywords.has(keyword)) return value;
  const parts = withoutEmptyList(value);
  if (!isObject(parts)) return lose(keyword, value, `${keyword} is not an object`);
  const named: Record<string, unknown> = {};
  for (const [name, part] of Object.entries(parts)) {
    const key = keyword === 'patternProperties' ? translatePattern(name, lose) : name;
    if (key !== undefined) setOwn(named, key, translate(part, to));
  }
  return named;
}

/** Translates a type. `any` of draft 03 allows each value, like a schema without a type. */
function translateType(value: unknown, lose: Lose): unknown {
  const types = [value].flat();
  const known = [...new Set(types.filter((type) => typeNames.has(type)))];
  const isKnown = types.every((type) => typeNames.has(type) || type === 'any');
  if (!isKnown) lose('type', value, `type ${shortened(JSON.stringify(value))} is unknown`);
  if (known.length === 0 || types.includes('any')) return undefined;
  return Array.isArray(value) ? known : value;
}

/** Translates `required`, which is a boolean of the property in draft 03. */
function translateRequired(value: unknown, lose: Lose): unknown {
  if (typeof value === 'boolean') return undefined;
  if (Array.isArray(value) && value.every(isString)) return [...new Set(value)];
  return lose('required', value, 'required is not a list of names');
}

function translateEnum(value: unknown, lose: Lose): unknown {
  return Array.isArray(value) && value.length > 0 ? value : lose('enum', value, 'enum has no values');
}

/** Translates a pattern. It also accepts patterns that are valid only without the flag `u`, or in Python. */
function translatePattern(value: unknown, lose: Lose): string | undefined {
  if (!isString(value)) return undefined;
  const pattern = [...new Set([value, fromPython(value)])].find(isPattern);
  if (pattern === undefined) lose('pattern', value, `pattern ${quoted(value)} is not a regular expression`);
  return pattern;
}

function fromPython(pattern: string): string {
  return pattern
    .replaceAll('(?P<', '(?<')
    .replaceAll(/\(\?P=(\w+)\)/g, String.raw`\k<$1>`)
    .replaceAll(String.raw`\A`, '^')
    .replaceAll(/\\[zZ]/g, '$');
}

function isPattern(pattern: string): boolean {
  return compiles(pattern, 'u') || compiles(pattern, '');
}

function compiles(pattern: string, flags: string): boolean {
  try {
    new RegExp(pattern, flags);
    return true;
  } catch {
    return false;
  }
}

/**
 * Translates a reference. A reference into the schema must point to an existing part, and a reference to another
 * document is lost.
 */
function translateReference(value: unknown, { root }: Translation, lose: Lose): string | undefined {
  if (isString(value) && (/^#(?!\/)/.test(value) || pointsTo(value, root))) return value;
  if (isString(value) && !value.startsWith('#') && !value.includes(':')) return value; // may be the $id of a part
  return lose('$ref', value, `$ref ${quoted(String(value))} points to nothing in the schema`);
}

function pointsTo(reference: string, root: JsonSchema): boolean {
  if (!reference.startsWith('#/')) return false;
  let part: unknown = root;
  for (const step of reference.slice(2).split('/')) {
    const name = decoded(step).replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof part !== 'object' || part === null || !Object.hasOwn(part, name)) return false;
    part = (part as JsonSchema)[name];
  }
  return true;
}

function decoded(step: string): string {
  try {
    return decodeURIComponent(step);
  } catch {
    return step;
  }
}

/** Translates bounds: in draft 04, `exclusiveMinimum` is a boolean next to `minimum`. */
function translateBounds(schema: JsonSchema, result: Record<string, unknown>): void {
  for (const [exclusive, inclusive] of [
    ['exclusiveMinimum', 'minimum'],
    ['exclusiveMaximum', 'maximum'],
  ] as const) {
    if (schema[exclusive] !== true || typeof schema[inclusive] !== 'number') continue;
    result[exclusive] = schema[inclusive];
    delete result[inclusive];
  }
}

/** Translates items: before draft 2020-12, a list of schemas in `items` described a tuple. */
function translateItems(schema: JsonSchema, result: Record<string, unknown>, to: Translation): void {
  const { items, additionalItems } = schema;
  if (!Array.isArray(items)) return;
  if (items.length > 0) result.prefixItems = translate(items, to);
  if (additionalItems !== undefined) result.items = translate(additionalItems, to);
}

function translateDependencies({ dependencies }: JsonSchema, result: Record<string, unknown>, to: Translation): void {
  if (!isObject(dependencies)) return;
  const required: Record<string, unknown> = {};
  const schemas: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(dependencies)) {
    if (Array.isArray(value)) setOwn(required, name, value.filter(isString));
    else setOwn(schemas, name, translate(value, to));
  }
  for (const [keyword, added] of Object.entries({ dependentRequired: required, dependentSchemas: schemas })) {
    const before = result[keyword];
    if (Object.keys(added).length > 0) result[keyword] = { ...(isObject(before) ? before : {}), ...added };
  }
}

/** Returns the equivalent of OpenAPI's `nullable: true`. */
function nullable(schema: JsonSchema): JsonSchema {
  const { type, enum: values } = schema;
  if (type === undefined) {
    const { description, ...rest } = schema;
    return { ...(description !== undefined && { description }), anyOf: [rest, { type: 'null' }] };
  }
  const types = [...new Set([type, 'null'].flat())];
  const isMissing = Array.isArray(values) && !values.includes(null);
  return { ...schema, type: types, ...(isMissing && { enum: [...values, null] }) };
}

function withNote(description: unknown, lost: JsonSchema): string {
  const note = `JSON Schema: ${JSON.stringify(lost)}`;
  return isString(description) && description !== '' ? `${description}\n${note}` : note;
}

/** Returns the schema for another place in a document: references to its root then point to that place. */
export function movedTo(place: string, schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map((part) => movedTo(place, part));
  if (!isObject(schema)) return schema;
  const moved: Record<string, unknown> = {};
  for (const [key, part] of Object.entries(schema)) {
    const isReference = key === '$ref' && isString(part);
    setOwn(moved, key, isReference ? part.replace(/^#(?=\/|$)/, place) : movedTo(place, part));
  }
  return moved;
}

const wrapperName = 'input';

/** Property names that the APIs of models accept at the top level of a schema. */
const plainName = /^[a-zA-Z0-9_.-]{1,64}$/;

/** Whether the APIs of models reject the top level of the schema. */
export function needsWrapper(schema: JsonSchema): boolean {
  const { type, properties } = schema;
  if (type !== 'object' || ['anyOf', 'oneOf', 'allOf', '$ref', 'enum', 'const', 'not'].some((word) => word in schema))
    return true;
  return isObject(properties) && !Object.keys(properties).every((name) => plainName.test(name));
}

/**
 * Returns the schema of an object with one property, whose value fits the given schema. `unwrappedText` reads such an
 * object.
 */
export function wrappedSchema(schema: JsonSchema): JsonSchema {
  const properties = { [wrapperName]: movedTo(`#/properties/${wrapperName}`, schema) };
  return { type: 'object', properties, required: [wrapperName], additionalProperties: false };
}

/** Wraps the JSON of a value for a schema of `wrappedSchema`. */
export function wrappedText(json: string): string {
  return `{${JSON.stringify(wrapperName)}:${json}}`;
}

/**
 * Returns the JSON of the value in an object of `wrappedText`, with all digits unchanged. Other texts are returned
 * unchanged, because some models omit the wrapper.
 */
export function unwrappedText(json: string): string {
  const inner = /^\s*\{\s*"input"\s*:([\s\S]*)\}\s*$/.exec(json)?.[1]?.trim();
  if (inner !== undefined && isJson(inner)) return inner;
  return json;
}

/** Returns the first piece of the JSON of the value in an object of `wrappedText`. */
export function unwrappedPiece(piece: string): string {
  return piece.replace(/^\s*\{\s*"input"\s*:\s*/, '');
}

/** Whether a text is JSON. */
export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Defines a property with any name, including `__proto__`. */
function setOwn(object: Record<string, unknown>, name: string, value: unknown): void {
  Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
}

/** Replaces an empty list, which PHP and R write for an empty object, by an empty object. */
export function withoutEmptyList(value: unknown): unknown {
  return Array.isArray(value) && value.length === 0 ? {} : value;
}

/** Whether a parsed JSON value is an object and not a list. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isString(value: unknown): value is string {
  return typeof value === 'string';
}

function quoted(text: string): string {
  return JSON.stringify(shortened(text));
}

function shortened(text: string): string {
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}
