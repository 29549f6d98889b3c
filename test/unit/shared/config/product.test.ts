import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readProduct } from '../../../../src/shared/config/product.js';
import { root } from '../../../support/documents/sources.js';

it('The product has the version of its package, and a commit only if the package was built with one', () => {
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string; commit?: string };
  expect(readProduct()).toEqual({ version: manifest.version, commit: manifest.commit ?? null });
});
