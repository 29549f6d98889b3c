import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../support/documents/sources.js';

describe.each(['docs/security.md', 'bench/RESULTS.md', 'docs/dependencies.md'])('%s', (page) => {
  const text = readFileSync(join(root, page), 'utf8');

  it('names only existing files and folders', () => {
    const named = [...text.matchAll(/`((?:src|test|deploy|docs|\.ci)\/[\w./-]+)`/g)].map(([, path = '']) => path);
    expect(named.length).toBeGreaterThan(3);
    expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });
});
