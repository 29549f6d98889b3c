import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { anchorsOf } from '../support/documents/anchors.js';
import { root } from '../support/documents/sources.js';

/** Returns every page of the repository that people read. */
function pages(): string[] {
  const ofRoot = readdirSync(root).filter((name) => name.endsWith('.md'));
  const entries = readdirSync(join(root, 'docs'), { recursive: true, withFileTypes: true });
  const ofDocs = entries.filter(({ name }) => name.endsWith('.md'));
  return [
    ...ofRoot,
    'bench/RESULTS.md',
    ...ofDocs.map(({ parentPath, name }) => relative(root, join(parentPath, name))),
  ];
}

/** Returns the text of a page without code, in which brackets are no links. */
function proseOf(page: string): string {
  return readFileSync(join(root, page), 'utf8')
    .replaceAll(/^```[\s\S]*?^```/gm, '')
    .replaceAll(/`[^`\n]*`/g, (code) => code.replaceAll(/[[\]()#]/g, ' '));
}

/** Returns why a link is broken; null if it works or leads out of the repository. */
function faultOf(page: string, link: string): string | null {
  if (/^[a-z]+:/.test(link)) return null;
  const [path = '', anchor] = link.split('#');
  const target = path === '' ? page : join(dirname(page), path);
  if (!existsSync(join(root, target))) return `${page} links to ${link}: there is no such file`;
  if (anchor === undefined) return null;
  if (statSync(join(root, target)).isDirectory() || !anchorsOf(target).has(anchor)) {
    return `${page} links to ${link}: there is no such heading`;
  }
  return null;
}

it('Documents of the packages link to no decision, because the decisions stay in the repository', () => {
  const packed = pages().filter((page) => page !== 'CONTRIBUTING.md' && !page.startsWith('docs/decisions/'));
  expect(packed.filter((page) => /\]\([^)\s]*decisions\b/.test(proseOf(page)))).toEqual([]);
});

it('Links inside the repository lead to existing files and headings', () => {
  const links = pages().flatMap((page) =>
    [...proseOf(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => [page, link] as const),
  );
  expect(links.length).toBeGreaterThan(150);
  expect(links.flatMap(([page, link]) => faultOf(page, link) ?? [])).toEqual([]);
});
