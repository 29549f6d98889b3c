import Ajv, { type Options, type ValidateFunction } from 'ajv';
import Ajv2019 from 'ajv/dist/2019.js';
import Ajv2020 from 'ajv/dist/2020.js';

/** A schema, as JSON; with `text` null only the schema is looked at. */
export interface SchemaTask {
  readonly schema: string;
  readonly text: string | null;
}

/** What was found: the value as JSON, or what is wrong with the schema or with the text. */
export type SchemaFinding =
  | { readonly kind: 'fits'; readonly value: string }
  | { readonly kind: 'bad-schema' | 'bad-value'; readonly fault: string };

/** A format is a note of the schema to its reader, and patterns of foreign formats are not ours to judge. */
const options: Options = { strict: false, validateFormats: false, allErrors: false, inlineRefs: false, logger: false };

const maxFaultLength = 300;

/** Runs in a thread: a schema, and a pattern in it, may take any time. */
export function check({ schema, text }: SchemaTask): SchemaFinding {
  let validate: ValidateFunction;
  try {
    validate = compiled(JSON.parse(schema));
  } catch (error) {
    return { kind: 'bad-schema', fault: shortened((error as Error).message) };
  }
  return text === null ? { kind: 'fits', value: '' } : readValue(text, validate);
}

/** Where a schema does not name its draft, it is taken for the latest: that knows what the drafts before do. */
function compiled(schema: Readonly<Record<string, unknown>>): ValidateFunction {
  const { $schema: draft = '' } = schema;
  if (/draft-0[67]/.test(String(draft))) return new Ajv(options).compile(schema);
  if (/2019-09/.test(String(draft))) return new Ajv2019(options).compile(schema);
  return new Ajv2020(options).compile(schema);
}

function readValue(text: string, validate: ValidateFunction): SchemaFinding {
  const json = withoutFence(text);
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

/** Models like to put JSON into a code fence. */
function withoutFence(text: string): string {
  return /^```(?:json)?\s*\n([\s\S]*?)\n?```$/.exec(text.trim())?.[1] ?? text.trim();
}

function shortened(fault: string): string {
  return fault.length > maxFaultLength ? `${fault.slice(0, maxFaultLength)}…` : fault;
}
