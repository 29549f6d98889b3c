import Ajv, { MissingRefError, type Options, type ValidateFunction } from 'ajv';
import Ajv2019 from 'ajv/dist/2019.js';
import Ajv2020 from 'ajv/dist/2020.js';
import { valuesIn, withoutThought } from '../../shared/text/json-in-text.js';
import { JsonStructure } from '../../shared/text/json-structure.js';

/** A schema as JSON, and the text to check; with `text` null, only the schema is checked. */
export interface SchemaTask {
  readonly schema: string;
  readonly text: string | null;
}

/** Result of a check: the value as JSON, or the fault of the schema or of the text. */
export type SchemaFinding = { readonly kind: 'fits'; readonly value: string } | SchemaFault;

/** `prose`: the text without its thought, if no part of it is meant as the call of a tool. */
interface SchemaFault {
  readonly kind: 'bad-schema' | 'bad-value';
  readonly fault: string;
  readonly prose?: string;
}

/** Compiles a pattern. Many patterns, such as `[\\w-.]`, are valid only without the flag `u`. */
function regularExpression(pattern: string, flags: string): RegExp {
  try {
    return new RegExp(pattern, flags);
  } catch {
    return new RegExp(pattern);
  }
}

/** Options of Ajv. Formats are not checked, because they only inform the reader of a schema. */
const options: Options = {
  ...{ strict: false, validateFormats: false, allErrors: false, inlineRefs: false, logger: false },
  code: { regExp: Object.assign(regularExpression, { code: 'regularExpression' }) },
};

const maxFaultLength = 300;
const notJson = 'the answer is not JSON';
/**
 * Limits for a value. Parsing takes some hundred bytes per value. The recursion that writes a value into a body works
 * to a depth of about 3000.
 */
const limits = { maxValues: 500_000, maxDepth: 1000 };

/** Checks a schema or a value. Runs in a thread, because a schema with patterns may take any time. */
export function check({ schema, text }: SchemaTask): SchemaFinding {
  let validate: ValidateFunction;
  try {
    validate = compiled(JSON.parse(schema));
  } catch (error) {
    return { kind: 'bad-schema', fault: faultOf(error) };
  }
  // An async validator would accept every value.
  if ('$async' in validate) return { kind: 'bad-schema', fault: '$async is not known' };
  return text === null ? { kind: 'fits', value: '' } : readValue(text, validate);
}

/**
 * Compiles a schema. Without `$schema`, it is read as the latest draft, which also knows the keywords of earlier
 * drafts.
 */
function compiled(schema: Readonly<Record<string, unknown>>): ValidateFunction {
  const { $schema: draft = '2020-12' } = schema;
  const name = /draft-07|2019-09|2020-12/.exec(String(draft))?.[0];
  if (name === 'draft-07') return new Ajv(options).compile(schema);
  if (name === '2019-09') return new Ajv2019(options).compile(schema);
  if (name === '2020-12') return new Ajv2020(options).compile(schema);
  throw new Error('its $schema must be draft-07, 2019-09 or 2020-12');
}

/** Describes an error. The text contains nothing of the schema except the place of the fault. */
function faultOf(error: unknown): string {
  if (error instanceof MissingRefError) return 'it has a $ref that points nowhere';
  if (error instanceof SyntaxError) return 'it has a pattern that is not a regular expression';
  return shortened((error as Error).message);
}

/**
 * Reads the value that fits. An answer that is not JSON may also have a thought, sentences and fences around the value,
 * or repeat it; two different values that fit are a fault.
 */
function readValue(text: string, validate: ValidateFunction): SchemaFinding {
  const whole = readJson(withoutFence(text), validate);
  if (whole.kind === 'fits') return whole;
  const prose = withoutThought(text);
  const values = whole.fault === notJson ? valuesIn(prose) : [prose];
  const findings = whole.fault === notJson ? values.map((json) => readJson(json, validate)) : [whole];
  const fitting = findings.filter((finding) => finding.kind === 'fits');
  const [first] = fitting;
  if (first !== undefined) {
    const isOne = fitting.every(({ value }) => value === first.value || sameValue(value, first.value));
    return isOne ? first : { kind: 'bad-value', fault: 'the answer has several values that fit: send only one' };
  }
  const fault = findings.filter((finding) => finding.kind !== 'fits').at(-1) ?? whole;
  return values.some(isMeantForTools) ? fault : { ...fault, prose };
}

function sameValue(first: string, second: string): boolean {
  return JSON.stringify(JSON.parse(first)) === JSON.stringify(JSON.parse(second));
}

/** Whether a value has the form in which a model calls an emulated tool or answers beside one, perhaps with mistakes. */
function isMeantForTools(json: string): boolean {
  return /"kind"\s*:\s*"(?:call|text)"/.test(json) || (/"name"\s*:/.test(json) && /"arguments"\s*:/.test(json));
}

function readJson(json: string, validate: ValidateFunction): SchemaFinding {
  const excess = new JsonStructure(limits).countBytes(Buffer.from(json));
  if (excess !== null) return { kind: 'bad-value', fault: `the answer ${excess}` };
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return { kind: 'bad-value', fault: notJson };
  }
  if (validate(value)) return { kind: 'fits', value: json };
  const [error] = validate.errors ?? [];
  const where = error?.instancePath || 'the value';
  return { kind: 'bad-value', fault: shortened(`${where} ${error?.message}`) };
}

const fence = '```';

/**
 * Removes a code fence, which models often put around JSON. A single regular expression would backtrack over a long
 * answer.
 */
function withoutFence(text: string): string {
  const trimmed = text.trim();
  const begin = /^```(?:json)?[^\S\n]*\n/.exec(trimmed)?.[0];
  if (begin === undefined || trimmed.length < begin.length + fence.length || !trimmed.endsWith(fence)) return trimmed;
  return trimmed.slice(begin.length, -fence.length).trim();
}

function shortened(fault: string): string {
  return fault.length > maxFaultLength ? `${fault.slice(0, maxFaultLength)}…` : fault;
}
