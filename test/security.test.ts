import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { variables } from '../src/shared/config/variables.js';
import { root } from './support/sources.js';

describe.each(['SECURITY.md', 'docs/reliability.md', 'docs/dependencies.md'])('%s', (page) => {
  const text = readFileSync(join(root, page), 'utf8');

  it('names only files and folders that there are', () => {
    const named = [...text.matchAll(/`((?:src|test|deploy|docs|\.ci)\/[\w./-]+)`/g)].map(([, path = '']) => path);
    expect(named.length).toBeGreaterThan(3);
    expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });

  it('links only to files that there are', () => {
    const links = [...text.matchAll(/\]\(([^)#]+)/g)].map(([, target = '']) => join(root, dirname(page), target));
    expect(links.filter((path) => !existsSync(path))).toEqual([]);
  });

  it('names only variables that there are', () => {
    const named = [...text.matchAll(/MODEL_[A-Z_]+/g)].map(([name]) => name);
    expect(named.filter((name) => !(name in variables))).toEqual([]);
  });
});
