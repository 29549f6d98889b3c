import Ajv, { MissingRefError, type Options, type ValidateFunction } from 'ajv';
import Ajv2019 from 'ajv/dist/2019.js';
import Ajv2020 from 'ajv/dist/2020.js';
import { JsonStructure } from '../../shared/text/json-structure.js';

/** A schema, as JSON; with `text` null only the schema is looked at. */
export interface SchemaTask {
  readonly schema: string;
  readonly text: string | null;
}

/** What was found: the value as JSON, or what is wrong with the schema or with the text. */
export type SchemaFinding =
  | { readonly kind: 'fits'; readonly value: string }
  | { readonly kind: 'bad-schema' | 'bad-value'; readonly fault: string };

/** Many patterns are only valid without the flag `u`, such as `[\\w-.]`. */
function regularExpression(pattern: string, flags: string): RegExp {
  try {
    return new RegExp(pattern, flags);
  } catch {
    return new RegExp(pattern);
  }
}

/** Formats only inform the reader of a schema, so they are not checked. */
const options: Options = {
  ...{ strict: false, validateFormats: false, allErrors: false, inlineRefs: false, logger: false },
  code: { regExp: Object.assign(regularExpression, { code: 'regularExpression' }) },
};

const maxFaultLength = 300;
/** The parser takes some hundred bytes for each value. The loop that writes one into a body can go some 3000 deep. */
const limits = { maxValues: 500_000, maxDepth: 1000 };

/** Runs in a thread: a schema, and a pattern in it, may take any time. */
export function check({ schema, text }: SchemaTask): SchemaFinding {
  let validate: ValidateFunction;
  try {
    validate = compiled(JSON.parse(schema));
  } catch (error) {
    return { kind: 'bad-schema', fault: faultOf(error) };
  }
  if ('$async' in validate) return { kind: 'bad-schema', fault: '$async is not known' }; // it would find no fault in any value
  return text === null ? { kind: 'fits', value: '' } : readValue(text, validate);
}

/** Where a schema does not name its draft, it is taken for the latest: that knows what the drafts before do. */
function compiled(schema: Readonly<Record<string, unknown>>): ValidateFunction {
  const { $schema: draft = '2020-12' } = schema;
  const name = /draft-07|2019-09|2020-12/.exec(String(draft))?.[0];
  if (name === 'draft-07') return new Ajv(options).compile(schema);
  if (name === '2019-09') return new Ajv2019(options).compile(schema);
  if (name === '2020-12') return new Ajv2020(options).compile(schema);
  throw new Error('its $schema is none of draft-07, 2019-09 and 2020-12');
}

/** Repeats nothing of the schema but where it is wrong. */
function faultOf(error: unknown): string {
  if (error instanceof MissingRefError) return 'a $ref of it points to nothing in it';
  if (error instanceof SyntaxError) return 'a pattern of it is no regular expression';
  return shortened((error as Error).message);
}

function readValue(text: string, validate: ValidateFunction): SchemaFinding {
  const json = withoutFence(text);
  const excess = new JsonStructure(limits).take(Buffer.from(json));
  if (excess !== null) return { kind: 'bad-value', fault: `the answer ${excess}` };
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return { kind: 'bad-value', fault: 'the answer is not JSON' };
  }
  if (validate(value)) return { kind: 'fits', value: json };
  const [error] = validate.errors ?? [];
  const where = error?.instancePath || 'the value';
  return { kind: 'bad-value', fault: shortened(`${where} ${error?.message}`) };
}

const fence = '```';

/** Models like to put JSON into a code fence. Not by one expression: over a long answer, it would go back and forth. */
function withoutFence(text: string): string {
  const trimmed = text.trim();
  const begin = /^```(?:json)?[^\S\n]*\n/.exec(trimmed)?.[0];
  if (begin === undefined || trimmed.length < begin.length + fence.length || !trimmed.endsWith(fence)) return trimmed;
  return trimmed.slice(begin.length, -fence.length).trim();
}

function shortened(fault: string): string {
  return fault.length > maxFaultLength ? `${fault.slice(0, maxFaultLength)}…` : fault;
}
