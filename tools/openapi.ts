import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { readProduct } from '../src/shared/config/product.js';
import { openApiDocument } from './openapi-document.js';

/** Returns the document that is committed and served. `npm run openapi` writes it, and a test compares it. */
export function openApiText(): string {
  return stringify(openApiDocument(readProduct().version), { lineWidth: 0, aliasDuplicateObjects: false });
}

if (require.main === module) {
  writeFile(join(__dirname, '..', '..', 'docs', 'openapi.yaml'), openApiText()).catch((error: unknown) => {
    process.stderr.write(`${String(error)}\n`);
    process.exitCode = 1;
  });
}
