import { z } from 'zod';
import { invalid } from '../errors.js';
import { efforts } from '../job.js';

export const maxSchemaBytes = 64 * 1024;

/** A JSON Schema with an object at its root. Whether it is one, ajv finds out. */
export const answerSchema = z.record(z.string(), z.unknown(), 'must be a JSON Schema, an object').meta({
  description: `A JSON Schema of at most ${maxSchemaBytes / 1024} KB, with an object at its root: the answer is a value that fits it.`,
  examples: [{ type: 'object', properties: { name: { type: 'string' } }, required: ['name'] }],
});

export const effort = z.enum(efforts, `must be one of ${efforts.join(', ')}`).meta({
  description: 'How hard the model is to think. 400 where the model CLI knows no effort.',
});

/** The schema as a job carries it. `path` is where it stands in the request. Throws `validation_error`. */
export function schemaText(schema: Readonly<Record<string, unknown>>, path: string): string {
  const text = jsonOf(schema, path);
  if (Buffer.byteLength(text) > maxSchemaBytes) throw invalid(path, `must be ${maxSchemaBytes} bytes of JSON at most`);
  if (!isOfObjects(schema)) throw invalid(path, 'must have an object at its root: "type": "object"');
  return text;
}

function jsonOf(schema: object, path: string): string {
  try {
    return JSON.stringify(schema);
  } catch {
    throw invalid(path, 'is nested too deeply');
  }
}

/** A root that refers to a definition may be one of objects; ajv and the model will see. */
function isOfObjects({ type, $ref: reference, properties }: Readonly<Record<string, unknown>>): boolean {
  return type === 'object' || (type === undefined && (properties !== undefined || reference !== undefined));
}
