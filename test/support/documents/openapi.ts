import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { root } from './sources.js';

export const openApiPath = join(root, 'docs', 'openapi.yaml');

let json: string | null = null;

/** Returns docs/openapi.yaml as JSON. Parsing takes half a second, so a process of Jest does it once for all test files. */
export function openApiJson(): string {
  json ??= JSON.stringify(parse(readFileSync(openApiPath, 'utf8')));
  return json;
}
