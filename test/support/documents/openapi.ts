import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { parse } from 'yaml';
import { openApiPath } from './sources.js';

let json: string | null = null;
let ajv: Ajv2020 | null = null;

/** Document of the service that the tests start: see `mainProgram`. */
const path = process.env.SERVICE_DIST ? join(process.env.SERVICE_DIST, '..', 'docs', 'openapi.yaml') : openApiPath;

/** Returns docs/openapi.yaml as JSON. */
export function openApiJson(): string {
  json ??= JSON.stringify(parse(readFileSync(path, 'utf8')));
  return json;
}

/**
 * Returns what contradicts the schema at this JSON pointer of docs/openapi.yaml in a body; null if nothing does. A body
 * of JSON is compared as its value, any other as a string.
 */
export function openApiErrors(pointer: string, body: string, isJson: boolean): string | null {
  ajv ??= new Ajv2020({ allErrors: true, formats: { 'date-time': true, date: true }, strict: false }).addSchema(
    JSON.parse(openApiJson()),
    'openapi',
  );
  const validate = ajv.getSchema(`openapi#/${pointer}`);
  if (validate === undefined) throw new Error(`the document has nothing at ${pointer}`);
  return validate(isJson ? JSON.parse(body) : body) ? null : ajv.errorsText(validate.errors);
}
